"""Nova's filters as far as they are computed from readable data."""

import dataclasses

import pytest

from steelyard.analysis.why.facts import Facts, KnownHost
from steelyard.analysis.why.novas_filters import NovasFilters
from steelyard.cloud import Aggregate, Flavor, Host
from steelyard.cloud.host_state import HostState, Request, host_state
from steelyard.cloud.wanted import WantedServer
from steelyard.groups import Policy, ServerGroup

FLAVOR = Flavor("m1.small", 1, 512, 1)
HOST = KnownHost(name="host1", uuid="1", hypervisor_type="QEMU", architecture="x86_64")


def facts(specs: dict[str, str] | None = None, **wanted: object) -> Facts:
    """Return facts about a server with these extra specs, with one host and no aggregates."""
    flavor = Flavor("m1.small", 1, 512, 1, specs or {})
    server = WantedServer(flavor=flavor, **wanted)  # type: ignore[arg-type]
    return Facts(wanted=server, hosts=[HOST], aggregates=[])


def state(*aggregates: Aggregate, name: str = "host1", out_of_service: str = "") -> HostState:
    host = Host(name, 8, 1024, 10, out_of_service=out_of_service)
    return host_state(host, list(aggregates), [])


def reasons(filters: NovasFilters, host: HostState, about: Facts) -> list[str]:
    request = Request(about.wanted.flavor)
    return [
        verdict.reason
        for each in filters.applied.values()
        for verdict in each.rejections(host, request)
    ]


def of(name: str, about: Facts, host: HostState) -> list[str] | None:
    """Return the reasons of one filter; None if it is not applied."""
    filters = NovasFilters([name], about)
    assert filters.not_applied == ([] if filters.applied else [name])
    return reasons(filters, host, about) if filters.applied else None


def test_compute_filter_rejects_host_out_of_service() -> None:
    assert of("ComputeFilter", facts(), state(out_of_service="down")) == [
        "the host is out of service: down"
    ]
    assert of("ComputeFilter", facts(), state()) == []


def test_compute_filter_is_not_applied_without_hosts() -> None:
    assert of("ComputeFilter", Facts(wanted=WantedServer(flavor=FLAVOR)), state()) is None


def test_extra_specs_filter_names_key_and_offers() -> None:
    about = facts({"ssd": "nvme"})
    offers = Aggregate("fast", {"ssd": "sata"}, ("host1",))
    name = "AggregateInstanceExtraSpecsFilter"
    assert of(name, about, state(offers)) == [
        "the flavor wants 'ssd' = 'nvme', the host's aggregates have 'sata'"
    ]
    assert of(name, about, state()) == [
        "the flavor wants 'ssd' = 'nvme', the host's aggregates do not have it"
    ]
    assert of(name, about, state(Aggregate("fast", {"ssd": "nvme"}, ("host1",)))) == []


def test_extra_specs_filter_names_comparison_that_fails() -> None:
    about = facts({"rank": ">= many"})
    offers = Aggregate("fast", {"rank": "3"}, ("host1",))
    (reason,) = of("AggregateInstanceExtraSpecsFilter", about, state(offers)) or []
    assert reason.startswith("the filter fails: key 'rank': comparing '>= many' with '3'")


def test_tenant_filter_rejects_hosts_of_other_projects() -> None:
    isolated = Aggregate("vip", {"filter_tenant_id": "p1, p2", "filter_tenant_id9": "p3"}, ())
    name = "AggregateMultiTenancyIsolation"
    assert of(name, facts(project="p3"), state(isolated)) == []
    assert of(name, facts(project="p4"), state(isolated)) == [
        "aggregate 'vip' is for other projects than 'p4'"
    ]
    assert of(name, facts(project="p4"), state()) == []
    assert of(name, facts(), state()) is None


@pytest.mark.parametrize(
    ("specs", "applied"),
    [
        ({}, True),
        ({"ssd": "nvme", "hw:cpu_policy": "dedicated"}, True),
        ({"capabilities:cpu_info:arch": "x86_64"}, False),
        ({"free_ram_mb": ">= 1"}, False),
        ({"hw:maxphysaddr_bits": "42"}, False),
    ],
)
def test_capabilities_filter_is_applied_without_its_keys(
    specs: dict[str, str], applied: bool
) -> None:
    assert of("ComputeCapabilitiesFilter", facts(specs), state()) == ([] if applied else None)


