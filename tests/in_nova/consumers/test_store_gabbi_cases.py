"""The cases of Placement's gabbi files in the store and in Placement, at microversion 1.38.

A comment above each part names the files. Cases about HTTP, older microversions, permissions and
resource providers are left out, since they do not apply to the store.
"""

from typing import Any

import pytest

from support.nova.consumers_in_both import (
    PROVIDERS,
    Both,
    body,
    new,
    without,
)

DISK = {"DISK_GB": 10}


# consumer-types-1.38.yaml, consumer-types-bug-story-2009167.yaml


def test_write_without_type_is_rejected(both: Both) -> None:
    consumer = new()
    typeless = without(body(one=DISK), "consumer_type")
    assert both.post({consumer: typeless}) == 400
    assert both.put(consumer, typeless) == 400
    assert both.reshape({consumer: typeless}) == 400
    assert both.get(consumer) == {"allocations": {}}


def test_type_in_lower_case_is_rejected(both: Both) -> None:
    consumer = new()
    both.put(consumer, body(one=DISK))
    small = body(1, "instance", one=DISK)
    assert both.put(consumer, small) == 400
    assert both.post({consumer: small}) == 400
    assert both.reshape({consumer: small}) == 400
    assert both.get(consumer)["consumer_type"] == "INSTANCE"


def test_write_changes_the_type(both: Both) -> None:
    consumer = new()
    assert both.post({consumer: body(one=DISK)}) == 204
    assert both.get(consumer)["consumer_type"] == "INSTANCE"
    assert both.put(consumer, body(1, "PONY", one=DISK)) == 204
    assert both.get(consumer)["consumer_type"] == "PONY"
    assert both.post({consumer: body(2, "COLT", one=DISK)}) == 204
    assert both.get(consumer)["consumer_type"] == "COLT"


def test_untyped_consumer_reads_as_unknown(both: Both) -> None:
    consumer = new()
    both.put_untyped(consumer, body(one=DISK))
    assert both.get(consumer)["consumer_type"] == "UNKNOWN"
    assert both.put(consumer, body(1, one=DISK)) == 204
    assert both.get(consumer)["consumer_type"] == "INSTANCE"


def test_reshape_sets_the_type(both: Both, project: str) -> None:
    consumer = new()
    assert both.reshape({consumer: body(None, "RESHAPED", project=project, one=DISK)}) == 204
    assert both.get(consumer)["consumer_type"] == "RESHAPED"
    assert both.usages(project) == {"RESHAPED": {"consumer_count": 1, "DISK_GB": 10}}


@pytest.fixture
def project_with_types(both: Both, project: str) -> str:
    """Return a project with an INSTANCE, a PONY and three consumers without a type."""
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


def test_usages_are_by_type(both: Both, project_with_types: str) -> None:
    assert both.usages(project_with_types) == {"INSTANCE": ONE, "PONY": ONE, "UNKNOWN": UNTYPED}


def test_usages_are_limited_to_one_type(both: Both, project_with_types: str) -> None:
    assert both.usages(project_with_types, kind="PONY") == {"PONY": ONE}


def test_usages_of_unused_type_are_empty(both: Both, project_with_types: str) -> None:
    assert both.usages(project_with_types, kind="COW") == {}


def test_usages_of_all_types_are_one_group(both: Both, project_with_types: str) -> None:
    everything = {"consumer_count": 5, "DISK_GB": 1040, "VCPU": 7}
    assert both.usages(project_with_types, kind="all") == {"all": everything}


def test_all_in_upper_case_is_an_ordinary_type(both: Both, project_with_types: str) -> None:
    assert both.usages(project_with_types, kind="ALL") == {}
    both.put(new(), body(None, "ALL", project=project_with_types, one=DISK))
    assert both.usages(project_with_types, kind="ALL") == {"ALL": ONE}
    assert both.usages(project_with_types, kind="all")["all"]["consumer_count"] == 6


def test_usages_of_untyped_consumers_are_unknown(both: Both, project_with_types: str) -> None:
    # Placement calls the type "unknown", the store UNKNOWN.
    assert both.usages_of(project_with_types, None, "UNKNOWN", theirs="unknown") == {
        "UNKNOWN": UNTYPED
    }
    assert both.usages(project_with_types, kind="unknown", named=(200, 400)) is None
    url = f"/usages?project_id={project_with_types}&consumer_type=UNKNOWN"
    headers = {"OpenStack-API-Version": "placement 1.38"}
    assert both.placement.get(url, headers=headers).json() == {"usages": {}}


