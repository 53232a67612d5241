"""Atomic file writes."""

import os
import pathlib
import stat

import pytest

from steelyard.text import whole_files


def test_write_syncs_the_content_before_and_the_directory_after_the_replacement(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "cloud.yaml"
    target.write_bytes(b"old")
    synced, fsync = [], os.fsync

    def recorded(handle: int) -> None:
        fsync(handle)
        synced.append((stat.S_ISDIR(os.fstat(handle).st_mode), target.read_bytes()))

    monkeypatch.setattr(os, "fsync", recorded)
    whole_files.write(str(target), b"new")
    assert synced == [(False, b"old"), (True, b"new")]
    assert list(tmp_path.iterdir()) == [target]
