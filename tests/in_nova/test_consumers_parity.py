"""The same answers from the store as from a real Placement, over generated sequences of requests."""

import collections
import itertools
from collections.abc import Iterator
from typing import Any

import placements
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.consumers import ConsumerStore, PlacementConsumers
from steelyard.errors import Conflict, InvalidAllocations, InvalidConsumerType, SteelyardError

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


# The same examples in each run: a new one that tells the two apart is for a person to judge.
@settings(max_examples=150, derandomize=True, suppress_health_check=list(HealthCheck))
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


def write(consumer: str, generation: int | None, kind: str, project: str, **amounts: int) -> Any:
    return {
        consumer: {
            "allocations": {PROVIDERS[0]: {"resources": amounts}},
            "project_id": project,
            "user_id": "u",
            "consumer_generation": generation,
            "consumer_type": kind,
        }
    }


def test_the_client_says_what_the_store_says(placement: Any, store: ConsumerStore) -> None:
    one, other = (f"4fffffff-0000-4000-8000-00000000000{n}" for n in (1, 2))
    project = "of the client"
    client = PlacementConsumers(placement)
    for model in (client, store):
        said = write(one, None, "INSTANCE", project, VCPU=2)
        model.post_allocations(said | write(other, None, "MIGRATION", project, VCPU=3))
        found = model.get_allocations(one)
        assert (found["consumer_generation"], found["consumer_type"]) == (1, "INSTANCE")
        model.put_allocations(one, found)
        with pytest.raises(Conflict):
            model.put_allocations(one, found)
        with pytest.raises(InvalidAllocations):
            model.put_allocations(one, {**found, "consumer_type": "instance"})
    for asked in ((), ("u",), ("u", "all"), (None, "INSTANCE"), (None, "UNKNOWN"), ("v", None)):
        assert client.usages(project, *asked) == store.usages(project, *asked)
    assert client.count(project) == store.count(project) == 2
    assert client.count(project, "u", "INSTANCE") == 1
    with pytest.raises(InvalidConsumerType, match="UNKNOWN cannot be written to Placement"):
        client.post_allocations(write(one, 2, "UNKNOWN", project, VCPU=1))
    with pytest.raises(InvalidConsumerType, match="'instance' is no consumer type"):
        client.usages(project, None, "instance")


def test_what_has_no_type_and_what_is_called_unknown_are_one(placement: Any, caplog: Any) -> None:
    untyped, called = (f"5fffffff-0000-4000-8000-00000000000{n}" for n in (1, 2))
    project = "of nobody knows whom"
    old = write(untyped, None, "", project, VCPU=2)
    del old[untyped]["consumer_type"]
    assert placement.post("/allocations", json=old, headers=placements.at("1.37")).ok
    client = PlacementConsumers(placement)
    assert client.get_allocations(untyped)["consumer_type"] == "UNKNOWN"
    one = {"consumer_count": 1, "VCPU": 2}
    assert client.usages(project) == {"usages": {"UNKNOWN": one}}
    stored = write(called, None, "UNKNOWN", project, VCPU=5)
    assert placement.post("/allocations", json=stored, headers=LATEST).ok
    both = {"usages": {"UNKNOWN": {"consumer_count": 2, "VCPU": 7}}}
    with caplog.at_level("WARNING"):
        assert client.usages(project) == client.usages(project, None, "UNKNOWN") == both
    assert "Somebody has stored consumers with the type UNKNOWN" in caplog.text


def test_the_client_reshapes(placement: Any, monkeypatch: Any) -> None:
    monkeypatch.setitem(placement.additional_headers, "X-Roles", "admin,service")
    consumer = "6fffffff-0000-4000-8000-000000000001"
    client = PlacementConsumers(placement)
    client.post_allocations(write(consumer, None, "INSTANCE", "of the reshaper", VCPU=2))
    url = f"/resource_providers/{PROVIDERS[1]}/inventories"
    there = placement.get(url, headers=LATEST).json()
    moved = write(consumer, 1, "MIGRATION", "of the reshaper", VCPU=3)
    client.reshape({"inventories": {PROVIDERS[1]: there}, "allocations": moved})
    found = client.get_allocations(consumer)
    assert (found["consumer_type"], found["consumer_generation"]) == ("MIGRATION", 2)


def test_the_examples_were_worth_it() -> None:
    assert all(SEEN[status] > 30 for status in (204, 400, 409)), SEEN
