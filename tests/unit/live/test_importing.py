"""Conversion of a live cloud into a cloud file, with remarks on differences."""

import dataclasses
from typing import Any

import pytest

from steelyard.cloud import Cloud
from steelyard.live.answers import (
    Hypervisor,
    ListedProvider,
    Observed,
    Provider,
    SeenAggregate,
    SeenFlavor,
    SeenGroup,
    SeenInventory,
    SeenServer,
    inventories,
    listed,
    traits,
    usages,
)
from steelyard.live.importing import imported
from steelyard.traits import ResourceProvider

CARD = ResourceProvider("5e08ea53-c4c6-448e-9334-ac4953de3cfa", "card")
SMALL = SeenFlavor("f", "small", 1, 1024, 10, {"ssd": "nvme"})
KEPT = dataclasses.replace(SMALL, uuid="")
AMOUNTS = {"vcpus": 8, "ram_mb": 8192, "disk_gb": 100}
HAS = {"VCPU": SeenInventory(8), "MEMORY_MB": SeenInventory(8192), "DISK_GB": SeenInventory(100)}


def hypervisor(name: str, node: str = "", **more: Any) -> Hypervisor:
    node = node or f"{name}.example"
    made = Hypervisor(f"uuid-{node}", node, name, "", AMOUNTS, AMOUNTS)
    return dataclasses.replace(made, **more)


def server(name: str, host: str | None, node: str = "", **more: Any) -> SeenServer:
    made = SeenServer(f"uuid-{name}", name, host, node, KEPT)
    return dataclasses.replace(made, **more)


def provider(
    has: dict[str, SeenInventory] | None = None, used: dict[str, int] | None = None, **more: Any
) -> Provider:
    return Provider(HAS if has is None else has, used or {}, frozenset(), **more)


def test_hosts_are_named_after_their_compute_service() -> None:
    seen = Observed(
        [hypervisor("b"), hypervisor("a", out_of_service="down")],
        aggregates=[SeenAggregate("u", "rack", {"ssd": "nvme"}, ["b", "a"])],
    )
    cloud = imported(seen).cloud
    assert list(cloud.hosts) == ["a", "b"]
    assert cloud.hosts["b"].uuid == "uuid-b.example"
    assert cloud.hosts["a"].out_of_service == "down"
    assert cloud.aggregates["rack"].hosts == ("b", "a")


def test_each_node_of_a_compute_service_is_a_host() -> None:
    seen = Observed(
        [hypervisor("ironic", node="n2"), hypervisor("ironic", node="n1"), hypervisor("kvm")],
        aggregates=[SeenAggregate("u", "metal", {}, ["ironic"])],
        flavors=[SMALL],
        servers=[server("s", "ironic", "n2"), server("t", "ironic", "n9"), server("v", "kvm")],
    )
    cloud, remarks = imported(seen).cloud, imported(seen).remarks
    assert list(cloud.hosts) == ["kvm", "n1", "n2"]
    assert cloud.aggregates["metal"].hosts == ("n1", "n2")
    assert {each.name: each.host for each in cloud.servers.values()} == {"s": "n2", "v": "kvm"}
    assert remarks == ["not in the file: 1 server on hosts that Nova does not list"]


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


def test_servers_without_known_host_are_left_out_and_counted() -> None:
    seen = Observed(
        [hypervisor("a")],
        flavors=[SMALL],
        servers=[
            server("s", "a"),
            server("b", None),
            server("c", None),
            server("h", ""),
            server("l", "gone"),
        ],
    )
    result = imported(seen)
    assert [each.name for each in result.cloud.servers.values()] == ["s"]
    assert result.remarks == [
        "not in the file: 2 servers on no host, being built, shelved or in error",
        "not in the file: 1 server whose host Nova does not show without the policy rule "
        "os_compute_api:os-extended-server-attributes",
        "not in the file: 1 server on hosts that Nova does not list",
    ]


def cloud_of(flavors: list[SeenFlavor], *kept: SeenFlavor, **more: Any) -> Cloud:
    servers = [server(f"s{i}", "a", flavor=each, **more) for i, each in enumerate(kept)]
    return imported(Observed([hypervisor("a")], flavors=flavors, servers=servers)).cloud


