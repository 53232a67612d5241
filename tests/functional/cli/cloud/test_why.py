"""The command ``why`` beside an installed Nova that cannot be used."""

import pathlib

import pytest

from steelyard import cli
from support.third_parties import make_importable


def test_broken_nova_is_named_and_costs_nothing_else(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["why", "--example", "--flavor", "web.small"]
    assert cli.main(command) == 1
    sound = capsys.readouterr().out
    (tmp_path / "nova").mkdir()
    (tmp_path / "nova" / "__init__.py").write_text("raise ValueError('half an upgrade')")
    make_importable(monkeypatch, str(tmp_path), "nova")
    assert cli.main(command) == 1
    out, err = capsys.readouterr()
    fault = "    cannot use the installed Nova: ValueError: half an upgrade; repair it\n"
    assert (out.replace(fault, ""), err) == (sound, "")
    assert fault in out
