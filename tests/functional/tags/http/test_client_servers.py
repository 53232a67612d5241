"""Lists of servers and their unregistration by the client of tags."""

from collections.abc import Iterator
from typing import Any

import falcon
import pytest

from steelyard import errors
from steelyard.tags import Instance, TagFilter, TagsClient, TagService
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.database import listing
from steelyard.tags.http import queries
from support.tags.served_api import served, tag_service, trusting

pytestmark = pytest.mark.usefixtures("closed_databases")


@pytest.fixture
def service(tmp_path: Any) -> TagService:
    made = tag_service(tmp_path)
    assert isinstance(made.backend, MemoryBackend)
    for number in range(5):
        made.backend.adopt({f"i-{number}": []})
        made.register(Instance(f"s{number}", f"i-{number}", "p", "u"))
    return made


@pytest.fixture
def client(service: TagService) -> Iterator[TagsClient]:
    with served(trusting(service)) as url:
        yield TagsClient(url, "p", "u")


def ids(found: Iterator[dict[str, Any]]) -> list[str]:
    return [each["id"] for each in found]


def test_servers_are_listed_with_their_tags(client: TagsClient, service: TagService) -> None:
    client.replace("s1", ["größe+x", "%2C"])
    service.jobs.poll()
    client.add("s2", "%2C")
    assert ids(client.servers()) == ["s0", "s1", "s2", "s3", "s4"]
    assert ids(client.servers(TagFilter(all_of=["%2C", "größe+x"]))) == ["s1"]
    assert ids(client.servers(TagFilter(any_of=["größe+x", "%2C"], not_all_of=["größe+x"]))) == [
        "s2"
    ]
    assert list(client.servers(TagFilter(all_of=["größe+x"]))) == [
        {
            "id": "s1",
            "name": "i-1",
            "project": "p",
            "user": "u",
            "tags": ["%2C", "größe+x"],
            "statuses": {"%2C": "ACTIVE", "größe+x": "ACTIVE"},
        }
    ]
    assert ids(client.servers(limit=2)) == ["s0", "s1"]
    assert ids(client.servers(after="s2", limit=9)) == ["s3", "s4"]
    assert ids(client.servers(limit=0)) == []


def test_pages_are_requested_until_the_limit(
    client: TagsClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queries, "LARGEST_PAGE", 2)
    assert ids(client.servers()) == ["s0", "s1", "s2", "s3", "s4"]
    assert ids(client.servers(limit=3)) == ["s0", "s1", "s2"]
    assert ids(client.servers(limit=4)) == ["s0", "s1", "s2", "s3"]
    assert listing.LARGEST_PAGE == 1000


def test_unregister_forgets_a_server_that_the_backend_lost(
    client: TagsClient, service: TagService
) -> None:
    with pytest.raises(errors.Conflict, match="the backend has instance 'i-3'"):
        client.unregister("s3")
    assert isinstance(service.backend, MemoryBackend)
    service.backend.remove("i-3")
    client.unregister("s3")
    assert ids(client.servers()) == ["s0", "s1", "s2", "s4"]
    with pytest.raises(errors.NotFound):
        client.unregister("s3")
    for server in ("", "..", "s0/tags"):
        with pytest.raises(errors.BadRequest, match="invalid server id"):
            client.unregister(server)


@pytest.mark.parametrize("body", ["[]", '{"servers": {}}', '{"servers": [{}]}', '{"servers": [1]}'])
def test_answer_of_another_service_is_an_error(body: str) -> None:
    class Other:
        def on_get(self, _req: falcon.Request, resp: falcon.Response) -> None:
            resp.text = body

    application = falcon.App()
    application.add_route("/servers", Other())
    with served(application) as url, pytest.raises(errors.ServiceError, match="expected servers"):
        list(TagsClient(url, "p", "u").servers())
