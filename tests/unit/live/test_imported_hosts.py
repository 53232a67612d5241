"""Hosts of a live cloud in a cloud file, with remarks on their amounts."""

import dataclasses
from typing import Any

import pytest

from steelyard.live.answers import Observed, Provider, SeenAggregate, SeenFlavor, SeenInventory
from steelyard.live.importing import imported
from steelyard.traits import ResourceProvider
from support.live.observed import HAS, SMALL, hypervisor, provider, server

CARD = ResourceProvider("5e08ea53-c4c6-448e-9334-ac4953de3cfa", "card")


def test_used_amounts_exclude_imported_servers() -> None:
    ratio = SeenInventory(8, reserved=1, allocation_ratio=4.0)
    used = {"VCPU": 3, "MEMORY_MB": 1024, "DISK_GB": 4}
    seen = Observed(
        [hypervisor("a")],
        flavors=[SMALL],
        servers=[server("s", "a")],
        providers={"uuid-a.example": provider(HAS | {"VCPU": ratio}, used)},
    )
    host = imported(seen).cloud.hosts["a"]
    assert host.used == {"vcpus": 2}
    assert host.reserved == {"vcpus": 1}
    assert host.allocation_ratios == {"vcpus": 4.0, "ram_mb": 1.0, "disk_gb": 1.0}
    (remark,) = imported(seen).remarks
    assert remark.startswith("less disk_gb used than the flavors of the servers need")
    assert "1 host;" in remark


@pytest.mark.parametrize(
    "providers",
    [None, {}, {"uuid-a.example": Provider(None, None, None)}],
)
def test_import_without_placement_uses_amounts_of_nova(providers: Any) -> None:
    seen = Observed(
        [hypervisor("a", used={"vcpus": 1, "ram_mb": 1536, "disk_gb": 10})],
        flavors=[SMALL],
        servers=[server("s", "a")],
        providers=providers,
    )
    host = imported(seen).cloud.hosts["a"]
    assert (host.vcpus, host.ram_mb, host.disk_gb) == (8, 8192, 100)
    assert (host.used, host.allocation_ratios, host.traits) == ({"ram_mb": 512}, {}, frozenset())
    assert len(imported(seen).remarks) == (1 if providers == {} else 0)


def test_import_without_usages_subtracts_reserved_memory() -> None:
    has = HAS | {"MEMORY_MB": SeenInventory(8192, reserved=512)}
    seen = Observed(
        [hypervisor("a", used={"vcpus": 0, "ram_mb": 512, "disk_gb": 0})],
        providers={"uuid-a.example": Provider(has, None, frozenset())},
    )
    assert imported(seen).cloud.hosts["a"].used == {}


def test_omitted_data_has_one_remark_for_all_hosts() -> None:
    others = {"PCPU": SeenInventory(4), "CUSTOM_FPGA": SeenInventory(2, step_size=2)}
    limited = {"MEMORY_MB": SeenInventory(8192, max_unit=4096), "VCPU": SeenInventory(8)}
    seen = Observed(
        [hypervisor("a"), hypervisor("b"), hypervisor("c")],
        aggregates=[SeenAggregate("u", "rack", {}, ["a", "z", "y"])],
        providers={
            "uuid-a.example": provider(HAS | others, nested=(CARD,)),
            "uuid-b.example": provider(limited | {"PCPU": SeenInventory(4)}),
        },
        unseen=["a message"],
    )
    result = imported(seen)
    assert result.remarks == [
        "a message",
        "no resource provider in Placement: 1 host; the file has the amounts that Nova reports, "
        "and no traits",
        "no DISK_GB in Placement: 1 host; in the file, flavors that need it do not fit there",
        "filters do not read min_unit, max_unit and step_size, which limit CUSTOM_FPGA on 1 host",
        "filters do not read min_unit, max_unit and step_size, which limit MEMORY_MB on 1 host",
        "filters do not read the nested resource providers of 1 host; flavors that need their "
        "resources or traits do not fit there in the file",
        "not in the file: 2 hosts of aggregates, such as 'y', that Nova does not list as "
        "hypervisors",
    ]
    assert result.cloud.hosts["b"].disk_gb == 0
    assert result.cloud.hosts["a"].resources == {"PCPU": 4, "CUSTOM_FPGA": 2}
    assert result.cloud.hosts["a"].step_sizes == {"CUSTOM_FPGA": 2}
    assert result.cloud.hosts["a"].providers == (CARD,)
    assert result.cloud.hosts["b"].max_units["ram_mb"] == 4096


def test_used_amounts_follow_extra_specs() -> None:
    specs = {"hw:cpu_policy": "dedicated", "resources:DISK_GB": "0", "resources:VGPU": "2"}
    flavor = SeenFlavor("f", "gpu", 2, 1024, 10, specs)
    inventories = {
        "VCPU": SeenInventory(8),
        "PCPU": SeenInventory(8, reserved=1),
        "MEMORY_MB": SeenInventory(8192),
        "DISK_GB": SeenInventory(100),
        "VGPU": SeenInventory(4, allocation_ratio=1.5),
    }
    used = {"PCPU": 3, "MEMORY_MB": 1024, "VGPU": 3}
    made = dataclasses.replace(server("s", "a"), flavor=flavor)
    seen = Observed(
        [hypervisor("a")],
        flavors=[flavor],
        servers=[made],
        providers={"uuid-a.example": Provider(inventories, used, frozenset())},
    )
    result = imported(seen)
    assert result.remarks == []
    host = result.cloud.hosts["a"]
    assert host.resources == {"PCPU": 7, "VGPU": 6}
    assert host.used == {"PCPU": 1, "VGPU": 1}