@pytest.mark.parametrize(
    ("specs", "properties", "applied"),
    [
        ({"ssd": "nvme"}, {"hw_disk_bus": "scsi"}, True),
        ({"hw:numa_nodes": "2"}, {}, False),
        ({"hw:mem_page_size": "large"}, {}, False),
        ({"hw:pmem": "small"}, {}, False),
        ({"resources:PCPU": "2"}, {}, False),
        ({"resources_A:PCPU": "2"}, {}, False),
        ({"resources:VCPU": "2"}, {}, True),
        ({}, {"hw_cpu_policy": "dedicated"}, False),
    ],
)
def test_numa_filter_is_applied_without_its_keys(
    specs: dict[str, str], properties: dict[str, str], applied: bool
) -> None:
    about = facts(specs, image_properties=properties)
    assert of("NUMATopologyFilter", about, state()) == ([] if applied else None)


def test_pci_filter_is_applied_unless_flavor_requests_devices() -> None:
    assert of("PciPassthroughFilter", facts(), state()) == []
    assert of("PciPassthroughFilter", facts({"pci_passthrough:alias": "gpu:1"}), state()) is None


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, []),
        ({"hw_architecture": "amd64"}, []),
        ({"hw_architecture": "i686"}, []),
        (
            {"architecture": "aarch64"},
            [
                "the image has hw_architecture 'aarch64', the host has 'x86_64' and is "
                "assumed to support no other"
            ],
        ),
        ({"img_hv_type": "kvm"}, []),
        (
            {"img_hv_type": "Xen"},
            [
                "the image has img_hv_type 'xen', the host has 'qemu' and is assumed to support no "
                "other"
            ],
        ),
        ({"hw_vm_mode": "hvm"}, None),
        ({"img_hv_requested_version": ">=6.0"}, None),
    ],
)
def test_image_properties_filter_compares_architecture_and_hypervisor(
    properties: dict[str, str], expected: list[str] | None
) -> None:
    about = facts(image_properties=properties)
    assert of("ImagePropertiesFilter", about, state()) == expected


def test_images_that_name_no_architecture_have_the_default_one() -> None:
    for properties, expected in (({}, 1), ({"architecture": "x86_64"}, 0)):
        about = facts(image_properties=properties)
        filters = NovasFilters(["ImagePropertiesFilter"], about, architecture="aarch64")
        assert len(reasons(filters, state(), about)) == expected


def test_host_of_unknown_architecture_passes() -> None:
    about = facts(image_properties={"hw_architecture": "aarch64"})
    assert of("ImagePropertiesFilter", about, state(name="host9")) == []


def test_filters_on_hints_know_the_hosts_of_servers() -> None:
    wanted = WantedServer(
        flavor=FLAVOR, scheduler_hints={"same_host": ("a",), "different_host": ("b",)}
    )
    about = Facts(wanted=wanted, hosts=[HOST], server_hosts={"a": "host1", "b": "host2"})
    assert of("SameHostFilter", about, state()) == []
    assert of("SameHostFilter", about, state(name="host2")) == [
        "the hint 'same_host' names servers on 'host1'"
    ]
    assert of("DifferentHostFilter", about, state(name="host2")) == [
        "the hint 'different_host' names servers on 'host2'"
    ]
    assert of("DifferentHostFilter", about, state()) == []


@pytest.mark.parametrize("name", ["SameHostFilter", "DifferentHostFilter"])
def test_filter_on_hint_is_not_applied_if_a_server_is_not_known(name: str) -> None:
    hints = {"same_host": ("a", "b"), "different_host": ("a", "b")}
    wanted = WantedServer(flavor=FLAVOR, scheduler_hints=hints)
    about = Facts(wanted=wanted, hosts=[HOST], server_hosts={"a": "host1"})
    assert of(name, about, state()) is None


