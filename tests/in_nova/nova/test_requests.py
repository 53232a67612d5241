"""The requests of Nova's own code, and the state of Nova after them."""

import logging
from typing import Any
from urllib.parse import parse_qsl

import nova.conf
import pytest
from nova import objects
from nova.objects import service

from steelyard.cloud import Aggregate, Flavor
from steelyard.cloud.wanted import WantedServer
from steelyard.groups import Policy, ServerGroup
from steelyard.nova.requests import SentRequests, sent_requests

NODE, OTHER, NORTH, TENANT, ISOLATED = (
    f"5e08ea53-c4c6-448e-9334-ac4953de3cf{digit}" for digit in "abcde"
)
AGGREGATES = [
    Aggregate("north", {"availability_zone": "north"}, (), NORTH),
    Aggregate("tenant", {"filter_tenant_id": "p1"}, (), TENANT),
    Aggregate("isolated", {"trait:CUSTOM_A": "required"}, (), ISOLATED),
]
FLAVOR = Flavor("m1", 2, 512, 10)


def sent(wanted: WantedServer, **options: object) -> SentRequests:
    nodes = {"one": [NODE], "two": [NODE, OTHER]}
    return sent_requests(wanted, aggregates=AGGREGATES, nodes=nodes, options=options)


def query(wanted: WantedServer, **options: object) -> list[tuple[str, str]]:
    (text,), failure = sent(wanted, **options)
    assert not failure
    return parse_qsl(text)


def test_request_has_the_sizes_of_the_flavor() -> None:
    assert dict(query(WantedServer(flavor=FLAVOR))) == {
        "limit": "1000",
        "resources": "DISK_GB:10,MEMORY_MB:512,VCPU:2",
        "root_required": "!COMPUTE_STATUS_DISABLED",
    }


def test_request_has_the_given_aggregates() -> None:
    wanted = WantedServer(flavor=FLAVOR, project="p1", availability_zone="north")
    found = query(
        wanted,
        limit_tenants_to_placement_aggregate=True,
        enable_isolated_aggregate_filtering=True,
    )
    assert {value for name, value in found if name == "member_of"} == {
        f"in:{NORTH}",
        f"in:{TENANT}",
        f"!in:{ISOLATED}",
    }


def test_request_has_the_tree_of_the_host() -> None:
    assert ("in_tree", NODE) in query(WantedServer(flavor=FLAVOR, host="one"))
    names = dict(query(WantedServer(flavor=FLAVOR, host="two")))
    assert names.keys().isdisjoint({"in_tree", "limit"})
    assert "No such host" in sent(WantedServer(flavor=FLAVOR, host="three")).failure


def test_request_for_a_group_has_no_limit() -> None:
    group = ServerGroup("g", Policy.AFFINITY, uuid=OTHER)
    assert "limit" not in dict(query(WantedServer(flavor=FLAVOR, group=group)))


@pytest.mark.parametrize(
    ("policy", "options", "reason"),
    [
        (Policy.AFFINITY, {"enabled_filters": []}, "ServerGroupAffinityFilter not configured"),
        (
            Policy.SOFT_ANTI_AFFINITY,
            {"weight_classes": ["nova.scheduler.weights.ram.RAMWeigher"]},
            "ServerGroupSoftAntiAffinityWeigher not configured",
        ),
    ],
)
def test_request_for_a_group_needs_the_plugin_of_its_policy(
    policy: Policy, options: dict[str, object], reason: str
) -> None:
    wanted = WantedServer(flavor=FLAVOR, group=ServerGroup("g", policy, uuid=OTHER))
    assert reason in sent(wanted, **options).failure
    assert not sent(wanted).failure


def test_dedicated_cpus_make_two_requests() -> None:
    wanted = WantedServer(flavor=Flavor("m1", 2, 512, 10, {"hw:cpu_policy": "dedicated"}))
    first, second = sent(wanted).query_strings
    assert ("PCPU" in first, "PCPU" in second) == (True, False)
    assert sent(wanted, disable_fallback_pcpu_query=True).query_strings == [first]


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        (WantedServer(flavor=FLAVOR, image_properties={"hw_disk_bus": "odd"}), "odd"),
        (WantedServer(flavor=Flavor("m1", 2, 512, 1, {"hw:cpu_policy": "odd"})), "odd"),
    ],
)
def test_error_of_nova_is_the_failure(wanted: WantedServer, reason: str) -> None:
    found = sent(wanted)
    assert not found.query_strings
    assert reason in found.failure


def state() -> tuple[Any, ...]:
    return (
        vars(objects.AggregateList)["get_by_metadata"],
        vars(objects.AggregateList)["get_non_matching_by_metadata_keys"],
        vars(objects.InstanceGroup)["get_by_instance_uuid"],
        vars(objects.InstanceGroup)["get_hosts"],
        service.get_minimum_version_all_cells,
        nova.conf.CONF.scheduler.max_placement_results,
        logging.getLogger("nova").level,
    )


def test_nova_is_unchanged_afterwards() -> None:
    before = state()
    assert ("limit", "5") in query(WantedServer(flavor=FLAVOR), max_placement_results=5)
    assert sent(WantedServer(flavor=FLAVOR, host="three")).failure
    assert state() == before
