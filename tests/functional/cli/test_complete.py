"""Completion of command lines in a real bash."""

import os
import pathlib
import random
import string

import pytest
import yaml

from steelyard.cli.inputs import shell_words
from support.cli.bash import Shell

FLAVOR = {"vcpus": 1, "ram_mb": 1024, "disk_gb": 10}
HOSTILE = [
    "$(touch pwned)",
    "`touch pwned`",
    "; touch pwned",
    "a b",
    "two  spaces",
    "it's",
    'say "x"',
    "back\\slash",
    "bang!bang",
    "glob*?[a]",
    "{a,b}",
    "~root",
    "#hash",
    "&& touch pwned",
    "> pwned",
    "$HOME",
    "é ü",
    "tab:1",
    "key=value",
    "user@host",
]
UNUSABLE = ["-option", "line\nfeed", "bell\a", "escape\x1b[31m", "bidi\u202e"]


def cloud_of(names: list[str]) -> str:
    return yaml.safe_dump(
        {
            "hosts": {"h1": {"vcpus": 4, "ram_mb": 4096, "disk_gb": 100}},
            "aggregates": {"a": {"hosts": [], "metadata": {"rack": 1, "availability_zone": "z"}}},
            "flavors": dict.fromkeys(names, FLAVOR),
            "server_groups": {"front": {"policy": "affinity"}, "back": {"policy": "affinity"}},
            "servers": {
                "web-1": {"host": "h1", "flavor": names[0]},
                "db-1": {"host": "h1", "flavor": names[0]},
            },
        },
        allow_unicode=True,
        sort_keys=False,
    )


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    shell = Shell(tmp_path_factory.mktemp("bash"))
    for name, text in {
        "cloud.yaml": cloud_of(["web.small", "web.large", "db"]),
        "my cloud.yaml": cloud_of(["spaced"]),
        "hostile.yaml": cloud_of([*HOSTILE, *UNUSABLE]),
        "invalid.yaml": "flavors: [\n",
    }.items():
        (shell.folder / name).write_text(text)
    os.mkfifo(shell.folder / "pipe.yaml")
    return shell


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("ex", "explain"),
        ("c", "capacity check cloud compare complete consumer"),
        ("tags ba", "backend"),
        ("tags backend ", "set show"),
        ("help tags backend s", "set show"),
        ("--config-file steelyard.conf -v expl", "explain"),
        ("--ver", "--version --verbose"),
        ("explain --fl", "--flavor"),
        ("server move --cl", "--cloud"),
        ("explain -f j", "json"),
        ("explain --format ", "csv json table value yaml"),
        ("db upgrade --schema ", "consumers tags"),
        ("tags list x --owner s", "system"),
        ("explain --seed ", ""),
        ("tags list ", ""),
        ("nonsense ", ""),
        ("tags list -- --ow", ""),
    ],
)
def test_completion_of_commands_options_and_choices(
    shell: Shell, words: str, expected: str
) -> None:
    assert shell.completions(*words.split(" ")) == expected.split()


def test_completion_after_all_arguments_lists_the_options(shell: Shell) -> None:
    found = shell.completions("server", "list", "")
    assert {"--cloud", "--example", "--format", "--help"} <= set(found)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("explain --flavor ", "web.small web.large db"),
        ("explain --flavor web", "web.small web.large"),
        ("explain --example --flavor g", "gpu.large"),
        ("explain --group f", "front"),
        ("capacity --flavor db --flavor web.s", "web.small"),
        ("whatif --example --force nv", "nvme-rack-2"),
        ("capacity --by ", "host aggregate reason availability_zone rack"),
        ("capacity --example --by s", "ssd"),
        ("capacity --cloud missing.yaml --by ", "host aggregate reason"),
        ("capacity --group ", "front back"),
        ("explain --host ", "h1"),
        ("explain --only ", "fits rejected"),
        ("group show ", "front back"),
        ("group delete b", "back"),
        ("group create ", ""),
        ("server move ", "web-1 db-1"),
        ("server evacuate web-1 ", None),
        ("schedule --cloud missing.yaml --flavor ", ""),
        ("schedule --cloud invalid.yaml --flavor ", ""),
        ("schedule --cloud pipe.yaml --flavor ", ""),
        ("schedule --cloud my\\_cloud.yaml --flavor ", "spaced"),
        ('schedule --cloud "$HOME/my_cloud.yaml" --flavor ', "spaced"),
        ("schedule --cloud $(touch_pwned) --flavor ", ""),
    ],
)
def test_completion_of_names_reads_the_cloud_of_the_command_line(
    shell: Shell, words: str, expected: str | None
) -> None:
    """Check the words, in which an underscore is a space."""
    pieces = [each.replace("_", " ") for each in words.split(" ")]
    found = shell.completions(*pieces)
    assert not (shell.folder / "pwned").exists()
    if expected is None:
        assert "web-1" not in found
    else:
        assert found == expected.split()