def test_filters_on_hints_know_servers_on_no_host() -> None:
    hints = {"same_host": ("a",), "different_host": ("a",)}
    wanted = WantedServer(flavor=FLAVOR, scheduler_hints=hints)
    about = Facts(wanted=wanted, hosts=[HOST], server_hosts={"a": ""})
    assert of("SameHostFilter", about, state()) == [
        "the hint 'same_host' names only servers on no host"
    ]
    assert of("DifferentHostFilter", about, state()) == []


def test_filters_on_hints_compare_services() -> None:
    hints = {"same_host": ("a",), "different_host": ("a",)}
    wanted = WantedServer(flavor=FLAVOR, scheduler_hints=hints)
    nodes = [KnownHost(name=name, uuid=name, node_of="ironic") for name in ("host1", "host2")]
    about = Facts(wanted=wanted, hosts=nodes, server_hosts={"a": "ironic"})
    for name in ("host1", "host2"):
        assert of("SameHostFilter", about, state(name=name)) == []
        assert len(of("DifferentHostFilter", about, state(name=name)) or ()) == 1


@pytest.mark.parametrize(
    ("policy", "name", "other"),
    [
        (Policy.AFFINITY, "ServerGroupAffinityFilter", "ServerGroupAntiAffinityFilter"),
        (Policy.ANTI_AFFINITY, "ServerGroupAntiAffinityFilter", "ServerGroupAffinityFilter"),
    ],
)
def test_filter_for_group_is_not_applied_if_a_member_is_not_known(
    policy: Policy, name: str, other: str
) -> None:
    group = ServerGroup("g", policy, members=frozenset({"a", "b"}))
    wanted = WantedServer(flavor=FLAVOR, group=group)
    about = Facts(wanted=wanted, hosts=[HOST], server_hosts={"a": "host1"})
    assert NovasFilters([name, other], about).not_applied == [name]
    whole = dataclasses.replace(about, server_hosts={"a": "host1", "b": ""})
    assert NovasFilters([name, other], whole).not_applied == []


def test_filters_for_groups_are_not_applied_if_the_group_is_not_known() -> None:
    names = ["ServerGroupAffinityFilter", "ServerGroupAntiAffinityFilter"]
    about = Facts(wanted=WantedServer(flavor=FLAVOR), hosts=[HOST], group_known=False)
    assert NovasFilters(names, about).not_applied == names


@pytest.mark.parametrize(
    ("name", "hint"),
    [("JsonFilter", "query"), ("SimpleCIDRAffinityFilter", "build_near_host_ip")],
)
def test_filter_on_hint_is_applied_without_the_hint(name: str, hint: str) -> None:
    assert of(name, facts(), state()) == []
    assert of(name, facts(scheduler_hints={hint: ("x",)}), state()) is None


def test_unknown_filters_are_listed_once_in_their_order() -> None:
    enabled = ["IoOpsFilter", "ComputeFilter", "AcmeFilter", "IoOpsFilter"]
    filters = NovasFilters(enabled, facts())
    assert filters.not_applied == ["IoOpsFilter", "AcmeFilter"]
    assert list(filters.applied) == ["ComputeFilter"]


def test_filters_of_steelyard_need_hosts_and_aggregates() -> None:
    names = ["AggregateInstanceTypeFilter", "ServerGroupAffinityFilter"]
    wanted = WantedServer(flavor=FLAVOR)
    assert NovasFilters(names, Facts(wanted=wanted)).not_applied == names
    unknown = NovasFilters(names, Facts(wanted=wanted, hosts=[HOST]))
    assert unknown.not_applied == ["AggregateInstanceTypeFilter"]
    assert NovasFilters(names, facts()).not_applied == []


@pytest.mark.parametrize(
    "name",
    ["AggregateInstanceExtraSpecsFilter", "AggregateMultiTenancyIsolation", "SameHostFilter"],
)
def test_filters_that_compare_hosts_are_not_applied_without_their_names(name: str) -> None:
    wanted = WantedServer(flavor=FLAVOR, project="p", scheduler_hints={"same_host": ("a",)})
    about = Facts(wanted=wanted, aggregates=[], server_hosts={"a": "host1"})
    assert NovasFilters([name], about).not_applied == [name]
