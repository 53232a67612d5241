"""The reasons of failed additions in the HTTP API of instance tags, and in its client."""

import json
from typing import Any

import jsonschema
import pytest

from steelyard import errors
from steelyard.tags import Instance, Status, TagsClient, TagService
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.http import schemas
from support.tags import in_process_api
from support.tags.in_process_api import ALL, MINE, Client, Q
from support.tags.served_api import served, trusting

pytestmark = pytest.mark.usefixtures("closed_databases")

MESSAGE = "no tag 'a': the backend could not add it: the job was canceled"


@pytest.fixture
def service(url: str) -> TagService:
    """Return a service whose backend runs jobs on demand."""
    backend = MemoryBackend(patient=True)
    backend.adopt({"vm-mine": (), "vm-theirs": ()})
    return in_process_api.service(url, backend)


def fail(service: TagService) -> None:
    assert isinstance(service.backend, MemoryBackend)
    for _, operation in service.store.pending():
        service.backend.fail(operation.job or 0)
    service.jobs.poll()


def test_failed_addition_is_answered_with_its_reason(service: TagService, ask: Client) -> None:
    ask("PUT", ALL + "/a")
    assert ask("GET", ALL + "/a").headers["tag-status"] == "PENDADD"
    fail(service)
    answer = ask("GET", ALL + "/a")
    fault = {"code": 404, "message": MESSAGE, "reason": "additionFailed"}
    assert (answer.status, answer.json) == (404, {"itemNotFound": fault})
    jsonschema.validate(answer.json, schemas.fault(404))
    assert ask("HEAD", ALL + "/a").status == 404
    assert ask("GET", ALL).json["tags"] == []
    assert ask("DELETE", ALL + "/a").fault == ("itemNotFound", "no tag 'a'")


def test_reason_goes_when_the_tag_is_added_again(service: TagService, ask: Client) -> None:
    ask("PUT", ALL + "/a")
    fail(service)
    ask("PUT", ALL, {"tags": ["a", "b"]})
    assert ask("GET", ALL + "/a").status == 204
    assert isinstance(service.backend, MemoryBackend)
    service.backend.run()
    service.jobs.poll()
    ask("DELETE", ALL + "/a")
    answer = ask("GET", ALL + "/a")
    assert answer.json == {"itemNotFound": {"code": 404, "message": "no tag 'a'"}}


def test_reason_is_told_to_the_owner_alone(
    service: TagService, ask: Client, system: Client, application: Any
) -> None:
    ask("PUT", ALL + "/a")
    fail(service)
    assert system("GET", ALL + "/a").fault == ("itemNotFound", "no tag 'a'")
    other = Client(application, Q)("GET", ALL + "/a")
    assert other.fault == ("itemNotFound", f"no instance '{MINE}'")


def test_other_404_needs_no_reason() -> None:
    answer = json.loads('{"itemNotFound": {"code": 404, "message": "no tag"}}')
    jsonschema.validate(answer, schemas.fault(404))


def test_client_raises_the_failure(service: TagService) -> None:
    with served(trusting(service)) as url:
        client = TagsClient(url, "p", "u")
        client.add(MINE, "a")
        assert client.status(MINE, "a") is Status.PENDADD
        fail(service)
        with pytest.raises(errors.AdditionFailed) as caught:
            client.status(MINE, "a")
        assert str(caught.value) == MESSAGE
        assert client.exists(MINE, "a") is None
        with pytest.raises(errors.NotFound, match="no tag 'b'") as missing:
            client.status(MINE, "b")
        assert type(missing.value) is errors.NotFound


def test_failure_of_an_earlier_instance_is_not_told(service: TagService, ask: Client) -> None:
    ask("PUT", ALL + "/a")
    fail(service)
    service.forget(MINE)
    service.register(Instance(MINE, "vm-mine", "p", "u"))
    assert ask("GET", ALL + "/a").fault == ("itemNotFound", "no tag 'a'")
