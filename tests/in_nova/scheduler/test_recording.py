"""Recording of placed servers in a real Placement."""

import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from keystoneauth1 import adapter, exceptions
from oslo_config import cfg

from steelyard import conf as options
from steelyard.cloud import Cloud, Flavor, Host
from steelyard.errors import Conflict, NoAccess, OverCapacity
from steelyard.scheduler import FilterScheduler
from steelyard.scheduler.recording import Recorder
from support.nova import placements

UUIDS = {name: f"70000000-0000-4000-8000-00000000000{n}" for n, name in enumerate("ab")}
LATEST = placements.at("1.39")


@pytest.fixture(scope="module")
def placement() -> Iterator[Any]:
    """Yield a Placement with two hosts as providers.

    The first one has fewer vCPUs there than in the cloud file.
    """
    with placements.placement() as client:
        for name, vcpus in (("a", 3), ("b", 8)):
            made = {"name": name, "uuid": UUIDS[name]}
            assert client.post("/resource_providers", json=made, headers=LATEST).ok
            inventories = {"VCPU": {"total": vcpus}, "MEMORY_MB": {"total": 8192}}
            body = {"inventories": inventories, "resource_provider_generation": 0}
            url = f"/resource_providers/{UUIDS[name]}/inventories"
            assert client.put(url, json=body, headers=LATEST).ok
        yield client


@pytest.fixture
def scheduler() -> FilterScheduler:
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    options.register(conf)
    conf.set_override("consumer_model", "placement", group=options.GROUP)
    hosts = {
        name: Host(name, 8, 8192 if name == "a" else 4096, 0, uuid=UUIDS[name]) for name in "ab"
    }
    return FilterScheduler(Cloud(hosts, flavors={"f": Flavor("f", 2, 512, 0)}), conf)


def test_placement_records_move_and_rejects_overcommitment(
    placement: Any, scheduler: FilterScheduler
) -> None:
    model = scheduler.consumers(placement)
    recorder = Recorder(scheduler, model, "p", "u")
    selection = scheduler.select(scheduler.request("f"))
    with recorder.recorded(selection):
        scheduler.commit(selection)
    (server,) = selection.servers
    used = {"VCPU": 2, "MEMORY_MB": 512}
    assert server.host == "a"
    assert model.usages("p") == {"usages": {"INSTANCE": {"consumer_count": 1, **used}}}

    # The host in the cloud file has capacity for another one, but not the one in Placement.
    other = scheduler.select(scheduler.request("f"))
    with pytest.raises(OverCapacity, match="Unable to allocate"), recorder.recorded(other):
        pytest.fail("the block must not run after a rejected write")
    assert model.count("p") == 1

    move = scheduler.select_move(server.uuid)
    with recorder.recorded(move):
        scheduler.commit(move)
    found = model.get_allocations(server.uuid)
    assert [*found["allocations"]] == [UUIDS["b"]]
    assert found["allocations"][UUIDS["b"]]["resources"] == used


def test_recorded_undoes_record_if_saving_fails(placement: Any, scheduler: FilterScheduler) -> None:
    recorder = Recorder(scheduler, scheduler.consumers(placement), "q", "u")
    selection = scheduler.select(scheduler.request("f"))
    (server,) = selection.servers

    def save() -> None:
        raise OSError("the disk is full")

    with pytest.raises(OSError, match="the disk is full"), recorder.recorded(selection):
        save()
    answer = placement.get(f"/allocations/{server.uuid}", headers=LATEST)
    assert answer.json()["allocations"] == {}


class Deaf(adapter.Adapter):
    """An adapter that loses the response to the first write."""

    def __init__(self, placement: Any) -> None:
        super().__init__(placement.session, service_type="placement", raise_exc=False)
        self.heard = False

    def request(self, url: str, method: str, **more: Any) -> Any:
        answer = super().request(url, method, **more)
        if method == "POST" and not self.heard:
            self.heard = True
            assert answer.status_code == 204, answer.text
            raise exceptions.ConnectTimeout("too slow")
        return answer


def test_recorded_undoes_write_with_lost_response(
    placement: Any, scheduler: FilterScheduler
) -> None:
    selection = scheduler.select(scheduler.request("f"))
    deaf = scheduler.consumers(Deaf(placement))
    with (
        pytest.raises(NoAccess, match="too slow"),
        Recorder(scheduler, deaf, "r", "u").recorded(selection),
    ):
        pytest.fail("the block must not run after a failed write")
    assert scheduler.consumers(placement).count("r") == 0


@pytest.mark.parametrize("kind", [None, "BAREMETAL"])
def test_move_keeps_allocations_of_other_services(
    placement: Any, scheduler: FilterScheduler, kind: str | None
) -> None:
    card = str(uuid.uuid4())
    assert placement.post(
        "/resource_providers", json={"name": card, "uuid": card}, headers=LATEST
    ).ok
    body = {"inventories": {"SRIOV_NET_VF": {"total": 4}}, "resource_provider_generation": 0}
    url = f"/resource_providers/{card}/inventories"
    assert placement.put(url, json=body, headers=LATEST).ok
    selection = scheduler.select(scheduler.request("f"))
    scheduler.commit(selection)
    (server,) = selection.servers
    url = f"/allocations/{server.uuid}"
    written = {
        "allocations": {
            UUIDS["a"]: {"resources": {"VCPU": 1}},
            card: {"resources": {"SRIOV_NET_VF": 2}},
        },
        "project_id": "s",
        "user_id": "u",
        "consumer_generation": None,
        **({} if kind is None else {"consumer_type": kind}),
    }
    at = placements.at("1.37") if kind is None else LATEST
    assert placement.put(url, json=written, headers=at).ok

    def found() -> Any:
        return placement.get(url, headers=LATEST).json()

    def used() -> Any:
        return {key: each["resources"] for key, each in found()["allocations"].items()}

    recorder = Recorder(scheduler, scheduler.consumers(placement), "x", "x")
    move = scheduler.select_move(server.uuid)
    before = used()
    with pytest.raises(Conflict), recorder.recorded(move):
        raise Conflict
    assert used() == before
    with recorder.recorded(move):
        pass
    assert used() == {UUIDS["b"]: {"VCPU": 1}, card: {"SRIOV_NET_VF": 2}}
    assert (found()["consumer_type"], found()["project_id"]) == (kind or "INSTANCE", "s")
