"""The command ``complete``: completion of command lines in bash."""

import argparse
import importlib.resources
import shlex
from collections.abc import Iterator

from steelyard.cli.commands import Parsed
from steelyard.cli.inputs import cloud_names, parsing

_SCRIPT = importlib.resources.files("steelyard.cli") / "complete.bash"
# The line of the script that is replaced with the data of the commands.
_PLACE = "    # commands\n"

# How bash completes an argument: with file names, with words, or not at all. Any other kind is one
# of the cloud file's names.
_FILE, _WORDS, _NONE = "file", "words:", "none"


class Complete(Parsed):
    """Print a completion script for bash.

    The script needs bash 4 and no other package. It completes commands, options, choices and names
    of files, and reads the names of flavors, server groups and servers from the cloud file.
    """

    examples = ("source <(steelyard complete)",)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        script = _SCRIPT.read_text(encoding="utf-8")
        self.app.stdout.write(script.replace(_PLACE, "".join(self._cases())))

    def _cases(self) -> Iterator[str]:
        """Yield the data of each command and each group of commands, as cases of bash."""
        names = [name for name, _ in self.app.command_manager]
        yield _case("", {word.split()[0] for word in names}, self.app.parser)
        groups = {" ".join(name.split()[:end]) for name in names for end in (1, 2)} - {*names}
        for group in sorted(groups):
            below = parsing.subcommands(group, names)
            yield _case(group, {name.split()[0] for name in below}, None)
        for name in names:
            kind, _, _ = self.app.command_manager.find_command(name.split())
            yield _case(name, (), kind(self.app, None).get_parser(name))


def _case(
    name: str, subcommands: "set[str] | tuple[()]", parser: argparse.ArgumentParser | None
) -> str:
    actions = [] if parser is None else parser._actions
    shown = [action for action in actions if action.help != argparse.SUPPRESS]
    options = [
        option for action in shown for option in action.option_strings if option.startswith("--")
    ]
    values = [
        f"{option}={_kind(action)}"
        for action in shown
        if action.nargs != 0
        for option in action.option_strings
    ]
    positionals = [
        f"{_kind(action)}{'+' if action.nargs in ('*', '+') else ''}"
        for action in shown
        if not action.option_strings
    ]
    data = {
        "subcommands": sorted(subcommands),
        "options": options,
        "values": values,
        "positionals": positionals,
    }
    lines = [f"      {key}={shlex.quote(' '.join(words))}\n" for key, words in data.items()]
    return f"    {shlex.quote(name)})\n{''.join(lines)}      ;;\n"


def _kind(action: argparse.Action) -> str:
    if isinstance(action.type, cloud_names.CloudName):
        return action.type.section
    if action.type is parsing.file_name:
        return _FILE
    if action.choices is not None:
        return f"{_WORDS}{','.join(map(str, action.choices))}"
    return _NONE