# usage.yaml, with-allocations.yaml


def test_usages_without_consumers_are_empty(both: Both, project: str) -> None:
    assert both.usages(project) == {}
    assert both.usages(project, "u") == {}
    assert both.usages(project, kind="all") == {}


@pytest.mark.parametrize(
    "asked",
    [(None,), ("",), ("p", ""), ("p" * 256,), ("p", "u" * 256)],
    ids=["no project", "empty project", "empty user", "long project", "long user"],
)
def test_usages_with_malformed_project_or_user_are_rejected(both: Both, asked: Any) -> None:
    assert both.usages(*asked) is None


def test_usages_are_limited_to_one_user(both: Both, project_with_types: str) -> None:
    both.put(new(), body(project="another's", user="v", one=DISK))
    assert both.usages(project_with_types, "v") == {
        "UNKNOWN": {"consumer_count": 1, "DISK_GB": 20, "VCPU": 1}
    }
    assert both.usages(project_with_types, "u")["UNKNOWN"] == {
        "consumer_count": 2,
        "DISK_GB": 1000,
        "VCPU": 6,
    }


# allocations-1.28.yaml


def test_missing_consumer_has_no_allocations(both: Both) -> None:
    assert both.get(new()) == {"allocations": {}}


def test_new_consumer_needs_generation_null(both: Both) -> None:
    consumer = new()
    assert both.put(consumer, without(body(one=DISK), "consumer_generation")) == 400
    for generation in (0, 1, 5, 33):
        assert both.put(consumer, body(generation, one=DISK)) == 409
    assert both.put(consumer, body(None, one=DISK)) == 204
    assert both.get(consumer)["consumer_generation"] == 1


def test_known_consumer_needs_its_generation(both: Both) -> None:
    consumer = new()
    both.put(consumer, body(one=DISK))
    assert both.put(consumer, without(body(one=DISK), "consumer_generation")) == 400
    assert both.put(consumer, body(None, one=DISK)) == 409
    assert both.put(consumer, body(12, one=DISK)) == 409
    found = both.get(consumer)
    assert both.put(consumer, found) == 204
    assert both.put(consumer, found) == 409
    assert both.get(consumer) == {**found, "consumer_generation": 2}


def test_write_of_nothing_removes_the_consumer(both: Both, project: str) -> None:
    consumer = new()
    both.put(consumer, body(project=project, one=DISK))
    assert both.put(consumer, body(9, project=project)) == 409
    assert both.put(consumer, body(1, project=project)) == 204
    assert both.get(consumer) == {"allocations": {}}
    assert both.usages(project) == {}
    assert both.put(consumer, body(None, project=project, one=DISK)) == 204
    assert both.get(consumer)["consumer_generation"] == 1


def test_write_allocates_from_two_providers(both: Both) -> None:
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
def test_malformed_body_is_rejected(both: Both, change: Any) -> None:
    consumer, whole = new(), body(one=DISK) | change
    assert both.put(consumer, whole) == 400
    assert both.post({consumer: whole}) == 400
    assert both.reshape({consumer: whole}) == 400
    assert both.get(consumer) == {"allocations": {}}
    assert both.put(consumer, body(one=DISK)) == 204


@pytest.mark.parametrize("names", [("project_id",), ("user_id",), ("project_id", "user_id")])
def test_write_without_project_or_user_is_rejected(both: Both, names: Any) -> None:
    consumer, whole = new(), without(body(one=DISK), *names)
    assert both.put(consumer, whole) == 400
    assert both.post({consumer: whole}) == 400


@pytest.mark.parametrize("whole", [{}, None, [], "text", {"allocations": {}}, {"cows": "moo"}])
def test_body_of_another_form_is_rejected(both: Both, whole: Any) -> None:
    consumer = new()
    assert both.put(consumer, whole) == 400
    assert both.post(whole) == 400
    assert both.post({consumer: whole}) == 400


def test_read_allocations_can_be_written_back(both: Both) -> None:
    # The generations of providers are ignored.
    consumer = new()
    both.put(consumer, body(one={"VCPU": 1, "DISK_GB": 20}))
    found = both.get(consumer)
    for provider in found["allocations"].values():
        provider["generation"] = 77
    assert both.put(consumer, found) == 204


