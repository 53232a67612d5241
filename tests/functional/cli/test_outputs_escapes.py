"""Text of others in what the commands write: escaped for people, as it is for programs."""

import contextlib
import csv
import io
import json
import logging
import os
import sys
from collections.abc import Callable
from typing import Any

import pytest

from steelyard import cli
from steelyard.cli.outputs import columns
from steelyard.tags import TagStore
from steelyard.tags.codec import Tag
from steelyard.tags.states.values import Instance, StateChange, Status
from steelyard.text.escapes import escaped_lines
from support.tags.databases import upgrade

pytestmark = pytest.mark.usefixtures("closed_databases")

HOSTILE = "abc\u202etxt.\u2066exe"
ESCAPED = r"abc\u202etxt.\u2066exe"
Steelyard = Callable[..., tuple[int, str, str]]


@pytest.fixture
def url(tmp_path: Any) -> str:
    made = f"sqlite:///{tmp_path}/tags.db"
    store = TagStore(made)
    upgrade(store)
    there = StateChange({Tag("cyclades:system:", HOSTILE): Status.ACTIVE})
    store.register(Instance("s1", "vm-1", "p", "u"), there)
    return made


@pytest.fixture
def cloud(tmp_path: Any) -> str:
    """Write a cloud file whose names and metadata are hostile."""
    path = tmp_path / "cloud.yaml"
    name = json.dumps(f"{HOSTILE}\x1b[2J")
    path.write_text(
        f"hosts:\n  {name}: {{vcpus: 4, memory_mb: 4096, disk_gb: 40}}\n"
        f"flavors:\n  {name}: {{vcpus: 8, memory_mb: 1024, disk_gb: 1, extra_specs: {{{name}: x}}}}\n"
    )
    return str(path)


def test_table_escapes_names_and_keeps_its_columns(steelyard: Steelyard, url: str) -> None:
    status, out, _ = steelyard("tags", "list", "s1", "--url", url)
    assert status == 0
    assert f"| {ESCAPED} | ACTIVE |" in out
    assert len({len(line) for line in out.splitlines()}) == 1


def test_formats_for_programs_have_names_as_they_are(steelyard: Steelyard, url: str) -> None:
    listed = ("tags", "list", "s1", "--url", url, "-f")
    out = steelyard(*listed, "json")[1]
    assert out.isascii()  # JSON's own escapes
    assert [row["tag"] for row in json.loads(out)["tags"]] == [HOSTILE]
    rows = list(csv.reader(io.StringIO(steelyard(*listed, "csv")[1])))
    assert rows == [["Tag", "Status"], [HOSTILE, "ACTIVE"]]
    assert steelyard(*listed, "value")[1] == f"{HOSTILE} ACTIVE\n"


def test_errors_escape_names(steelyard: Steelyard, url: str) -> None:
    for argv in (
        ("tags", "list", HOSTILE, "--url", url),
        ("tags", "remove", "s1", f"{HOSTILE}?", "--url", url),
        ("tags", "add", "s1", "a\x1b[2J", "--url", url),
        ("tags", "add", "s1", "a", "--url", f"nowhere\x1b[2J{HOSTILE}://"),
    ):
        status, out, err = steelyard(*argv)
        assert (status, out) == (2, "")
        assert err.startswith("steelyard: ")
        assert escaped_lines(err) == err


def test_tables_and_messages_about_a_cloud_escape_its_names(
    steelyard: Steelyard, cloud: str
) -> None:
    name = f"{HOSTILE}\x1b[2J"
    for argv in (
        ("explain", "--cloud", cloud, "--flavor", name),
        ("capacity", "--cloud", cloud, "--flavor", name),
        ("check", "--cloud", cloud),
        ("schedule", "--cloud", cloud, "--flavor", name),
        ("explain", "--cloud", cloud, "--flavor", f"{name}?"),
    ):
        _, out, err = steelyard(*argv)
        assert r"\u202e" in out + err
        assert escaped_lines(out) == out
        assert escaped_lines(err) == err


def test_log_on_the_screen_and_in_a_file_escapes_names(
    steelyard: Steelyard, url: str, tmp_path: Any
) -> None:
    log = tmp_path / "steelyard.log"
    assert steelyard("--log-file", str(log), "tags", "list", "s1", "--url", url)[0] == 0
    logging.getLogger("steelyard.test").warning("%s left\nWARNING: forged", HOSTILE)
    assert log.read_text().splitlines()[-1].endswith(rf"{ESCAPED} left\nWARNING: forged")


FORGED = "web\nforged | ACTIVE |\nsteelyard: all is well"


@pytest.mark.parametrize("form", ["value", "csv", "table", "json", "yaml"])
def test_terminal_gets_no_control_characters_in_any_format(
    url: str, form: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ours, theirs = os.openpty()
    with open(ours, "rb", buffering=0) as terminal:
        with open(theirs, "w") as stdout, monkeypatch.context() as patched:
            patched.setattr(sys, "stdout", stdout)
            assert cli.main(["tags", "list", "s1", "--url", url, "-f", form]) == 0
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal
            while more := terminal.read(4096):
                shown += more
    text = shown.decode().replace("\r\n", "\n")
    assert "abc" in text
    assert escaped_lines(text) == text


def test_names_with_line_feeds_forge_no_lines_in_columns() -> None:
    assert "\n" not in columns.shown(FORGED)
    cells = [
        columns.Names([FORGED]),
        columns.Many([FORGED]),
        columns.GroupRules({FORGED: 1}),
        columns.Amounts({FORGED: 1}),
        columns.ReasonsByHost({FORGED: [FORGED]}),
    ]
    for cell in cells:
        assert "\n" not in columns.shown(cell)


def test_arguments_with_line_feeds_forge_no_errors(steelyard: Steelyard) -> None:
    for argv in (
        ("check", "--nothing", FORGED),
        ("check", "--cloud", FORGED),
        ("--config-file", FORGED, "check", "--example"),
    ):
        status, _, err = steelyard(*argv)
        assert status == 2
        assert not [line for line in err.splitlines() if line.startswith("steelyard: all is well")]
