"""All commands of steelyard, from the installed entry points, with their options."""

import argparse
from collections.abc import Iterator

from steelyard.cli.app import App
from steelyard.cli.commands import Listing, Showing

_APP = App()
COMMANDS = sorted(name for name, _ in _APP.command_manager)
GROUPS = sorted(
    {
        " ".join(words[:length])
        for words in map(str.split, COMMANDS)
        for length in range(1, len(words))
    }
)
DISPLAYING = [
    name
    for name in COMMANDS
    if issubclass(_APP.command_manager.find_command(name.split())[0], (Listing, Showing))
]
"""The commands that list rows or show one thing, in the format of -f."""


def parser_of(name: str) -> argparse.ArgumentParser:
    kind, _, _ = _APP.command_manager.find_command(name.split())
    return kind(_APP, None, cmd_name=name).get_parser(f"steelyard {name}")


def options_of(name: str) -> Iterator[argparse.Action]:
    """Return the options of the command that take a value."""
    for action in parser_of(name)._actions:
        if action.option_strings and action.nargs is None:
            yield action