@pytest.mark.parametrize(
    ("words", "line", "expected"),
    [
        (["explain", "--cloud", "=", "my"], "explain --cloud=my", ["compopt -o default"]),
        (["explain", "--format", "=", "js"], "explain --format=js", ["json"]),
        (
            ["explain", "--format", "="],
            "explain --format=",
            ["csv", "json", "table", "value", "yaml"],
        ),
        (["explain", "--flavor", "=", "d"], "explain --flavor=d", ["db"]),
        (["explain", "--flavor", "="], "explain --flavor=", ["web.small", "web.large", "db"]),
        (
            ["explain", "--cloud", "=", "hostile.yaml", "--flavor", "tab", ":"],
            "explain --cloud=hostile.yaml --flavor tab:",
            ["1"],
        ),
        (
            ["explain", "--cloud", "hostile.yaml", "--flavor", "=", "tab", ":", "1"],
            "explain --cloud hostile.yaml --flavor=tab:1",
            ["1"],
        ),
        (
            ["explain", "--cloud", "hostile.yaml", "--flavor", "user", "@", "h"],
            "explain --cloud hostile.yaml --flavor user@h",
            ["host"],
        ),
        (["server", "list", "--cloud"], "server  list  --cloud", ["--cloud"]),
    ],
)
def test_completion_joins_the_pieces_that_readline_splits(
    shell: Shell, words: list[str], line: str, expected: list[str]
) -> None:
    assert shell.completions(*words, line=f"steelyard {line}") == expected


def test_completion_ignores_the_text_after_the_cursor(shell: Shell) -> None:
    setup = "COMP_WORDS=(steelyard explain); COMP_CWORD=1; COMP_LINE='steelyard explain'"
    out, err = shell.run(f". ./complete.bash; {setup}; COMP_POINT=12; _steelyard; echo $COMPREPLY")
    assert (out, err) == ("explain\n", "")


def test_completion_works_without_the_command_line(shell: Shell) -> None:
    out, err = shell.run(
        ". ./complete.bash; COMP_WORDS=(steelyard server move ''); COMP_CWORD=3; _steelyard; "
        "echo ${COMPREPLY[*]}"
    )
    assert (out, err) == ("web-1 db-1\n", "")


@pytest.mark.parametrize(
    "words",
    [
        "explain --cloud ",
        "check --accepted acc",
        "cloud import --output ",
        "consumer backfill --consumers ",
        "query --against ",
        "--config-file ",
        "--log-file x",
    ],
)
def test_completion_of_a_file_is_left_to_readline(shell: Shell, words: str) -> None:
    assert shell.completions(*words.split(" ")) == ["compopt -o default"]


@pytest.mark.parametrize("setup", ["set -u; IFS=,", "shopt -s failglob nullglob nocasematch"])
def test_completion_works_with_the_options_of_the_shell(shell: Shell, setup: str) -> None:
    assert shell.completions("explain", "--flavor", "web", setup=setup) == [
        "web.small",
        "web.large",
    ]
    assert shell.completions("expl", setup=setup) == ["explain"]


