"""The names that the completion script asks for."""

import io
import pathlib
import sys

import pytest

from support.cli.in_process import Run


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["flavors", "", "", "explain"], "small\nfast\nopen\n"),
        (["flavors", "", "f", "explain", "--flavor"], "fast\n"),
        (["server_groups", "", "n", "group", "show"], "near\n"),
        (["servers", "", "", "server", "move", "--cloud", "missing.yaml"], ""),
    ],
)
def test_names_are_written_a_line_each(
    run: Run, cloud: pathlib.Path, arguments: list[str], expected: str
) -> None:
    assert run("--complete-names", *arguments) == (0, expected, "")


def test_name_that_the_encoding_lacks_is_left_out(
    run: Run, cloud: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud.write_text("flavors: {small: {}, größer: {}}", encoding="utf-8")
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    assert run("--complete-names", "flavors", "", "", "explain").status == 0
    sys.stdout.flush()
    assert written.getvalue() == b"small\n"


def test_incomplete_call_is_an_unknown_option(run: Run) -> None:
    status, out, err = run("--complete-names")
    assert (status, out) == (2, "")
    assert "unknown option '--complete-names'" in err
