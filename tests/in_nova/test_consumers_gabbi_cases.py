"""The situations of Placement's own gabbi files, in both, at the microversion with types.

Each part names the files that it goes through. What is left out of them is about HTTP itself, about
microversions before types, about who may do what, and about providers, which the store has none of.
"""

from collections.abc import Iterator
from typing import Any

import pytest
from consumers_in_both import (
    PROVIDERS,
    Both,
    body,
    new,
    placement_with_plenty,
    store_in,
    without,
)

from steelyard.consumers import ConsumerStore


@pytest.fixture(scope="module")
def placement() -> Iterator[Any]:
    with placement_with_plenty() as client:
        yield client


@pytest.fixture(scope="module")
def store(tmp_path_factory: Any) -> ConsumerStore:
    return store_in(tmp_path_factory.mktemp("store"))


@pytest.fixture
def both(placement: Any, store: ConsumerStore) -> Both:
    return Both(placement, store)


@pytest.fixture
def project() -> str:
    """One that has nothing yet."""
    return new()


DISK = {"DISK_GB": 10}


# consumer-types-1.38.yaml, consumer-types-bug-story-2009167.yaml


def test_a_write_has_a_type(both: Both) -> None:
    consumer = new()
    typeless = without(body(one=DISK), "consumer_type")
    assert both.post({consumer: typeless}) == 400
    assert both.put(consumer, typeless) == 400
    assert both.reshape({consumer: typeless}) == 400
    assert both.get(consumer) == {"allocations": {}}


def test_a_type_is_in_upper_case(both: Both) -> None:
    consumer = new()
    both.put(consumer, body(one=DISK))
    small = body(1, "instance", one=DISK)
    assert both.put(consumer, small) == 400
    assert both.post({consumer: small}) == 400
    assert both.reshape({consumer: small}) == 400
    assert both.get(consumer)["consumer_type"] == "INSTANCE"


def test_a_type_is_changed_by_a_write(both: Both) -> None:
    consumer = new()
    assert both.post({consumer: body(one=DISK)}) == 204
    assert both.get(consumer)["consumer_type"] == "INSTANCE"
    assert both.put(consumer, body(1, "PONY", one=DISK)) == 204
    assert both.get(consumer)["consumer_type"] == "PONY"
    assert both.post({consumer: body(2, "COLT", one=DISK)}) == 204
    assert both.get(consumer)["consumer_type"] == "COLT"


def test_a_consumer_from_before_there_were_types(both: Both) -> None:
    consumer = new()
    both.put_untyped(consumer, body(one=DISK))
    assert both.get(consumer)["consumer_type"] == "UNKNOWN"
    assert both.put(consumer, body(1, one=DISK)) == 204
    assert both.get(consumer)["consumer_type"] == "INSTANCE"


def test_a_reshape_gives_a_type(both: Both, project: str) -> None:
    consumer = new()
    assert both.reshape({consumer: body(None, "RESHAPED", project=project, one=DISK)}) == 204
    assert both.get(consumer)["consumer_type"] == "RESHAPED"
    assert both.usages(project) == {"RESHAPED": {"consumer_count": 1, "DISK_GB": 10}}


@pytest.fixture
def herd(both: Both, project: str) -> str:
    """A project with an instance, a pony, and three consumers that have no type."""
    for kind in ("INSTANCE", "PONY"):
        both.put(new(), body(None, kind, project=project, one=DISK))
    for user, taken in (
        ("u", {"DISK_GB": 1000}),
        ("u", {"VCPU": 6}),
        ("v", {"DISK_GB": 20, "VCPU": 1}),
    ):
        both.put_untyped(new(), body(project=project, user=user, one=taken))
    return project


ONE = {"consumer_count": 1, "DISK_GB": 10}
UNTYPED = {"consumer_count": 3, "DISK_GB": 1020, "VCPU": 7}


def test_usages_are_by_type(both: Both, herd: str) -> None:
    assert both.usages(herd) == {"INSTANCE": ONE, "PONY": ONE, "UNKNOWN": UNTYPED}


def test_usages_of_one_type(both: Both, herd: str) -> None:
    assert both.usages(herd, kind="PONY") == {"PONY": ONE}


def test_usages_of_a_type_that_nobody_has(both: Both, herd: str) -> None:
    assert both.usages(herd, kind="COW") == {}


