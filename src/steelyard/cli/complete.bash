# Completion of steelyard's commands in bash 4 or later. 'steelyard complete' prints it.

# Sets what may follow a command or a group: its subcommands, its options, the kinds of the options'
# values (--option=kind) and the kinds of its arguments (the last one ends in + if it is repeated).
# The kinds are file, none, words:WORD,WORD or one that --complete-names knows, such as a section of
# the cloud file.
_steelyard_command() {
  case $1 in
    # commands
    *)
      return 1
      ;;
  esac
}

# Sets the kind of the option's value; empty for an option without a value.
_steelyard_kind() {
  kind=
  if [[ " $values" == *" $1="* ]]; then
    kind=" $values"
    kind=${kind#*" $1="}
    kind=${kind%% *}
  fi
}

_steelyard() {
  local IFS=$' \t\n'
  local line=${COMP_LINE-${COMP_WORDS[*]}} words=() last=-1 kept= piece index length
  COMPREPLY=()
  # Readline splits words at characters such as = and :. Pieces without a space between them are one
  # word. The last word ends at the cursor.
  length=${#line}
  for ((index = 0; index <= COMP_CWORD; index++)); do
    piece=${COMP_WORDS[index]}
    if ((index)) && [[ $line != [[:space:]]* ]]; then
      kept=${words[last]}
    else
      kept=
      last=$((last + 1))
      line=${line#"${line%%[![:space:]]*}"}
    fi
    if ((index == COMP_CWORD)) && [[ -n ${COMP_POINT-} ]]; then
      length=$((COMP_POINT - length + ${#line}))
      ((length >= 0 && length < ${#piece})) && piece=${piece:0:length}
    fi
    line=${line#"$piece"}
    words[last]=$kept$piece
  done
  # Readline replaces $2, which ends the word and excludes an open quote.
  if (($# > 1)) && [[ ${words[last]} == *"$2" ]]; then
    kept=${words[last]%"$2"}
    piece=$2
  fi
  local word=${words[last]} command= subcommands= options= values= positionals=
  local kind= only_arguments= position=0 kinds=() each
  unset "words[last]"

  _steelyard_command ''
  for each in "${words[@]:1}"; do
    if [[ -n $kind ]]; then
      kind=
    elif [[ -z $only_arguments && $each == -- ]]; then
      only_arguments=1
    elif [[ -z $only_arguments && $each == -* ]]; then
      _steelyard_kind "$each"
    elif [[ -z $subcommands ]]; then
      position=$((position + 1))
    elif [[ $command$each != help ]]; then
      command+=${command:+ }$each
      _steelyard_command "$command" || return 0
    fi
  done

  if [[ -n $kind ]]; then
    :
  elif [[ -z $only_arguments && $word == --*=* ]]; then
    each=${word%%=*}
    _steelyard_kind "$each"
    # Without = among the characters that split words, the name of the option would be replaced.
    [[ $kept == "$each="* ]] || return 0
    kept=${kept#"$each="}
  elif [[ -z $only_arguments && $word == -* ]]; then
    kind=words:${options// /,}
  elif [[ -n $subcommands ]]; then
    kind=words:${subcommands// /,}
  else
    read -r -a kinds <<< "$positionals"
    kind=${kinds[position]-}
    [[ -z $kind && $positionals == *+ ]] && kind=${positionals##* }
    kind=${kind%+}
    [[ -z $kind && -z $word && -z $only_arguments ]] && kind=words:${options// /,}
  fi

  case $kind in
    '' | none) ;;
    file)
      # Readline completes names of files itself.
      compopt -o default 2> /dev/null
      ;;
    words:*)
      kind=${kind#words:}
      mapfile -t COMPREPLY < <(compgen -W "${kind//,/ }" -- "$piece")
      ;;
    *)
      each=${words[0]}
      [[ $each == '~/'* ]] && each=$HOME/${each:2}
      mapfile -t COMPREPLY < <(
        command "$each" --complete-names "$kind" "$kept" "$piece" "${words[@]:1}" \
          2> /dev/null < /dev/null
      )
      ;;
  esac
  return 0
}

complete -F _steelyard steelyard