def test_second_write_replaces_the_first(both: Both, project: str) -> None:
    consumer, other = new(), new()
    both.put(other, body(project=project, one=DISK))
    both.put(consumer, body(project=project, one=DISK))
    both.put(consumer, body(1, project=project, one={"DISK_GB": 12}))
    assert both.usages(project) == {"INSTANCE": {"consumer_count": 2, "DISK_GB": 22}}
    both.put(consumer, body(2, project=project, two={"VCPU": 4}))
    assert both.usages(project) == {"INSTANCE": {"consumer_count": 2, "DISK_GB": 10, "VCPU": 4}}
    assert both.get(consumer)["allocations"] == {PROVIDERS[1]: {"resources": {"VCPU": 4}}}


def test_second_delete_is_rejected(both: Both, project: str) -> None:
    consumer = new()
    both.put(consumer, body(project=project, one=DISK))
    assert both.delete(consumer) == 204
    assert both.delete(consumer) == 404
    assert both.delete(new()) == 404
    assert both.get(consumer) == {"allocations": {}}
    assert both.usages(project) == {}
    assert both.put(consumer, body(None, project=project, one=DISK)) == 204


def test_uuid_without_dashes_names_the_same_consumer(both: Both) -> None:
    consumer = new()
    both.put(consumer, body(one=DISK))
    assert both.put(consumer.replace("-", ""), body(1, one={"VCPU": 2})) == 204
    assert both.get(consumer)["allocations"] == {PROVIDERS[0]: {"resources": {"VCPU": 2}}}


def test_malformed_consumer_uuid_is_rejected(both: Both) -> None:
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
def test_malformed_mappings_are_rejected(both: Both, mappings: Any, answer: int) -> None:
    whole = {**body(one={"VCPU": 1}, two=DISK), "mappings": mappings}
    assert both.put(new(), whole) == answer
    assert both.post({new(): whole}) == answer
    assert both.reshape({new(): whole}) == answer


# allocations-bug-1778591.yaml, allocations-bug-1778743.yaml


def test_failed_write_creates_no_consumer(both: Both) -> None:
    known, fresh = new(), new()
    both.put(known, body(one=DISK))
    for write in (both.post, both.reshape):
        assert write({fresh: body(one=DISK), known: body(5, one=DISK)}) == 409
        assert both.get(fresh) == {"allocations": {}}
    assert both.put(fresh, body(None, one=DISK)) == 204


def test_store_does_not_check_capacity(both: Both) -> None:
    too_much = {"VCPU": 10**9 + 1}
    both.put(new(), body(one=too_much), (409, 204))
    half = {"DISK_GB": 5 * 10**8}
    both.post({new(): body(two=half) for _ in range(3)}, (409, 204))


# allocations-bug-1779717.yaml


def test_write_changes_project_and_user(both: Both) -> None:
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


def test_instance_and_migration_are_written_together(both: Both, project: str) -> None:
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


def test_write_of_two_projects_is_counted_by_project(both: Both) -> None:
    one, other = new(), new()
    pair = {
        new(): body(project=one, one=SERVER, two={"DISK_GB": 5}),
        new(): body(project=other, user="v", two=SERVER),
    }
    assert both.post(pair) == 204
    assert both.usages(one) == {"INSTANCE": {"consumer_count": 1, **SERVER, "DISK_GB": 5}}
    assert both.usages(other) == {"INSTANCE": {"consumer_count": 1, **SERVER}}


def test_write_with_one_fault_changes_nothing(both: Both) -> None:
    # Placement also rejects missing providers, classes and inventories.
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


def test_write_of_known_consumers_needs_all_generations(both: Both) -> None:
    one, two = new(), new()
    both.post({one: body(one=SERVER), two: body(one=SERVER)})
    both.put(one, body(1, one=DISK))
    assert both.post({one: body(1, one=SERVER), two: body(1, one=DISK)}) == 409
    assert both.get(two)["allocations"] == {PROVIDERS[0]: {"resources": SERVER}}
    assert both.post({one: body(2, one=SERVER), two: body(1, one=DISK)}) == 204
    assert [both.get(consumer)["consumer_generation"] for consumer in (one, two)] == [3, 2]