def test_server_with_unchanged_flavor_keeps_it() -> None:
    cloud = cloud_of([SMALL], KEPT, dataclasses.replace(KEPT, extra_specs=None))
    assert list(cloud.flavors) == ["small"]
    assert {each.flavor.name for each in cloud.servers.values()} == {"small"}


def test_servers_with_changed_flavor_share_added_flavor() -> None:
    larger = dataclasses.replace(KEPT, ram_mb=2048)
    cloud = cloud_of(
        [SMALL, dataclasses.replace(SMALL, uuid="g", name="small, as servers have it")],
        larger,
        larger,
        dataclasses.replace(KEPT, extra_specs={}),
        dataclasses.replace(KEPT, name="gone"),
        dataclasses.replace(KEPT, name="\n"),
    )
    assert [each.flavor.name for each in cloud.servers.values()] == [
        "small, as servers have it (2)",
        "small, as servers have it (2)",
        "small, as servers have it (3)",
        "gone, as servers have it",
        "a flavor, as servers have it",
    ]


def test_hidden_extra_specs_come_from_flavor_of_the_same_name() -> None:
    cloud = cloud_of([SMALL], dataclasses.replace(KEPT, ram_mb=1, extra_specs=None))
    (kept,) = (each.flavor for each in cloud.servers.values())
    assert kept.extra_specs == {"ssd": "nvme"}
    lost = dataclasses.replace(KEPT, name="gone", extra_specs=None)
    assert cloud_of([SMALL], lost).flavor("gone, as servers have it").extra_specs == {}


def test_server_booted_from_volume_has_added_flavor() -> None:
    kept = dataclasses.replace(KEPT, disk_gb=0)
    assert cloud_of([SMALL], kept, from_volume=True).flavor("small, from volume").root_gb == 0
    none = dataclasses.replace(SMALL, disk_gb=0)
    assert list(cloud_of([none], kept, from_volume=True).flavors) == ["small"]


def test_duplicate_and_unprintable_names_are_replaced() -> None:
    twice = [server("twin", "a", uuid="u1"), server("twin", "a", uuid="u2")]
    odd = [server("a\nb", "a", uuid="u3"), server("", "a", uuid="u4")]
    taken = [server("twin (u1)", "a", uuid="u5"), server("u4", "a", uuid="u6")]
    seen = Observed([hypervisor("a")], flavors=[SMALL], servers=[*twice, *odd, *taken])
    names = {uuid: each.name for uuid, each in imported(seen).cloud.servers.items()}
    assert names == {
        "u1": "twin (u1) (u1)",
        "u2": "twin (u2)",
        "u3": "u3",
        "u4": "u4 (u4)",
        "u5": "twin (u1)",
        "u6": "u4",
    }


def test_server_groups_contain_imported_servers() -> None:
    groups = [
        SeenGroup("g1", "web", "anti-affinity", {"max_server_per_host": 3}, ["uuid-s", "gone"]),
        SeenGroup("g2", "web", "affinity", {}, []),
        SeenGroup("g3", "old", None, {}, ["uuid-t"]),
    ]
    servers = [server("s", "a"), server("t", "a")]
    seen = Observed([hypervisor("a")], flavors=[SMALL], groups=groups, servers=servers)
    result = imported(seen)
    assert list(result.cloud.server_groups) == ["web (g1)", "web (g2)"]
    group = result.cloud.server_group("web (g1)")
    assert (group.uuid, group.rules) == ("g1", {"max_server_per_host": 3})
    assert group.members == {"uuid-s"}
    assert group.hosts == {"a"}
    assert result.cloud.server("t").group is None
    (remark,) = result.remarks
    assert remark.startswith("not in the file: server group 'old': unknown policy None")


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


RECORD = {
    "id": "u",
    "hypervisor_hostname": "n",
    "service": {"host": "h", "disabled_reason": None},
    "status": "enabled",
    "state": "up",
    **{f"{name}{end}": 1 for name in ("vcpus", "memory_mb", "local_gb") for end in ("", "_used")},
}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, ""),
        ({"status": "disabled"}, "disabled"),
        ({"state": "down"}, "down"),
        (
            {
                "status": "disabled",
                "state": "down",
                "service": {"host": "h", "disabled_reason": "x"},
            },
            "disabled: x; down",
        ),
    ],
)
def test_hypervisor_state_gives_out_of_service_reason(more: dict[str, Any], said: str) -> None:
    assert Hypervisor.of(RECORD | more).out_of_service == said