def test_usages_of_all_types_are_one_group(both: Both, herd: str) -> None:
    everything = {"consumer_count": 5, "DISK_GB": 1040, "VCPU": 7}
    assert both.usages(herd, kind="all") == {"all": everything}


def test_all_in_upper_case_is_a_type_like_others(both: Both, herd: str) -> None:
    assert both.usages(herd, kind="ALL") == {}
    both.put(new(), body(None, "ALL", project=herd, one=DISK))
    assert both.usages(herd, kind="ALL") == {"ALL": ONE}
    assert both.usages(herd, kind="all")["all"]["consumer_count"] == 6


def test_usages_of_what_has_no_type(both: Both, herd: str) -> None:
    """Each has a name of its own for it, and the other one's is not the same."""
    assert both.usages_of(herd, None, "UNKNOWN", theirs="unknown") == {"UNKNOWN": UNTYPED}
    assert both.usages(herd, kind="unknown", named=(200, 400)) is None
    url = f"/usages?project_id={herd}&consumer_type=UNKNOWN"
    headers = {"OpenStack-API-Version": "placement 1.38"}
    assert both.placement.get(url, headers=headers).json() == {"usages": {}}


# usage.yaml, with-allocations.yaml


def test_usages_of_somebody_with_nothing(both: Both, project: str) -> None:
    assert both.usages(project) == {}
    assert both.usages(project, "u") == {}
    assert both.usages(project, kind="all") == {}


@pytest.mark.parametrize(
    "asked",
    [(None,), ("",), ("p", ""), ("p" * 256,), ("p", "u" * 256)],
    ids=["no project", "empty project", "empty user", "long project", "long user"],
)
def test_usages_are_of_a_project_and_perhaps_of_a_user(both: Both, asked: Any) -> None:
    assert both.usages(*asked) is None


def test_usages_of_a_user(both: Both, herd: str) -> None:
    both.put(new(), body(project="another's", user="v", one=DISK))
    assert both.usages(herd, "v") == {"UNKNOWN": {"consumer_count": 1, "DISK_GB": 20, "VCPU": 1}}
    assert both.usages(herd, "u")["UNKNOWN"] == {"consumer_count": 2, "DISK_GB": 1000, "VCPU": 6}


# allocations-1.28.yaml


def test_a_consumer_that_is_not_there_has_nothing(both: Both) -> None:
    assert both.get(new()) == {"allocations": {}}


def test_a_new_consumer_has_the_generation_null(both: Both) -> None:
    consumer = new()
    assert both.put(consumer, without(body(one=DISK), "consumer_generation")) == 400
    for generation in (0, 1, 5, 33):
        assert both.put(consumer, body(generation, one=DISK)) == 409
    assert both.put(consumer, body(None, one=DISK)) == 204
    assert both.get(consumer)["consumer_generation"] == 1


def test_a_known_consumer_has_the_generation_that_was_read(both: Both) -> None:
    consumer = new()
    both.put(consumer, body(one=DISK))
    assert both.put(consumer, without(body(one=DISK), "consumer_generation")) == 400
    assert both.put(consumer, body(None, one=DISK)) == 409
    assert both.put(consumer, body(12, one=DISK)) == 409
    found = both.get(consumer)
    assert both.put(consumer, found) == 204
    assert both.put(consumer, found) == 409
    assert both.get(consumer) == {**found, "consumer_generation": 2}


def test_a_write_of_nothing_removes(both: Both, project: str) -> None:
    consumer = new()
    both.put(consumer, body(project=project, one=DISK))
    assert both.put(consumer, body(9, project=project)) == 409
    assert both.put(consumer, body(1, project=project)) == 204
    assert both.get(consumer) == {"allocations": {}}
    assert both.usages(project) == {}
    assert both.put(consumer, body(None, project=project, one=DISK)) == 204
    assert both.get(consumer)["consumer_generation"] == 1


def test_something_of_two_providers(both: Both) -> None:
    fresh, known = new(), new()
    both.put(known, body(one=DISK))
    assert both.put(fresh, body(one={"VCPU": 1}, two={"DISK_GB": 200})) == 204
    assert both.put(known, body(1, one={"VCPU": 1}, two={"DISK_GB": 200})) == 204
    assert both.get(fresh)["allocations"] == both.get(known)["allocations"]


# allocations-1-12.yaml, allocations-1-8.yaml, allocations.yaml, allocations-bug-1714072.yaml


