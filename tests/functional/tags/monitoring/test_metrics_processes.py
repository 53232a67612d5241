"""Metrics of the API under gunicorn with several workers."""

import os
import pathlib
import re
import signal
import urllib.error
import urllib.request
from typing import Any

import pytest

from steelyard.tags import TagStore
from support.tags.api_process import P, option_file
from support.tags.databases import upgrade
from support.tags.queues import until
from support.web.api_process import Served, under_gunicorn

pytestmark = pytest.mark.usefixtures("closed_databases")

APPLICATION = "steelyard.tags.http.api:application"
OPTIONS = {"--worker-class": "gthread", "--workers": 3, "--threads": 2}


@pytest.fixture
def home(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a home directory with a configuration that oslo.config finds."""
    url = f"sqlite:///{tmp_path}/tags.db"
    upgrade(TagStore(url))
    (tmp_path / ".steelyard").mkdir()
    file = option_file(tmp_path, connection=url, trusted_proxies="127.0.0.1")
    os.rename(file, tmp_path / ".steelyard" / "steelyard.conf")
    return tmp_path


def read(served: Served, path: str) -> tuple[int, str]:
    """Request the path over a new connection, so that any worker may answer."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{served.port}{path}", timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.read().decode()


def counted(served: Served) -> float:
    status, text = read(served, "/metrics")
    assert status == 200, text
    found = re.findall(
        r'^steelyard_tags_http_requests_total\{method="GET",route="/openapi.json",status="200"\} '
        r"(\S+)$",
        text,
        re.MULTILINE,
    )
    return sum(map(float, found))


def children(served: Served) -> list[str]:
    """Return the IDs of the processes that the server has started."""
    threads = pathlib.Path(f"/proc/{served.process.pid}/task").glob("*/children")
    return [child for each in threads for child in each.read_text().split()]


def test_workers_share_their_metrics(home: pathlib.Path) -> None:
    shared = home / "metrics"
    shared.mkdir()
    environment: dict[str, Any] = {"HOME": str(home), "PROMETHEUS_MULTIPROC_DIR": str(shared)}
    with under_gunicorn(APPLICATION, P, OPTIONS, **environment) as served:
        for _ in range(30):
            assert read(served, "/openapi.json")[0] == 200
        assert {counted(served) for _ in range(10)} == {30}
        workers = children(served)
        assert len(workers) == 3
        os.kill(int(workers[0]), signal.SIGKILL)
        until(lambda: workers[0] not in children(served))
        assert counted(served) == 30  # the requests of the killed worker still count


def test_workers_without_a_shared_folder_refuse_to_give_wrong_metrics(home: pathlib.Path) -> None:
    with under_gunicorn(APPLICATION, P, OPTIONS, HOME=str(home)) as served:
        status, text = read(served, "/metrics")
        assert status == 500
        assert "set PROMETHEUS_MULTIPROC_DIR to an empty folder" in text
        assert read(served, "/health")[0] == 200
