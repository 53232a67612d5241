"""The operations of a service embedded in a program."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from steelyard import errors
from steelyard.tags import TagService
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.names import MOST
from steelyard.tags.service import Caller, Operator
from steelyard.tags.states.values import Status
from support.tags import in_process_api
from support.tags.databases import dump
from support.tags.in_process_api import MINE

pytestmark = pytest.mark.usefixtures("closed_databases")

CALLER = Caller("p", "u")


@pytest.fixture
def url(tmp_path: Any) -> str:
    return f"sqlite:///{tmp_path}/tags.db"


@pytest.fixture
def service(url: str) -> Iterator[TagService]:
    with (made := in_process_api.service(url)).store:
        yield made


def test_caller_accepts_the_owner_as_text(service: TagService) -> None:
    caller = Caller("p", "u", "user")  # type: ignore[arg-type]
    service.add(caller, MINE, "smtp")
    assert service.tags(CALLER, MINE) == {"smtp": Status.PENDADD}
    assert service.tags(Operator(), MINE) == {}
    with pytest.raises(errors.BadRequest, match=f"at most {MOST},"):
        service.replace(caller, MINE, [f"tag {number}" for number in range(MOST + 1)])


@pytest.mark.parametrize(
    "change",
    [
        lambda service: service.replace(CALLER, MINE, "web"),
        lambda service: service.create(CALLER, "vm-new", "web"),
    ],
)
def test_text_in_place_of_a_list_of_tags_changes_nothing(
    service: TagService, url: str, change: Callable[[TagService], object]
) -> None:
    service.add(CALLER, MINE, "smtp")
    service.jobs.poll()
    before = dump(url)
    with pytest.raises(errors.BadRequest, match="invalid list of tags 'web'"):
        change(service)
    assert dump(url) == before


@pytest.mark.parametrize("name", ["backend", "store", "prefixes"])
def test_constructor_arguments_are_read_only(service: TagService, name: str) -> None:
    # The parts of the service keep references of their own, which an assignment would not reach.
    with pytest.raises(AttributeError):
        setattr(service, name, getattr(service, name))


def test_create_with_an_empty_id_is_rejected(service: TagService, url: str) -> None:
    before = dump(url)
    with pytest.raises(errors.BadRequest, match="invalid server id ''"):
        service.create(CALLER, "vm-new", server="")
    assert dump(url) == before


@pytest.mark.parametrize("number", [None, "7", "x", 2.5, True, 0, -1, 2**63])
def test_invalid_job_number_leaves_the_operation_pending(url: str, number: Any) -> None:
    # The backend may have taken the job; a wrong number could match another job.

    class Misnumbering(MemoryBackend):
        def add(self, instance: str, tags: Sequence[str]) -> int:
            super().add(instance, tags)
            return number  # type: ignore[no-any-return]

    with (service := in_process_api.service(url, Misnumbering())).store:
        with pytest.raises(errors.OutcomeUnknown) as caught:
            service.add(CALLER, MINE, "smtp")
        assert str(caught.value).startswith(f"invalid job number {number!r} of the backend: ")
        assert [operation.job for _, operation in service.store.pending()] == [None]
        service.jobs.reconciliation().apply()
        assert service.tags(CALLER, MINE) == {"smtp": Status.PENDADD}
