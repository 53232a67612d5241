"""Progress bars on standard error."""

import io
import sys

import pytest

from steelyard.cli.outputs import progress


class Terminal(io.StringIO):
    """A terminal whose output can be read."""

    def isatty(self) -> bool:
        return True


def on_terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Replace standard error by a terminal.

    This is no fixture, because pytest replaces standard error after them.
    """
    found = Terminal()
    monkeypatch.setattr(sys, "stderr", found)
    return found


def work() -> list[int]:
    return list(progress.watched(range(3), "flavors"))


def test_short_work_shows_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    assert work() == [0, 1, 2]
    assert terminal.getvalue() == ""
    assert progress.DELAY == 2


def test_long_work_shows_bar_on_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(progress, "DELAY", 0)
    assert work() == [0, 1, 2]
    assert "flavors" in terminal.getvalue()


def test_quiet_work_shows_no_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = on_terminal(monkeypatch)
    monkeypatch.setattr(progress, "DELAY", 0)
    token = progress.quiet.set(True)
    try:
        assert work() == [0, 1, 2]
    finally:
        progress.quiet.reset(token)
    assert terminal.getvalue() == ""


def test_work_without_terminal_shows_no_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(progress, "DELAY", 0)
    assert work() == [0, 1, 2]
    assert capsys.readouterr().err == ""
