"""The help of every command: summary, options and examples."""

import argparse
import re
import shlex

import pytest

from steelyard.cli.app import App
from support.cli.commands import COMMANDS, parser_of
from support.cli.in_process import Run

_APP = App()
_LONGEST_SUMMARY = 60
_VERBS = (
    "Add Apply Build Check Choose Compare Count Create Delete Export Forget List Move Poll Print "
    "Record Register Remove Replace Report Revert Serve Set Show Test Unregister Update"
)


def summary_of(name: str) -> str:
    return (parser_of(name).description or "").partition("\n")[0]


def options_with_values(parser: argparse.ArgumentParser) -> list[argparse.Action]:
    return [action for action in parser._actions if action.option_strings and action.nargs != 0]


def helps_of(name: str) -> list[str]:
    """Return the help of the command's arguments, without that of hidden options."""
    texts = [action.help for action in parser_of(name)._actions]
    assert all(texts), texts
    return [text for text in texts if text and text != argparse.SUPPRESS]


def examples_of(run: Run, name: str) -> list[str]:
    """Return the command lines at the end of the command's help."""
    _, out, _ = run("help", *name.split())
    _, found, examples = out.partition("\n\nexamples:\n")
    assert found
    return [line.removeprefix("  ") for line in examples.splitlines()]


@pytest.mark.parametrize("name", COMMANDS)
def test_summary_is_short_and_imperative(name: str) -> None:
    summary = summary_of(name)
    assert summary.endswith(".")
    assert len(summary.rstrip(".")) <= _LONGEST_SUMMARY
    assert summary.split()[0] in _VERBS.split()


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_an_argument_has_no_capital_and_no_full_stop(name: str) -> None:
    # Abbreviations such as ID and URL may begin the help.
    wrong = [each for each in helps_of(name) if re.match("[A-Z][a-z ]", each) or each[-1] == "."]
    assert wrong == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_of_a_value_ends_with_its_default(name: str) -> None:
    wrong = [
        action.option_strings
        for action in options_with_values(parser_of(name))
        if action.default is not None
        and action.help != argparse.SUPPRESS
        and not re.search("; default: [^;]+$", action.help or "")
    ]
    assert wrong == []


@pytest.mark.parametrize("name", COMMANDS)
def test_help_ends_with_examples_that_the_command_parses(run: Run, name: str) -> None:
    examples = examples_of(run, name)
    assert 1 <= len(examples) <= 2
    for example in examples:
        # The example of 'complete' contains its command.
        line = re.sub(r"^(?:source <|eval \"\$)\((.+)\)\"?$", r"\1", example)
        program, *arguments = shlex.split(line)
        assert program == "steelyard"
        _, rest = _APP.parser.parse_known_args(arguments)
        _, found, rest = _APP.command_manager.find_command(rest)
        assert found == name
        parser_of(name).parse_args(rest)


@pytest.mark.parametrize(
    "name", ["capacity", "check", "compare", "explain", "group list", "group show", "server list"]
)
def test_example_on_the_cloud_of_steelyard_runs(run: Run, name: str) -> None:
    (example,) = (each for each in examples_of(run, name) if "--example" in each)
    status, out, err = run(*shlex.split(example)[1:])
    assert status in (0, 1), err
    assert out + err
