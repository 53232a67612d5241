"""A cloud file, and a live cloud of one host and one server whose answers a test may change."""

import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from support.clients import canned_services
from support.clients.canned_cloud import ANSWERS
from support.clients.canned_services import Server
from support.page.shown_cloud import CLOUD


@pytest.fixture
def server(tmp_path: Any, monkeypatch: Any) -> Iterator[Server]:
    """Yield a Nova and a Placement of one host and one server; change to an empty folder."""
    answers = {path: (200, json.dumps(answer).encode()) for path, answer in ANSWERS.items()}
    with canned_services.answering(answers) as made:
        (tmp_path / "config").mkdir()
        path = canned_services.describe(tmp_path / "config", made.url)
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
        (tmp_path / "here").mkdir()
        monkeypatch.chdir(tmp_path / "here")
        yield made


@pytest.fixture
def cloud(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return the path of a cloud file with names that look like HTML."""
    path = tmp_path / "cloud.yaml"
    path.write_text(CLOUD)
    return path
