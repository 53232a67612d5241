"""Mistakes in the arguments of every command, and its help."""

import argparse

import pytest

from steelyard.cli.inputs.changes import InOrder
from steelyard.cli.inputs.query_options import OfGroup, OncePerGroup
from support.cli.commands import COMMANDS, GROUPS, options_of, parser_of
from support.cli.in_process import Run


def is_single(action: argparse.Action) -> bool:
    if isinstance(action, OfGroup):
        return isinstance(action, OncePerGroup)
    return not isinstance(action, argparse._AppendAction | InOrder)


SINGLE = [
    (name, action.option_strings[-1], next(iter(action.choices or ["1"])))
    for name in COMMANDS
    for action in options_of(name)
    if is_single(action)
]
CHOICES = [
    (name, action.option_strings[-1], sorted(action.choices))
    for name in COMMANDS
    for action in options_of(name)
    if action.choices
]
REQUIRING = [
    name
    for name in COMMANDS
    if any(action.required and action.nargs != "*" for action in parser_of(name)._actions)
]


def test_commands_and_groups_are_found() -> None:
    assert len(COMMANDS) > 40
    assert {"explain", "tags backend set", "help", "complete"} <= set(COMMANDS)
    assert {"cloud", "db", "tags", "tags backend"} <= set(GROUPS)


HELP = [
    "{} --help",
    "{} -h",
    "--help {}",
    "-v {} -h",
    "{} --nonsense x --help",
    "{} --format nonsense --help",
    "{} x y z --help",
    "{} --log-file --help",
    "--debug {} --help",
    "-v -q {} --help",
    "--log-file /nonexist/y {} --help",
    "--help -- {}",
    "help {}",
]


@pytest.mark.parametrize(
    ("name", "argv"),
    [
        *((name, argv) for name in COMMANDS for argv in ("{} --help", "help {}")),
        *((name, argv) for name in ("explain", "tags backend set") for argv in HELP),
    ],
)
def test_help_is_printed_at_any_position(run: Run, name: str, argv: str) -> None:
    status, out, err = run(*argv.format(name).split())
    assert (status, err) == (0, "")
    assert out.startswith(f"usage: steelyard {name} ")


@pytest.mark.parametrize("name", GROUPS)
def test_help_of_a_group_lists_its_commands(run: Run, name: str) -> None:
    for argv in (["help", *name.split()], [*name.split(), "--help"]):
        status, out, err = run(*argv)
        assert (status, err) == (0, "")
        listed = [line.split("  ")[1] for line in out.splitlines() if line.startswith("  ")]
        assert listed == [each for each in COMMANDS if each.startswith(f"{name} ")]


def test_general_help_lists_every_command(run: Run) -> None:
    outputs = {run(*argv) for argv in ([], ["help"], ["--help"], ["-h"], ["-v", "--help"])}
    ((status, out, err),) = outputs
    assert (status, err) == (0, "")
    assert [name for name in COMMANDS if f"\n  {name} " not in out] == []
    assert "--config-file" in out


def test_help_is_ascii(run: Run) -> None:
    for name in COMMANDS:
        assert run("help", *name.split())[1].isascii()


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ("group creat --help", "usage: steelyard group create ["),
        ("help exp", "usage: steelyard explain ["),
    ],
)
def test_help_of_an_abbreviated_command_has_its_whole_name(run: Run, argv: str, said: str) -> None:
    status, out, err = run(*argv.split())
    assert (status, err) == (0, "")
    assert out.startswith(said)


def test_mistakes_of_an_abbreviated_command_have_its_whole_name(run: Run) -> None:
    assert run("group", "creat")[2].startswith("steelyard group create: the following arguments")


def test_help_keeps_the_paragraphs_of_a_description(run: Run) -> None:
    _, out, _ = run("explain", "--help")
    assert "decision.\n\nWith --html" in out


def test_separator_ends_the_options(run: Run) -> None:
    status, out, err = run("tags", "exists", "--url", "sqlite:///none", "--", "server", "--help")
    assert (status, out) == (2, "")
    assert "no file '" in err
    assert "/none'" in err


@pytest.mark.parametrize("name", COMMANDS)
def test_mistyped_command_gets_a_suggestion(run: Run, name: str) -> None:
    *group, last = name.split()
    mistyped = [*group, f"{last[0]}q{last[2:]}"]
    for argv in (
        mistyped,
        ["help", *mistyped],
        [*mistyped, "--help"],
        [*mistyped, "--cloud", "x"],
        ["--help", *mistyped],
        ["-h", *mistyped],
        ["-v", *mistyped, "--help"],
        ["--debug", *mistyped, "--help"],
        ["--log-file", "log", *mistyped, "--help"],
        ["-v", "-q", *mistyped, "--help"],
        ["--", *mistyped],
    ):
        status, out, err = run(*argv)
        assert (status, out) == (2, "")
        assert err.startswith(f"steelyard: unknown command {' '.join(mistyped)!r}")
        assert f"'{name}'" in err.partition("did you mean")[2]