def test_hostile_names_are_quoted_or_left_out(shell: Shell) -> None:
    found = shell.completions("explain", "--cloud", "hostile.yaml", "--flavor", "")
    out, err = shell.run(f"printf '%s\\0' {' '.join(found)}")
    assert err == ""
    assert sorted(out.split("\0")[:-1]) == sorted(HOSTILE)
    assert not (shell.folder / "pwned").exists()


@pytest.mark.parametrize("quote", ["'", '"'])
def test_hostile_names_are_quoted_behind_an_open_quote(shell: Shell, quote: str) -> None:
    found = shell.completions("explain", "--cloud", "hostile.yaml", "--flavor", quote)
    words = " ".join(f"{quote}{each}{quote}" for each in found)
    out, _ = shell.run(f"printf '%s\\0' {words}")
    refused = "'" if quote == "'" else "!"
    assert sorted(out.split("\0")[:-1]) == sorted(each for each in HOSTILE if refused not in each)
    assert not (shell.folder / "pwned").exists()


def test_random_names_are_quoted_for_bash(shell: Shell) -> None:
    numbers = random.Random(1)
    names = ["".join(numbers.choices(string.printable, k=6)) for _ in range(2000)]
    words, expected = [], []
    for quote in ("", "'", '"'):
        for name in names:
            for word in shell_words.completions([name], quote, ""):
                words.append(f"{quote}{word}{quote}")
                expected.append(name)
    assert len(expected) > len(names)
    (shell.folder / "words.bash").write_text(f"printf '%s\\0' {' '.join(words)}")
    out, err = shell.run(". ./words.bash")
    assert (out.split("\0")[:-1], err) == (expected, "")


def test_name_that_the_encoding_lacks_is_left_out(shell: Shell) -> None:
    setup = "export PYTHONIOENCODING=ascii"
    words = ["explain", "--cloud", "hostile.yaml", "--flavor", ""]
    found = shell.completions(*words, setup=setup)
    assert len(found) == len(HOSTILE) - 1


@pytest.mark.parametrize(
    ("keys", "arguments"),
    [
        ("steelyard expl\t", ["steelyard", "explain"]),
        ("steelyard explain --flavor web.s\t", ["--flavor", "web.small"]),
        ("steelyard explain --flavor=web.s\t", ["--flavor=web.small"]),
        ("bin/steelyard server move w\t", ["move", "web-1"]),
        ("steelyard explain --cloud my\t--flavor sp\t", ["my cloud.yaml", "--flavor", "spaced"]),
        ("steelyard explain --cloud=my\t", ["--cloud=my cloud.yaml"]),
        ('steelyard explain --cloud "my\t--flavor sp\t', ["my cloud.yaml", "--flavor", "spaced"]),
        ("steelyard explain --cloud hostile.yaml --flavor tab:\t", ["--flavor", "tab:1"]),
        ("steelyard explain --cloud hostile.yaml --flavor user@\t", ["--flavor", "user@host"]),
        ("steelyard explain --cloud hostile.yaml --flavor two\t", ["--flavor", "two  spaces"]),
        ('steelyard explain --cloud hostile.yaml --flavor "two\t', ["--flavor", "two  spaces"]),
        ("steelyard explain --cloud hostile.yaml --flavor bang\t", ["--flavor", "bang!bang"]),
        ("steelyard explain --cloud hostile.yaml --flavor ';\t", ["--flavor", "; touch pwned"]),
        ("steelyard explain --cloud hostile.yaml --flavor \\;\t", ["--flavor", "; touch pwned"]),
    ],
)
def test_tab_at_a_terminal_completes_the_line(
    shell: Shell, keys: str, arguments: list[str]
) -> None:
    assert shell.typed(keys)[-len(arguments) :] == arguments
    assert not (shell.folder / "pwned").exists()


def test_completion_needs_no_other_package(shell: Shell) -> None:
    script = pathlib.Path(shell.folder / "complete.bash").read_text()
    assert "_get_comp_words_by_ref" not in script
    assert script.endswith("\ncomplete -F _steelyard steelyard\n")
