"""The service of tags over a real Ganeti."""

import pathlib

import pytest

from steelyard.errors import (
    BackendRefused,
    BadRequest,
    NotFound,
    WrongBackend,
)
from steelyard.tags import TagService, TagStore, encode
from steelyard.tags.backends.base import BackendIdentity
from steelyard.tags.backends.ganeti import GanetiBackend
from steelyard.tags.names import MOST, check_name
from steelyard.tags.plans import PlanAction
from steelyard.tags.service import Caller, Operator
from steelyard.tags.states.values import Instance, Status
from support.services.ganeti_cluster import (
    CREATION,
    INST1,
    INST2,
    NEW,
    Cluster,
    service_of,
    settle,
    tags_of,
)
from support.tags.databases import dump, upgrade

CALLER, OPERATOR = Caller("p", "u"), Operator()
ACTIVE, PENDADD = Status.ACTIVE, Status.PENDADD
USER, SYSTEM = "cyclades:user:", "cyclades:system:"


def test_tags_are_added_listed_replaced_and_deleted(service: TagService) -> None:
    assert service.add(CALLER, "s1", "größe_1 +x")
    assert service.tags(CALLER, "s1") == {"größe_1 +x": PENDADD}
    settle(service)
    assert not service.add(CALLER, "s1", "größe_1 +x")
    assert service.add(OPERATOR, "s1", "größe_1 +x")
    assert service.status(CALLER, "s1", "größe_1 +x") is ACTIVE
    settle(service)
    encoded = "gr/C3/B6/C3/9Fe*1+/2Bx"
    assert tags_of(service.backend) == {USER + encoded, SYSTEM + encoded}
    service.replace(CALLER, "s1", ["a", "b"])
    settle(service)
    assert service.tags(CALLER, "s1") == {"a": ACTIVE, "b": ACTIVE}
    assert tags_of(service.backend) == {USER + "a", USER + "b", SYSTEM + encoded}
    service.delete(CALLER, "s1", "a")
    with pytest.raises(NotFound):
        service.delete(CALLER, "s1", "a")
    service.clear(CALLER, "s1")
    settle(service)
    assert tags_of(service.backend) == {SYSTEM + encoded}
    assert service.tags(CALLER, "s1") == {}
    assert tags_of(service.backend, INST2) == set()


def test_changes_by_hand_are_reconciled(service: TagService, cluster: Cluster) -> None:
    service.replace(CALLER, "s1", ["kept", "gone"])
    settle(service)
    foreign = ["other", "a_b@c", USER + "a/2fb", SYSTEM + "a/C3"]
    cluster.inside("gnt-instance", "add-tags", INST1, USER + "by+hand", SYSTEM + "smtp", *foreign)
    cluster.inside("gnt-instance", "remove-tags", INST1, USER + "gone")
    (plans,) = service.jobs.reconciliation().applied()
    steps = {(step.action, step.prefix, step.tag) for each in plans for step in each.steps}
    assert steps == {
        (PlanAction.CREATED, USER, "by hand"),
        (PlanAction.CREATED, SYSTEM, "smtp"),
        (PlanAction.DELETED, USER, "gone"),
        *((PlanAction.LEFT, "", tag) for tag in foreign),
    }
    assert service.tags(CALLER, "s1") == {"by hand": ACTIVE, "kept": ACTIVE}
    assert service.tags(OPERATOR, "s1") == {"smtp": ACTIVE}
    service.delete(CALLER, "s1", "by hand")
    settle(service)
    assert tags_of(service.backend) == {USER + "kept", SYSTEM + "smtp", *foreign}


def test_failed_deletion_keeps_the_tags_that_still_exist(
    service: TagService, cluster: Cluster
) -> None:
    # Ganeti deletes all tags of a job or none: 'b' is kept, and reconciliation drops 'a'.
    service.replace(CALLER, "s1", ["a", "b"])
    settle(service)
    cluster.inside("gnt-instance", "remove-tags", INST1, USER + "a")
    service.clear(CALLER, "s1")
    settle(service)
    list(service.jobs.reconciliation().applied())
    assert service.tags(CALLER, "s1") == {"b": ACTIVE}
    assert tags_of(service.backend) == {USER + "b"}