@pytest.mark.parametrize(
    "change",
    [
        {"allocations": [{"resource_provider": {"uuid": PROVIDERS[0]}, "resources": DISK}]},
        {"allocations": []},
        {"allocations": {"a_house": {"resources": DISK}}},
        {"allocations": {PROVIDERS[0]: {"resources": {"vcpu": 1, "DISK_GB": 20}}}},
        {"allocations": {PROVIDERS[0]: {"resources": {}}}},
        {"allocations": {PROVIDERS[0]: {"resources": {"DISK_GB": 0}}}},
        {"allocations": {PROVIDERS[0]: {}}},
        {"allocations": {PROVIDERS[0]: {"a": "b"}}},
        {"another_field": "b"},
        {"project_id": ""},
        {"user_id": ""},
        {"project_id": "p" * 256},
        {"user_id": "u" * 256},
    ],
    ids=lambda change: repr(change)[:50],
)
def test_a_malformed_body(both: Both, change: Any) -> None:
    consumer, whole = new(), body(one=DISK) | change
    assert both.put(consumer, whole) == 400
    assert both.post({consumer: whole}) == 400
    assert both.reshape({consumer: whole}) == 400
    assert both.get(consumer) == {"allocations": {}}
    assert both.put(consumer, body(one=DISK)) == 204


@pytest.mark.parametrize("names", [("project_id",), ("user_id",), ("project_id", "user_id")])
def test_a_write_has_a_project_and_a_user(both: Both, names: Any) -> None:
    consumer, whole = new(), without(body(one=DISK), *names)
    assert both.put(consumer, whole) == 400
    assert both.post({consumer: whole}) == 400


@pytest.mark.parametrize("whole", [{}, None, [], "text", {"allocations": {}}, {"cows": "moo"}])
def test_what_is_no_body(both: Both, whole: Any) -> None:
    consumer = new()
    assert both.put(consumer, whole) == 400
    assert both.post(whole) == 400
    assert both.post({consumer: whole}) == 400


def test_what_was_read_is_put_back(both: Both) -> None:
    """With the generations of providers in it, which nobody looks at."""
    consumer = new()
    both.put(consumer, body(one={"VCPU": 1, "DISK_GB": 20}))
    found = both.get(consumer)
    for provider in found["allocations"].values():
        provider["generation"] = 77
    assert both.put(consumer, found) == 204


def test_a_second_write_replaces_the_first(both: Both, project: str) -> None:
    consumer, other = new(), new()
    both.put(other, body(project=project, one=DISK))
    both.put(consumer, body(project=project, one=DISK))
    both.put(consumer, body(1, project=project, one={"DISK_GB": 12}))
    assert both.usages(project) == {"INSTANCE": {"consumer_count": 2, "DISK_GB": 22}}
    both.put(consumer, body(2, project=project, two={"VCPU": 4}))
    assert both.usages(project) == {"INSTANCE": {"consumer_count": 2, "DISK_GB": 10, "VCPU": 4}}
    assert both.get(consumer)["allocations"] == {PROVIDERS[1]: {"resources": {"VCPU": 4}}}


def test_a_consumer_is_deleted_once(both: Both, project: str) -> None:
    consumer = new()
    both.put(consumer, body(project=project, one=DISK))
    assert both.delete(consumer) == 204
    assert both.delete(consumer) == 404
    assert both.delete(new()) == 404
    assert both.get(consumer) == {"allocations": {}}
    assert both.usages(project) == {}
    assert both.put(consumer, body(None, project=project, one=DISK)) == 204


def test_a_uuid_without_dashes_is_the_same_one(both: Both) -> None:
    consumer = new()
    both.put(consumer, body(one=DISK))
    assert both.put(consumer.replace("-", ""), body(1, one={"VCPU": 2})) == 204
    assert both.get(consumer)["allocations"] == {PROVIDERS[0]: {"resources": {"VCPU": 2}}}


def test_a_consumer_has_a_uuid(both: Both) -> None:
    assert both.put("not-a-uuid", body(one=DISK)) == 400
    assert both.post({"not-a-uuid": body(one=DISK)}) == 400


# allocations-mappings.yaml


