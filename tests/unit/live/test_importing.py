"""Conversion of a live cloud into a cloud file, with remarks on differences."""

import dataclasses
from typing import Any

from steelyard.cloud import Cloud
from steelyard.live.answers import Observed, SeenAggregate, SeenFlavor, SeenGroup
from steelyard.live.importing import imported
from support.live.observed import KEPT, SMALL, hypervisor, server


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