@pytest.mark.parametrize("amount", [-1, None, "1", 1.5, True, 10**15])
def test_hypervisor_rejects_invalid_amount(amount: Any) -> None:
    with pytest.raises(ValueError, match="expected a whole number from 0 to 999999999999999"):
        Hypervisor.of(RECORD | {"vcpus": amount})


def test_hypervisor_rejects_invalid_text() -> None:
    with pytest.raises(ValueError, match="id: expected text, got None"):
        Hypervisor.of(RECORD | {"id": None})


@pytest.mark.parametrize("ratio", [float("inf"), float("nan"), -1, 10**400, "2", None])
def test_inventories_reject_invalid_ratio(ratio: Any) -> None:
    answer = {"inventories": {"VCPU": {"total": 8, "allocation_ratio": ratio}}}
    with pytest.raises(ValueError, match=r"^VCPU: allocation_ratio: expected a finite number"):
        inventories(answer)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"extra_specs": {"ssd": 7}}, "ssd: expected text, got 7"),
        ({"extra_specs": ["ssd"]}, r"extra_specs: expected an object, got \['ssd'\]"),
        ({"swap": "much"}, "swap: expected a whole number"),
        ({"vcpus": None}, "vcpus: expected a whole number"),
    ],
)
def test_flavor_error_names_the_field(more: dict[str, Any], said: str) -> None:
    record = {"id": "u", "name": "n", "vcpus": 1, "ram": 1, "disk": 1}
    assert SeenFlavor.of(record).vcpus == 1
    with pytest.raises(ValueError, match=f"^{said}"):
        SeenFlavor.of(record | more)
    with pytest.raises(ValueError, match=r"^ram: missing$"):
        SeenFlavor.of({name: record[name] for name in ("id", "name", "vcpus", "disk")})


def test_null_extra_spec_becomes_empty() -> None:
    record = {"id": "u", "name": "n", "vcpus": 1, "ram": 1, "disk": 1, "extra_specs": {"a": None}}
    assert SeenFlavor.of(record).extra_specs == {"a": ""}


def test_lone_surrogate_is_escaped() -> None:
    record = RECORD | {"service": {"host": "h", "disabled_reason": "\ud800"}, "status": "disabled"}
    assert Hypervisor.of(record).out_of_service == "disabled: \\ud800"


@pytest.mark.parametrize(
    ("swap", "image", "disk"), [("", {}, 13), (0, {}, 13), (1, {}, 14), (2048, "", 5)]
)
def test_server_disk_adds_local_disks(swap: Any, image: Any, disk: int) -> None:
    flavor = {"original_name": "f", "vcpus": 1, "ram": 1, "disk": 10, "ephemeral": 3, "swap": swap}
    found = SeenServer.of({"id": "u", "name": "s", "flavor": flavor, "image": image})
    assert found.flavor.disk_gb == disk
    assert (found.host, found.from_volume) == ("", image == "")
    assert found.flavor.extra_specs is None


def test_placement_responses_are_parsed() -> None:
    whole = {"total": 8, "reserved": 1, "allocation_ratio": 4.0, "max_unit": 8, "min_unit": 1}
    found = inventories({"inventories": {"VCPU": whole, "PCPU": {"total": 4, "max_unit": 2}}})
    assert found == {"VCPU": SeenInventory(8, 1, 4.0, 1, 8), "PCPU": SeenInventory(4, max_unit=2)}
    assert usages({"usages": {"VCPU": 3}}) == {"VCPU": 3}
    assert traits({"traits": ["CUSTOM_A"]}) == {"CUSTOM_A"}
    records = [
        {"uuid": "a", "root_provider_uuid": None, "name": "node"},
        {"uuid": "b", "root_provider_uuid": "a", "parent_provider_uuid": "a"},
    ]
    assert listed({"resource_providers": records}) == {
        "a": ListedProvider("a", "node", None, "a"),
        "b": ListedProvider("b", "", "a", "a"),
    }