@pytest.mark.parametrize(
    ("mappings", "answer"),
    [
        ({"": [PROVIDERS[0]], "_NET1": [PROVIDERS[1]]}, 204),
        ({"alpha": "beta"}, 400),
        ({}, 400),
        ({"alpha": []}, 400),
        ({"alpha": ["beta"]}, 400),
    ],
)
def test_mappings_have_a_form(both: Both, mappings: Any, answer: int) -> None:
    whole = {**body(one={"VCPU": 1}, two=DISK), "mappings": mappings}
    assert both.put(new(), whole) == answer
    assert both.post({new(): whole}) == answer
    assert both.reshape({new(): whole}) == answer


# allocations-bug-1778591.yaml, allocations-bug-1778743.yaml


def test_a_write_that_failed_leaves_no_consumer_behind(both: Both) -> None:
    known, fresh = new(), new()
    both.put(known, body(one=DISK))
    for write in (both.post, both.reshape):
        assert write({fresh: body(one=DISK), known: body(5, one=DISK)}) == 409
        assert both.get(fresh) == {"allocations": {}}
    assert both.put(fresh, body(None, one=DISK)) == 204


def test_capacity_is_not_the_business_of_the_store(both: Both) -> None:
    too_much = {"VCPU": 10**9 + 1}
    both.put(new(), body(one=too_much), (409, 204))
    half = {"DISK_GB": 5 * 10**8}
    both.post({new(): body(two=half) for _ in range(3)}, (409, 204))


# allocations-bug-1779717.yaml


def test_a_consumer_moves_to_another_project_and_user(both: Both) -> None:
    consumer, other, old, later = new(), new(), new(), new()
    both.put(consumer, body(project=old, one={"MEMORY_MB": 1024, "VCPU": 2}))
    assert both.put(consumer, body(1, project=later, one={"MEMORY_MB": 1024, "VCPU": 2})) == 204
    assert both.get(consumer)["project_id"] == later
    assert both.usages(old) == {}
    assert both.usages(later)["INSTANCE"]["consumer_count"] == 1
    back = {
        consumer: body(2, project=old, user="v", one={"MEMORY_MB": 1024, "VCPU": 1}),
        other: body(project=later, user="w", one={"MEMORY_MB": 1024, "VCPU": 1}),
    }
    assert both.post(back) == 204
    found = both.get(consumer)
    assert (found["project_id"], found["user_id"]) == (old, "v")
    assert both.usages(old, "u") == {}
    assert both.usages(old, "v")["INSTANCE"]["VCPU"] == 1


# allocations-post.yaml, allocation-bad-class.yaml

SERVER = {"MEMORY_MB": 1024, "VCPU": 2}


def test_an_instance_and_its_migration(both: Both, project: str) -> None:
    instance, migration = new(), new()
    pair = {
        instance: body(project=project, one=SERVER, two={"DISK_GB": 5}),
        migration: body(None, "MIGRATION", project=project, one=SERVER),
    }
    assert both.post(pair) == 204
    assert both.get(instance)["consumer_generation"] == 1
    assert both.get(migration)["consumer_generation"] == 1
    moving = {"consumer_count": 1, **SERVER}
    assert both.usages(project) == {"INSTANCE": moving | {"DISK_GB": 5}, "MIGRATION": moving}
    done = {
        instance: body(1, project=project, one=SERVER, two={"DISK_GB": 5}),
        migration: body(1, "MIGRATION", project=project),
    }
    assert both.post(done) == 204
    assert both.get(migration) == {"allocations": {}}
    assert both.usages(project) == {"INSTANCE": moving | {"DISK_GB": 5}}


def test_consumers_of_two_projects_in_one_write(both: Both) -> None:
    mine, yours = new(), new()
    pair = {
        new(): body(project=mine, one=SERVER, two={"DISK_GB": 5}),
        new(): body(project=yours, user="v", two=SERVER),
    }
    assert both.post(pair) == 204
    assert both.usages(mine) == {"INSTANCE": {"consumer_count": 1, **SERVER, "DISK_GB": 5}}
    assert both.usages(yours) == {"INSTANCE": {"consumer_count": 1, **SERVER}}


def test_one_fault_among_many_consumers(both: Both) -> None:
    """Placement has more to find fault with: it knows providers, classes and inventories."""
    known = new()
    both.put(known, body(one=SERVER))
    well = {known: body(1, one=SERVER)}
    generationless = without(body(one=SERVER), "consumer_generation")
    assert both.post(well | {new(): {"a": "b"}}) == 400
    assert both.post(well | {new(): generationless}) == 400
    assert both.post(well | {new(): body(1, one=SERVER)}) == 409
    assert both.get(known)["consumer_generation"] == 1
    assert both.post(well) == 204
    elsewhere = body() | {"allocations": {new(): {"resources": SERVER}}}
    both.post({new(): elsewhere}, (400, 204))
    both.post({new(): body(one={**SERVER, "CUSTOM_PONY": 1})}, (400, 204))
    both.post({new(): body(one={**SERVER, "PCI_DEVICE": 1})}, (409, 204))


