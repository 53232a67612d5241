"""Fixtures: the HTTP API of instance tags over its own database."""

from typing import Any

import pytest

from steelyard.tags import TagService
from steelyard.tags.http import api
from support.tags import in_process_api
from support.tags.in_process_api import SYSTEM, SYSTEM_PROXY, Client, P, Troubled, active


@pytest.fixture
def url(tmp_path: Any) -> str:
    return f"sqlite:///{tmp_path}/tags.db"


@pytest.fixture
def service(url: str) -> TagService:
    return in_process_api.service(url, clashes="high, low")


@pytest.fixture
def application(service: TagService) -> Any:
    return api.make_application(service, in_process_api.configuration())


@pytest.fixture
def ask(application: Any) -> Client:
    return Client(application)


@pytest.fixture
def system(application: Any) -> Client:
    return Client(application, (*P, SYSTEM), SYSTEM_PROXY)


@pytest.fixture
def backend() -> Troubled:
    return Troubled()


@pytest.fixture
def troubled(url: str, backend: Troubled) -> tuple[TagService, Client]:
    made = in_process_api.service(url, backend)
    client = Client(api.make_application(made, in_process_api.configuration()))
    active(made, client, "old")
    return made, client
