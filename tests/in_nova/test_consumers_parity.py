"""The same answers from the store as from a real Placement, over generated sequences of requests."""

import collections
import itertools
from collections.abc import Iterator
from typing import Any

import placements
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.consumers import ConsumerStore
from steelyard.errors import SteelyardError

PROVIDERS = [f"10000000-0000-4000-8000-00000000000{n}" for n in (1, 2)]
LATEST = placements.at("1.39")
PROJECTS = itertools.count()


@pytest.fixture(scope="module")
def placement() -> Iterator[Any]:
    """With two providers that have more than anybody asks for."""
    with placements.placement() as client:
        for uuid in PROVIDERS:
            made = {"name": uuid, "uuid": uuid}
            assert client.post("/resource_providers", json=made, headers=LATEST).status_code == 200
            inventories = {name: {"total": 10**6} for name in ("VCPU", "MEMORY_MB", "DISK_GB")}
            body = {"inventories": inventories, "resource_provider_generation": 0}
            url = f"/resource_providers/{uuid}/inventories"
            assert client.put(url, json=body, headers=LATEST).status_code == 200
        yield client


@pytest.fixture(scope="module")
def store(tmp_path_factory: Any) -> ConsumerStore:
    made = ConsumerStore(f"sqlite:///{tmp_path_factory.mktemp('store')}/consumers.db")
    made.upgrade()
    return made


amounts = st.dictionaries(
    st.sampled_from(["VCPU", "MEMORY_MB", "DISK_GB"]), st.integers(1, 9), min_size=1, max_size=2
)
allocations = st.dictionaries(
    st.sampled_from(PROVIDERS), st.builds(lambda said: {"resources": said}, amounts), max_size=2
)
types = st.sampled_from(["INSTANCE", "MIGRATION", "UNKNOWN", "INTANCE"])
users = st.sampled_from(["u1", "u2"])
# A generation is what the last answer said, mostly; or one more, or none.
generations = st.sampled_from(["read", "read", "read", "read", "later", "none"])
scraps: st.SearchStrategy[Any] = st.sampled_from(
    [None, "", "instance", -1, 0, 1.5, [], {}, {"x": 1}, "A" * 256, ...]
)
faults = st.one_of(
    st.none(),
    st.none(),
    st.none(),
    st.tuples(
        st.sampled_from(
            ["allocations", "user_id", "consumer_generation", "consumer_type", "mappings", "more"]
        ),
        scraps,
    ),
)
writes = st.tuples(st.integers(0, 2), allocations, types, users, generations, faults)
steps = st.lists(
    st.lists(writes, min_size=1, max_size=3, unique_by=lambda write: write[0]), max_size=5
)


class Both:
    """A Placement and a store that are told the same, of consumers of a new project."""

    def __init__(self, placement: Any, store: ConsumerStore) -> None:
        self.placement = placement
        self.store = store
        self.number = next(PROJECTS)
        self.project = f"project {self.number}"
        self.seen: collections.Counter[int] = collections.Counter()

    def consumer(self, index: int) -> str:
        return f"2{self.number:07x}-0000-4000-8000-00000000000{index}"

    def body(self, write: Any) -> Any:
        index, said, kind, user, generation, fault = write
        read = self.allocations(index).get("consumer_generation")
        if read is None:  # nothing, for a consumer that is not there: a named difference
            said = said or {PROVIDERS[0]: {"resources": {"VCPU": 1}}}
        body = {
            "allocations": said,
            "project_id": self.project,
            "user_id": user,
            "consumer_generation": {"read": read, "later": (read or 0) + 1, "none": None}[
                generation
            ],
            "consumer_type": kind,
        }
        if fault:
            body[fault[0]] = fault[1]
            if fault == ("allocations", {}) and read is None:
                body["allocations"] = said
        return {key: value for key, value in body.items() if value is not ...}

    def allocations(self, index: int) -> Any:
        """What both say of the consumer, which is the same."""
        answer = self.placement.get(f"/allocations/{self.consumer(index)}", headers=LATEST).json()
        for provider in answer["allocations"].values():
            del provider["generation"]  # the store has no providers, and no generations of them
        assert self.store.get_allocations(self.consumer(index)) == answer
        return answer

    def put(self, write: Any) -> None:
        consumer, body = self.consumer(write[0]), self.body(write)
        answer = self.placement.put(f"/allocations/{consumer}", json=body, headers=LATEST)
        ours = status(lambda: self.store.put_allocations(consumer, body))
        self.compare(answer, ours)

    def post(self, many: list[Any]) -> None:
        body = {self.consumer(write[0]): self.body(write) for write in many}
        answer = self.placement.post("/allocations", json=body, headers=LATEST)
        self.compare(answer, status(lambda: self.store.post_allocations(body)))

    def compare(self, answer: Any, ours: int) -> None:
        assert ours == answer.status_code, answer.text
        self.seen[ours] += 1
        for index in range(3):
            self.allocations(index)

    def check_usages(self) -> None:
        for user in (None, "u1", "u2"):
            for kind in (None, "all", "INSTANCE", "UNKNOWN"):
                asked = {"project_id": self.project, "user_id": user, "consumer_type": kind}
                params = {key: value for key, value in asked.items() if value}
                answer = self.placement.get("/usages", params=params, headers=LATEST).json()
                assert self.store.usages(self.project, user, kind) == answer, asked


def status(write: Any) -> int:
    try:
        write()
    except SteelyardError as error:
        return error.status or 500
    return 204


SEEN: collections.Counter[int] = collections.Counter()


@settings(max_examples=150, suppress_health_check=list(HealthCheck))
@given(sequence=steps)
def test_the_same_answers(placement: Any, store: ConsumerStore, sequence: Any) -> None:
    both = Both(placement, store)
    for many in sequence:
        if len(many) == 1:
            both.put(many[0])
        else:
            both.post(many)
    both.check_usages()
    SEEN.update(both.seen)


def test_writing_nothing_for_a_consumer_that_is_not_there(
    placement: Any, store: ConsumerStore
) -> None:
    """Placement then has a consumer without allocations, with the generation 0; we have none."""
    consumer = "3fffffff-0000-4000-8000-000000000000"
    owner = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE"}
    nothing: dict[str, Any] = {"allocations": {}, "consumer_generation": None, **owner}
    answers = [
        placement.put(f"/allocations/{consumer}", json=nothing, headers=LATEST).status_code
        for _ in range(2)
    ]
    assert answers == [204, 409]
    assert [status(lambda: store.put_allocations(consumer, nothing)) for _ in range(2)] == [
        204,
        204,
    ]


def test_the_examples_were_worth_it() -> None:
    assert all(SEEN[status] > 30 for status in (204, 400, 409)), SEEN