def test_known_consumers_with_their_generations(both: Both) -> None:
    one, two = new(), new()
    both.post({one: body(one=SERVER), two: body(one=SERVER)})
    both.put(one, body(1, one=DISK))
    assert both.post({one: body(1, one=SERVER), two: body(1, one=DISK)}) == 409
    assert both.get(two)["allocations"] == {PROVIDERS[0]: {"resources": SERVER}}
    assert both.post({one: body(2, one=SERVER), two: body(1, one=DISK)}) == 204
    assert [both.get(consumer)["consumer_generation"] for consumer in (one, two)] == [3, 2]


# reshaper.yaml


def test_a_reshape_of_no_allocations(both: Both) -> None:
    assert both.reshape({}) == 204


@pytest.mark.parametrize("whole", [None, [], {"cows": "moo"}])
def test_a_malformed_reshape(both: Both, whole: Any) -> None:
    assert both.reshape(whole) == 400


def test_a_reshape_with_another_generation(both: Both) -> None:
    fresh, known = new(), new()
    both.put(known, body(one=DISK))
    assert both.reshape({fresh: body(99, one={"VCPU": 1})}) == 409
    assert both.reshape({known: body(None, one={"VCPU": 1})}) == 409
    assert both.get(known)["allocations"] == {PROVIDERS[0]: {"resources": DISK}}


def test_a_reshape_with_one_fault(both: Both, project: str) -> None:
    """Nothing of it is done, and no generation is counted up."""
    root, child = new(), new()
    both.post({root: body(project=project, one=DISK), child: body(project=project, one=SERVER)})
    moved = {root: body(1, project=project, one=DISK), child: body(1, project=project, two=SERVER)}
    broken = moved | {child: {**moved[child], "bad_field": "moo"}}
    assert both.reshape(broken) == 400
    assert both.reshape(moved | {new(): body(3, project=project, one=DISK)}) == 409
    both.get(root)
    both.get(child)
    assert both.reshape(moved) == 204


def test_allocations_move_to_a_child(both: Both, project: str) -> None:
    disk, cores, other = new(), new(), new()
    start = {
        disk: body(project=project, one={"DISK_GB": 1000}),
        cores: body(project=project, one={"VCPU": 8}),
        other: body(project=project, user="v", one={"DISK_GB": 20, "VCPU": 1}),
    }
    both.post(start)
    before = both.usages(project)
    moved = {
        disk: body(1, project=project, one={"DISK_GB": 1000}),
        cores: body(1, project=project, two={"VCPU": 8}),
        other: body(1, project=project, user="v", one={"DISK_GB": 20}, two={"VCPU": 1}),
    }
    assert both.reshape(moved) == 204
    assert both.usages(project) == before
    for consumer in moved:
        assert both.get(consumer)["consumer_generation"] == 2
    # Back again, under other names, one of them with a type of its own, and with mappings.
    fresh, typed = new(), new()
    together = {
        disk: body(2, project=project, one={"DISK_GB": 1000}) | {"mappings": {"": [PROVIDERS[0]]}},
        fresh: body(project=project, one={"VCPU": 8}),
        typed: body(None, "CHILD", project=project, user="v", one={"DISK_GB": 20, "VCPU": 1}),
        cores: body(2, project=project),
        other: body(2, project=project, user="v", one={"DISK_GB": 20}),
    }
    assert both.reshape(together) == 204
    for consumer in together:
        both.get(consumer)
    assert both.usages(project)["CHILD"] == {"consumer_count": 1, "DISK_GB": 20, "VCPU": 1}
    assert both.usages(project, kind="all")["all"]["consumer_count"] == 4


def test_a_reshape_that_takes_nothing_from_nobody(both: Both) -> None:
    """Placement then has a consumer without allocations, with the generation 0; we have none."""
    consumer = new()
    both.reshape({consumer: body()}, (204, 204))
    both.reshape({consumer: body()}, (409, 204))
