"""The states of hosts, and their kinds."""

import dataclasses
import functools
from typing import Any

import pytest

from steelyard.cloud import Aggregate, Cloud, Flavor, Host, Server
from steelyard.cloud.host_state import HostState, by_kind, host_states
from support.scheduler.host_states import state

RACK = Aggregate("rack", {}, ("h",))
SERVER = Server("u1", "s1", Flavor("f", 1, 1024, 10), "h")


def test_kind_ignores_name_uuid_and_servers() -> None:
    here = state(aggregates=[RACK], host="a", uuid="1", instances={"u1": SERVER})
    there = state(aggregates=[RACK], host="b", uuid="2")
    assert here.kind == there.kind


@pytest.mark.parametrize(
    "fields",
    [
        {"aggregates": [RACK]},
        {"aggregates": [RACK, dataclasses.replace(RACK)]},
        {"traits": frozenset({"HW_CPU_X86_VMX"})},
        {"vcpus_total": 5},
        {"ram_mb_used": 1},
        {"disk_gb_reserved": 1},
        {"cpu_allocation_ratio": 1.0},
        {"out_of_service": "disk failure"},
        {"resources": {"VGPU": 1}},
        {"resources_used": {"VGPU": 1}},
    ],
)
def test_kind_differs_by_every_other_field(fields: dict[str, Any]) -> None:
    assert state(**fields).kind != state().kind


def test_kind_changes_when_a_server_is_placed() -> None:
    assert state().with_servers(SERVER).kind != state().kind


def test_by_kind_keeps_the_order_of_hosts() -> None:
    hosts = [state(host="a"), state(host="b", vcpus_total=8), state(host="c")]
    assert by_kind(hosts) == [[hosts[0], hosts[2]], [hosts[1]]]


def test_host_states_count_servers_as_placing_them_one_by_one_does() -> None:
    hosts = {
        "plain": Host("plain", 8, 8192, 80, used={"vcpus": 1}),
        "pinned": Host("pinned", 8, 8192, 80, resources={"PCPU": 4, "VGPU": 2}, used={"VGPU": 1}),
        "empty": Host("empty", 8, 8192, 80),
    }
    flavors = {
        "small": Flavor("small", 1, 1024, 10),
        "pinned": Flavor("pinned", 2, 512, 0, {"hw:cpu_policy": "dedicated"}),
        "gpu": Flavor("gpu", 1, 1024, 5, {"resources:VGPU": "1"}),
    }
    placed = [
        Server(f"{host}-{flavor}-{number}", "s", flavors[flavor], host)
        for host in ("plain", "pinned")
        for flavor in flavors
        for number in range(2)
    ]
    for counted, empty in zip(
        host_states(Cloud(hosts, {}, flavors).with_servers(placed)),
        host_states(Cloud(hosts, {}, flavors)),
        strict=True,
    ):
        here = [server for server in placed if server.host == empty.host]
        expected = functools.reduce(HostState.with_servers, here, empty)
        assert dataclasses.asdict(counted) == dataclasses.asdict(expected)