@pytest.mark.parametrize("name", GROUPS)
def test_group_without_a_subcommand_lists_subcommands(run: Run, name: str) -> None:
    below = sorted(
        each.removeprefix(f"{name} ") for each in COMMANDS if each.startswith(f"{name} ")
    )
    status, out, err = run(*name.split())
    assert (status, out) == (2, "")
    assert f"incomplete command '{name}'; add one of: {', '.join(below)}\n" in err
    status, out, err = run(*name.split(), "zzzzzz")
    assert (status, out) == (2, "")
    assert f"; available: {', '.join(below)}\n" in err


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["exlpain"], "unknown command 'exlpain'; did you mean 'explain'?"),
        (["help", "exlpain"], "unknown command 'exlpain'; did you mean 'explain'?"),
        (["clod", "import"], "unknown command 'clod'; did you mean 'cloud import'?"),
        (["grop", "list"], "unknown command 'grop'; did you mean 'group list'?"),
        (["list"], "did you mean 'group list' or 'server list' or 'tags list'?"),
        (["tag"], "unknown command 'tag'; did you mean 'tags'?"),
        (["tags", "backnd", "set"], "'tags backnd'; did you mean 'tags backend set'?"),
        (["c"], "unknown command 'c'; did you mean 'check' or 'cloud' or 'compare'?"),
        ([""], "missing command"),
        (["cloud", ""], "incomplete command 'cloud'; add one of: import"),
        (["--"], "missing command"),
        (["import"], "unknown command 'import'; did you mean 'cloud import'?"),
        (["cloud"], "incomplete command 'cloud'; add one of: import"),
        (["zzzzzz"], "unknown command 'zzzzzz'\n"),
        (["--config-fil", "x", "plugins"], "unknown option '--config-fil'; did you mean '--conf"),
        (["--flavor", "x", "explain"], "unknown option '--flavor'"),
        (["--log-file", "a", "--log-file", "b", "plugins"], "--log-file: given more than once"),
        (["-v", "-q", "plugins"], "not allowed with argument"),
        (["-v"], "missing command"),
        (["--debug"], "missing command"),
        (["--config-file", "x"], "missing command"),
    ],
)
def test_mistake_before_the_arguments_is_explained(run: Run, argv: list[str], said: str) -> None:
    status, out, err = run(*argv)
    assert (status, out) == (2, "")
    assert err.startswith("steelyard: ")
    assert said in err
    assert err.endswith("run 'steelyard --help' for usage\n")


@pytest.mark.parametrize("name", COMMANDS)
def test_unknown_option_is_reported(run: Run, name: str) -> None:
    status, out, err = run(*name.split(), "--zzzzzz", "x")
    assert (status, out) == (2, "")
    assert err == (
        f"steelyard {name}: unknown option '--zzzzzz'\nrun 'steelyard {name} --help' for usage\n"
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_mistyped_option_gets_a_suggestion(run: Run, name: str) -> None:
    for action in options_of(name):
        option = action.option_strings[-1]
        mistyped = f"{option[:3]}{option[4:]}z"
        status, out, err = run(*name.split(), mistyped, "x")
        assert (status, out) == (2, "")
        assert f"unknown option {mistyped!r}; did you mean " in err
        assert repr(option) in err


@pytest.mark.parametrize(("name", "option", "value"), SINGLE)
def test_option_with_one_value_is_rejected_twice(
    run: Run, name: str, option: str, value: str
) -> None:
    status, out, err = run(*name.split(), option, value, option, value)
    assert (status, out) == (2, "")
    assert err.startswith(f"steelyard {name}: argument ")
    assert option in err
    assert "given more than once; it takes one value\n" in err


@pytest.mark.parametrize(("name", "option", "choices"), CHOICES)
def test_invalid_choice_lists_the_choices_and_the_nearest(
    run: Run, name: str, option: str, choices: list[str]
) -> None:
    mistyped = f"{choices[0]}z"
    status, out, err = run(*name.split(), option, mistyped)
    assert (status, out) == (2, "")
    assert f"got {mistyped!r}; did you mean " in err
    assert all(choice in err for choice in choices)


@pytest.mark.parametrize("name", COMMANDS)
def test_missing_value_of_an_option_is_reported(run: Run, name: str) -> None:
    for action in options_of(name):
        option = action.option_strings[-1]
        status, out, err = run(*name.split(), option)
        assert (status, out) == (2, "")
        assert option in err
        assert "expected one argument" in err


@pytest.mark.parametrize("name", REQUIRING)
def test_missing_arguments_are_reported(run: Run, name: str) -> None:
    status, out, err = run(*name.split())
    assert (status, out) == (2, "")
    assert err.startswith(f"steelyard {name}: the following arguments are required: ")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ("schedule --example --count many", "--count: expected a whole number, got 'many'"),
        ("explain --example --seed 1.5", "--seed: expected a whole number, got '1.5'"),
        ("serve --port http", "--port: expected a whole number, got 'http'"),
        ("tags selftest x --timeout soon", "--timeout: expected a number, got 'soon'"),
        ("explain --example x", "unexpected argument 'x'"),
        ("explain --example -x", "unknown option '-x'"),
        ("capacity --example -F web.small", "unknown option '-F'; did you mean '-f'?"),
        ("tags list x -- -y", "unexpected argument '-y'"),
        ("help explain extra", "help explain: unexpected argument 'extra'"),
        ("explain --example --cloud x", "--cloud: not allowed with argument --example"),
        ("usage --project p", "one of the arguments --url --os-cloud is required"),
    ],
)
def test_invalid_argument_is_explained(run: Run, argv: str, said: str) -> None:
    status, out, err = run(*argv.split())
    assert (status, out) == (2, "")
    assert said in err
    assert err.count("\n") == 2
