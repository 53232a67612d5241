"""The completion script: its data covers every command."""

import argparse
import re
import shlex

import pytest

from support.cli.commands import COMMANDS, GROUPS, parser_of
from support.cli.in_process import Run


@pytest.fixture
def data(run: Run) -> dict[str, dict[str, list[str]]]:
    """Return the data of the script: for each command or group, what may follow it."""
    status, out, err = run("complete")
    assert (status, err) == (0, "")
    cases = re.findall(r"^    (\S+|'.*')\)\n((?:      \w+=.*\n)+)      ;;\n", out, re.MULTILINE)
    return {
        "".join(shlex.split(name)): {
            key: value.split() for key, value in (line.split("=", 1) for line in shlex.split(lines))
        }
        for name, lines in cases
    }


def test_script_has_every_command_and_group(data: dict[str, dict[str, list[str]]]) -> None:
    assert sorted(data) == sorted(["", *GROUPS, *COMMANDS])
    for group in GROUPS:
        below = {
            name.removeprefix(f"{group} ").split()[0]
            for name in COMMANDS
            if name.startswith(f"{group} ")
        }
        assert data[group]["subcommands"] == sorted(below)
    assert data[""]["subcommands"] == sorted({name.split()[0] for name in COMMANDS})
    assert "--config-file=file" in data[""]["values"]


def test_script_has_every_option(data: dict[str, dict[str, list[str]]]) -> None:
    for name in COMMANDS:
        actions = [
            action for action in parser_of(name)._actions if action.help != argparse.SUPPRESS
        ]
        assert {*data[name]["options"]} == {
            option for action in actions for option in action.option_strings if option[:2] == "--"
        }
        assert {each.partition("=")[0] for each in data[name]["values"]} == {
            option for action in actions if action.nargs != 0 for option in action.option_strings
        }
        assert len(data[name]["positionals"]) == sum(not each.option_strings for each in actions)


def test_script_knows_the_kinds_of_values(data: dict[str, dict[str, list[str]]]) -> None:
    assert {"--flavor=flavors", "--group=server_groups", "--cloud=file", "--seed=none"} <= {
        *data["explain"]["values"]
    }
    assert "--schema=words:consumers,tags" in data["db upgrade"]["values"]
    assert data["server move"]["positionals"] == ["servers"]
    assert data["group show"]["positionals"] == ["server_groups"]
    assert data["group create"]["positionals"] == ["none"]
    assert data["tags add"]["positionals"] == ["none", "none+"]
