"""Command lines that pages show."""

import os
import shlex
import subprocess

import pytest

from steelyard.page.commands import Invocation


def test_command_line_has_files_and_options_in_their_places() -> None:
    invocation = Invocation(["racks.conf"], [("--cloud", "my cloud.yaml"), ("--strict", None)])
    line = invocation.command_line("whatif", [("--out", "rack=a b"), ("--force", "$(x)")])
    assert shlex.split(line) == [
        *("steelyard", "--config-file", "racks.conf", "whatif"),
        *("--cloud", "my cloud.yaml", "--strict", "--out", "rack=a b", "--force", "$(x)"),
    ]


def test_value_that_begins_with_a_dash_is_joined_to_its_option() -> None:
    invocation = Invocation(options=[("--cloud", "-")])
    assert invocation.command_line("whatif", [("--force", "-fast"), ("--force", "-a b")]) == (
        "steelyard whatif --cloud - --force=-fast '--force=-a b'"
    )


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a\x1b[0m'\\", r"$'a\x1b[0m\'\\'"),
        ("a\nb", r"$'a\x0ab'"),
        ("\u202e", r"$'\xe2\x80\xae'"),
        ("\udcff", r"$'\xff'"),
    ],
)
def test_unprintable_characters_are_written_for_bash(value: str, written: str) -> None:
    line = Invocation().command_line("whatif", [("--force", value)])
    assert line == f"steelyard whatif --force {written}"


def test_bash_reads_each_value_as_it_was() -> None:
    values = ["", "$(x) `y`", "it's\\", "a\x01'b\\c\n", "\x1b[31m7f", "\u202e\xa0ü", "\udcff0"]
    line = Invocation().command_line("whatif", [("--force", value) for value in values])
    assert line.isprintable()
    script = f"steelyard() {{ printf '%s\\0' \"$@\"; }}; {line}"
    ran = subprocess.run(["bash", "-c", script], capture_output=True, check=True)
    words = os.fsdecode(ran.stdout).split("\0")[:-1]
    assert words == ["whatif", *(word for value in values for word in ("--force", value))]
