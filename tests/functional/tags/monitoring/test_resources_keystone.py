"""``/health`` and ``/metrics`` behind keystonemiddleware."""

import pathlib

import pytest

from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.http.api import make_application
from support.tags import in_process_api
from support.tags.in_process_api import ALL, Client
from support.web.keystone import behind_keystone, knowing

pytestmark = pytest.mark.usefixtures("closed_databases")


@pytest.mark.parametrize(("path", "status"), [("/health", 200), ("/metrics", 200), (ALL, 401)])
def test_public_paths_need_no_token_behind_keystonemiddleware(
    tmp_path: pathlib.Path, path: str, status: int
) -> None:
    service = in_process_api.service(f"sqlite:///{tmp_path}/tags.db", MemoryBackend())
    app = behind_keystone(make_application(service, in_process_api.configuration()))
    with knowing({}):
        assert Client(app, ())("GET", path).status == status
