"""Clients of all services of a cloud in clouds.yaml."""

import contextlib
import json
import pathlib
from collections.abc import Iterator
from typing import Any

import pytest

from steelyard.cli.inputs import os_clouds
from steelyard.clients.cloud_clients import CloudClients
from steelyard.errors import NoAccess, NotFound, ServiceError
from support.clients import canned_services
from support.clients.canned_services import Server, keystone
from support.live.canned_look import IMAGE, OF_IMAGE, OF_VOLUME, VOLUME, answers

# openstacksdk warns about a missing InfluxDB and about unknown service types.
pytestmark = pytest.mark.filterwarnings("ignore:.*(InfluxDB|service_type)")

SERVICES = ("compute", "placement", "image", "block-storage")


def versioned(url: str) -> dict[str, tuple[int, bytes]]:
    """Return answers of a service that has Glance's version 2 and Cinder's version 3."""
    found = [
        {"id": "v2.15", "status": "CURRENT", "links": [{"rel": "self", "href": f"{url}/v2/"}]},
        {"id": "v3.0", "status": "CURRENT", "links": [{"rel": "self", "href": f"{url}/v3/"}]},
    ]
    there = answers()
    return {
        "/": (300, json.dumps({"versions": found}).encode()),
        f"/v2{OF_IMAGE}": there[OF_IMAGE],
        f"/v3{OF_VOLUME}": there[OF_VOLUME],
    }


@pytest.fixture
def server() -> Iterator[Server]:
    with canned_services.answering({}) as made:
        made.answers = versioned(made.url)
        yield made


@contextlib.contextmanager
def connected(
    directory: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    url: str,
    *services: str,
    **more: Any,
) -> Iterator[CloudClients]:
    """Yield the clients of a cloud whose catalog lists these services at the address."""
    found = keystone({("here", "public"): url}, *services)
    with canned_services.answering(found) as identity:
        auth = {
            "auth_url": f"{identity.url}/v3",
            "username": "u",
            "password": "p",
            "project_id": "p",
            "user_domain_id": "d",
        }
        cloud = {"auth_type": "v3password", "auth": auth, "region_name": "here", **more}
        (directory / "clouds.yaml").write_text(json.dumps({"clouds": {"here": cloud}}))
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(directory / "clouds.yaml"))
        yield os_clouds.connect("here").clients()


def test_image_and_volume_clients_find_their_versions(
    server: Server, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(tmp_path, monkeypatch, server.url, *SERVICES) as clients:
        assert clients.images is not None
        assert clients.volumes is not None
        assert clients.images.one(IMAGE, name_of) == "debian"
        assert clients.volumes.one(VOLUME, id_of) == VOLUME
        with pytest.raises(NotFound, match=r"^Glance answered 404 to /images/no: no reason given$"):
            clients.images.one("no", name_of)


def test_volume_service_is_found_by_its_older_type(
    server: Server, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = ("compute", "placement", "volumev3")
    with connected(tmp_path, monkeypatch, f"{server.url}/v3", *services) as clients:
        assert clients.images is None
        assert clients.volumes is not None
        assert clients.volumes.one(VOLUME, id_of) == VOLUME


def test_services_missing_from_the_catalog_have_no_client(
    server: Server, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with connected(tmp_path, monkeypatch, server.url, "compute") as clients:
        assert (clients.placement, clients.images, clients.volumes) == (None, None, None)
    missing = connected(tmp_path, monkeypatch, server.url, "image")
    with pytest.raises(ServiceError, match="lists no compute service"), missing:
        pass


def test_unreachable_image_service_fails_when_it_is_asked(
    server: Server, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nowhere = {"image_endpoint_override": "http://127.0.0.1:9", "connect_retries": 0}
    with connected(tmp_path, monkeypatch, server.url, *SERVICES, **nowhere) as clients:
        assert clients.images is not None
        with pytest.raises(NoAccess, match="request to Glance failed: "):
            clients.images.one(IMAGE, name_of)


def name_of(record: Any) -> str:
    return str(record["name"])


def id_of(record: Any) -> str:
    return str(record["id"])