def test_largest_set_of_tags_is_split_into_jobs(service: TagService) -> None:
    names = [" " * 59 + chr(ord("A") + number) for number in range(MOST)]
    names = [name for name in names if name == check_name(name)]
    before = service.backend.horizon()
    service.replace(CALLER, "s1", names)
    settle(service)
    assert service.tags(CALLER, "s1") == dict.fromkeys(sorted(names), ACTIVE)
    assert service.backend.horizon() == before + 2
    service.clear(CALLER, "s1")
    settle(service)
    assert tags_of(service.backend) == set()


def test_instance_is_created_with_tags(
    service: TagService, cluster: Cluster, tmp_path: pathlib.Path
) -> None:
    with pytest.raises(BackendRefused, match="set ganeti_instance"):
        service.create(CALLER, NEW, ["a"])
    service = TagService(service.store, cluster.backend(ganeti_instance=CREATION))
    with pytest.raises(BackendRefused, match="Ganeti has it already"):
        service.backend.create(INST1, [])
    for name in (NEW.upper(), "new 1"):
        with pytest.raises(BadRequest, match="invalid instance name"):
            service.create(CALLER, name, ["a"])
    instance, statuses = service.create(CALLER, NEW, ["größe", "a b"], "s3")
    assert statuses == {"größe": PENDADD, "a b": PENDADD}
    settle(service)
    assert service.tags(CALLER, "s3") == {"größe": ACTIVE, "a b": ACTIVE}
    assert tags_of(service.backend, NEW) == {encode("größe", USER), encode("a b", USER)}
    service.add(CALLER, instance.id, "c")
    settle(service)
    assert len(tags_of(service.backend, NEW)) == 3


def test_failed_creation_leaves_no_instance(service: TagService, cluster: Cluster) -> None:
    wrong = {**CREATION, "os_type": "nonsense"}
    service = TagService(service.store, cluster.backend(ganeti_instance=wrong))
    service.create(CALLER, NEW, ["a"], "s3")
    settle(service)
    with pytest.raises(NotFound):
        service.tags(CALLER, "s3")
    unknown = {**CREATION, "nonsense": 1}
    service = TagService(service.store, cluster.backend(ganeti_instance=unknown))
    with pytest.raises(BackendRefused, match=r"400: Invalid body parameters: .*'nonsense'"):
        service.create(CALLER, NEW, ["a"], "s3")
    with pytest.raises(NotFound):
        service.tags(CALLER, "s3")
    assert service.backend.tags([NEW]) == {}


def test_lost_database_is_restored_by_reconciliation(
    service: TagService, tmp_path: pathlib.Path
) -> None:
    names = {"größe", "a b", "x+y", "%2B~", "日本"}
    service.replace(CALLER, "s1", names)
    service.replace(OPERATOR, "s2", names)
    settle(service)
    restored = tmp_path / "restored"
    restored.mkdir()
    service = service_of(service.backend, restored)
    assert service.tags(CALLER, "s1") == {}
    for _ in range(2):
        plans = [each for plans in service.jobs.reconciliation().applied() for each in plans]
        assert service.tags(CALLER, "s1") == dict.fromkeys(sorted(names), ACTIVE)
        assert service.tags(OPERATOR, "s2") == dict.fromkeys(sorted(names), ACTIVE)
    assert [each.steps for each in plans] == [(), ()]
    service.clear(CALLER, "s1")
    settle(service)
    assert tags_of(service.backend) == set()


def test_database_of_another_cluster_is_not_written(
    backend: GanetiBackend, tmp_path: pathlib.Path
) -> None:
    # Both clusters have the driver ganeti; their names differ.
    url = f"sqlite:///{tmp_path}/tags.db"
    store = TagStore(url)
    upgrade(store, BackendIdentity("ganeti", "other.gnt.test"))
    store.register(Instance("s1", INST1, "p", "u"))
    service, before = TagService(store, backend), dump(url)
    first_free = service.backend.horizon()
    with pytest.raises(WrongBackend, match=r"'other\.gnt\.test', and backend ganeti 'cluster\.gnt"):
        service.add(CALLER, "s1", "a")
    assert dump(url) == before
    assert service.backend.horizon() == first_free
    assert tags_of(service.backend) == set()
