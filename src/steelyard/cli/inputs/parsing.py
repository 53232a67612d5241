"""Parsing of command-line arguments, and messages about mistakes in them."""

import argparse
import itertools
import re
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

from steelyard.text import escapes, spelling

HELP = ("-h", "--help")
UNEXPECTED = "unexpected argument {!r}"
_OPTION = re.compile(r"(--|-[A-Za-z])[^ ]*")  # as in argparse; -1 is a number
USAGE_ERROR = 2


class UsageError(SystemExit):
    """A mistake in the arguments. Not an Exception, because cliff would log it."""

    def __init__(self, message: str) -> None:
        super().__init__(USAGE_ERROR)
        self.message = message


class Parser(argparse.ArgumentParser):
    """A parser that suggests corrections of mistyped names and rejects repeated options.

    Without the check, the last value of a repeated option would silently win. Options that may be
    repeated collect their values.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **{"formatter_class": _Paragraphs, **options})
        self.given: set[argparse.Action] = set()
        for name in (None, "store"):
            self.register("action", name, _StoreOnce)
        self.register("type", int, _whole_number)
        self.register("type", float, _number)

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        arguments = sys.argv[1:] if args is None else list(args)
        self._refuse_unknown_options(arguments)
        found, extra = self.parse_known_args(arguments, namespace)
        if extra:
            self.error(UNEXPECTED.format(extra[0]))
        return found

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        self.given = set()
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        raise UsageError(
            f"{self.prog}: {escapes.escaped(message)}\nrun '{self.prog} --help' for usage"
        )

    def require_option(self, name: str) -> None:
        """Raise UsageError if no option has the name or begins with it."""
        known = self._option_string_actions
        if name not in known and not (
            self.allow_abbrev and any(each.startswith(name) for each in known)
        ):
            self.error(f"unknown option {name!r}{spelling.suggestion(name, known)}")

    def words_after_options(self, arguments: Sequence[str]) -> list[str]:
        """Return the words of the command, after the options of this parser."""
        rest = list(before_separator(arguments))
        while rest and rest[0].startswith("-"):
            action = self._option_string_actions.get(rest.pop(0))
            if action and action.nargs is None and not "".join(rest[:1]).startswith("-"):
                del rest[:1]  # its value
        return command_words(rest)

    def _refuse_unknown_options(self, arguments: Sequence[str]) -> None:
        """Report a mistyped option, before argparse reports the correct one as missing."""
        for each in before_separator(arguments):
            if _OPTION.fullmatch(each):
                self.require_option(each.partition("=")[0] if each.startswith("--") else each[:2])

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is not None and value not in action.choices:
            choices = [str(choice) for choice in action.choices]
            raise argparse.ArgumentError(
                action,
                f"expected {' or '.join(filter(None, [', '.join(choices[:-1]), choices[-1]]))}, "
                f"got {value!r}{spelling.suggestion(str(value), choices)}",
            )


class _StoreOnce(argparse.Action):
    """The action that stores a value. It rejects an option that is given twice."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        if self.option_strings and self in parser.given:
            raise argparse.ArgumentError(self, "given more than once; it takes one value")
        parser.given.add(self)
        setattr(namespace, self.dest, values)


class _Paragraphs(argparse.HelpFormatter):
    """A formatter that keeps the paragraphs and literal blocks of descriptions."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        paragraphs = text.replace("::\n\n", ":\n").split("\n\n")
        return "\n\n".join(
            each if "\n  " in each else super(_Paragraphs, self)._fill_text(each, width, indent)
            for each in paragraphs
        )


def _whole_number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r}") from None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"expected a number, got {text!r}") from None


def file_name(text: str) -> str:
    """Return the argument, which names a file. An empty name would mean the current directory."""
    if not text:
        raise argparse.ArgumentTypeError(f"expected the name of a file, got {text!r}")
    return text


def before_separator(arguments: Iterable[str]) -> Iterable[str]:
    """Return the arguments before ``--``. Only these may be options."""
    return itertools.takewhile(lambda each: each != "--", arguments)


def command_words(arguments: Sequence[str]) -> list[str]:
    """Return the arguments before the first option: the command and its arguments.

    Ends at an empty argument too, since it cannot be a word of a command.
    """
    return list(itertools.takewhile(lambda each: each and not each.startswith("-"), arguments))


def abbreviates(typed: str, name: str) -> bool:
    """Return whether each typed word abbreviates the word of the name at the same place."""
    words, whole = typed.split(), name.split()
    return len(words) == len(whole) and all(map(str.startswith, whole, words))


def subcommands(group: str, names: Iterable[str]) -> list[str]:
    """Return the commands of a group, sorted, without the words of the group."""
    prefix = f"{group} "
    return sorted(name.removeprefix(prefix) for name in names if name.startswith(prefix))


def unknown_command(words: Sequence[str], names: Sequence[str]) -> str:
    """Return the message about words that are not a command."""
    for length in range(len(words), 0, -1):
        group, rest = " ".join(words[:length]), words[length:]
        below = subcommands(group, names)
        if below and rest:
            meant = [f"{group} {name}" for name in _probable(rest, below)]
            ending = spelling.did_you_mean(meant) or f"; available: {', '.join(below)}"
            return f"unknown command {f'{group} {rest[0]}'!r}{ending}"
        if below:
            return f"incomplete command {group!r}; add one of: {', '.join(below)}"
    return f"unknown command {words[0]!r}{spelling.did_you_mean(_probable(words, names))}"


def _probable(words: Sequence[str], names: Sequence[str]) -> list[str]:
    """Return the few commands or groups that were probably meant.

    Names that contain the first word exactly come first, then names that the words abbreviate or
    misspell, then names with one word that resembles the first.
    """
    exact = [name for name in names if words[0] in name.split()]
    if exact:
        return _closest(words, exact)
    known = {
        " ".join(name.split()[:length])
        for name in names
        for length in range(1, len(name.split()) + 1)
    }
    for length in range(len(words), 0, -1):
        alike = [each for each in known if _resembles(words[:length], each.split())]
        if alike:
            return _closest(words[:length], alike)
    near = set(spelling.nearest(words[0], {word for name in names for word in name.split()}))
    return _closest(words, [name for name in names if not near.isdisjoint(name.split())])


def _resembles(typed: Sequence[str], words: Sequence[str]) -> bool:
    """Return whether each typed word abbreviates or resembles the word at the same place."""
    return len(typed) == len(words) and all(
        word.startswith(each) or spelling.nearest(each, [word])
        for each, word in zip(typed, words, strict=True)
    )


def _closest(words: Sequence[str], names: Sequence[str]) -> list[str]:
    return sorted(spelling.nearest(" ".join(words), names, likeness=0.0))
