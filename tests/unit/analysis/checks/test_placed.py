"""Checks of placed servers: their groups, their hosts, and the capacity of these hosts."""

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from oslo_config import cfg

from steelyard import conf as options
from steelyard.cloud import Aggregate, Cloud, Flavor, Host, Server
from steelyard.findings import Finding, Severity
from steelyard.groups import Policy, ServerGroup
from steelyard.traits import Inventory, ResourceProvider
from support.analysis.small_clouds import found

FLAVORS = {"f": Flavor("f", 1, 1024, 10), "ssd": Flavor("ssd", 1, 1024, 10, {"ssd": "nvme"})}


def cloud(
    places: Mapping[str, str],
    policy: Policy = Policy.SOFT_AFFINITY,
    rules: Mapping[str, int] | None = None,
    aggregates: Mapping[str, Aggregate] | None = None,
    flavor: str = "f",
    hosts: Iterable[Host] = (),
) -> Cloud:
    """Return a cloud with servers of a group by name, each on the host that is given for it."""
    usual = [Host(f"h{number}", 8, 8192, 80) for number in range(1, 5)]
    return Cloud(
        {host.name: host for host in [*usual, *hosts]},
        aggregates or {},
        FLAVORS,
        {"g": ServerGroup("g", policy, rules or {})},
    ).with_servers(
        Server(f"uuid-{name}", name, FLAVORS[flavor], host, "g") for name, host in places.items()
    )


def racks(**of_hosts: str) -> dict[str, Aggregate]:
    """Return an aggregate for each rack, from the names of racks by host."""
    return {
        rack: Aggregate(rack, {"rack": rack}, tuple(h for h in of_hosts if of_hosts[h] == rack))
        for rack in of_hosts.values()
    }


def violation(subject: Cloud, conf: cfg.ConfigOpts | None = None) -> Finding | None:
    """Return the finding about the group of the cloud."""
    return found(subject, conf).get(("group-violation", "group 'g'"))


@pytest.fixture
def by_rack() -> cfg.ConfigOpts:
    """Return a configuration with racks and rooms as failure domains."""
    conf = cfg.ConfigOpts()
    options.register(conf)
    conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
    conf.set_override("failure_domains", ["rack", "room"], "steelyard")
    return conf


def test_anti_affinity_names_hosts_with_too_many_servers() -> None:
    finding = violation(cloud({"a": "h2", "b": "h1", "c": "h1"}, Policy.ANTI_AFFINITY))
    assert finding is not None
    assert finding.severity is Severity.ERROR
    assert (
        finding.message == "policy 'anti-affinity': more than 1 server on a host: 'h1' has 'b', 'c'"
    )
    assert finding.details == {
        "policy": "anti-affinity",
        "level": "host",
        "hosts": ["h1"],
        "servers": [
            {"server": name, "uuid": f"uuid-{name}", "host": "h1", "better_host": None}
            for name in "bc"
        ],
    }


def test_anti_affinity_permits_max_server_per_host() -> None:
    places = {"a": "h1", "b": "h1", "c": "h2"}
    rules = {"max_server_per_host": 2}
    assert violation(cloud(places, Policy.ANTI_AFFINITY, rules)) is None
    finding = violation(cloud({**places, "d": "h1"}, Policy.ANTI_AFFINITY, rules))
    assert finding is not None
    assert "more than 2 servers on a host: 'h1' has 'a', 'b', 'd'" in finding.message


def test_violation_of_many_hosts_names_three() -> None:
    places = {f"{host}{number}": f"h{host}" for host in range(1, 5) for number in range(5)}
    finding = violation(cloud(places, Policy.ANTI_AFFINITY))
    assert finding is not None
    assert finding.message == (
        "policy 'anti-affinity': more than 1 server on a host: "
        "'h1' has '10', '11', '12' and 2 more; 'h2' has '20', '21', '22' and 2 more; "
        "'h3' has '30', '31', '32' and 2 more; and 1 more"
    )
    assert finding.details["hosts"] == ["h1", "h2", "h3", "h4"]


def test_affinity_counts_servers_by_host() -> None:
    assert violation(cloud({"a": "h1", "b": "h1"}, Policy.AFFINITY)) is None
    finding = violation(cloud({"a": "h1", "b": "h2", "c": "h2"}, Policy.AFFINITY))
    assert finding is not None
    assert finding.severity is Severity.ERROR
    assert finding.message == "policy 'affinity': its servers are on 2 hosts: 2 on 'h2'; 1 on 'h1'"
    assert [each["server"] for each in finding.details["servers"]] == ["a", "b", "c"]


def test_soft_affinity_names_server_that_would_fit_beside_more_others() -> None:
    finding = violation(cloud({"a": "h1", "b": "h2", "c": "h2"}))
    assert finding is not None
    assert finding.severity is Severity.WARNING
    assert finding.message == (
        "policy 'soft-affinity': 1 of 3 servers would fit a host with more of the others: "
        "'a' on 'h1' would fit 'h2'"
    )
    assert finding.details["servers"] == [
        {"server": "a", "uuid": "uuid-a", "host": "h1", "better_host": "h2"}
    ]


def test_soft_affinity_permits_servers_apart_on_full_hosts() -> None:
    full = Host("h2", 8, 2048, 80)
    assert violation(cloud({"a": "h1", "b": "h2", "c": "h2"}, hosts=[full])) is None
    down = Host("h2", 8, 8192, 80, out_of_service="down")
    assert violation(cloud({"a": "h1", "b": "h2", "c": "h2"}, hosts=[down])) is None


def test_soft_affinity_of_two_servers_concerns_both() -> None:
    finding = violation(cloud({"a": "h1", "b": "h2"}))
    assert finding is not None
    assert finding.message.startswith("policy 'soft-affinity': 2 of 2 servers would fit")
    assert finding.details["hosts"] == ["h1", "h2"]


def test_soft_anti_affinity_compares_without_the_server_itself() -> None:
    policy = Policy.SOFT_ANTI_AFFINITY
    assert violation(cloud({"a": "h1", "b": "h2"}, policy)) is None
    finding = violation(cloud({"a": "h1", "b": "h1"}, policy))
    assert finding is not None
    assert finding.severity is Severity.WARNING
    assert finding.message == (
        "policy 'soft-anti-affinity': 2 of 2 servers would fit a host with fewer of the others: "
        "'a' on 'h1' would fit 'h2'"
    )


def test_soft_anti_affinity_permits_hosts_that_no_other_fits() -> None:
    nvme = {"pool": Aggregate("pool", {"ssd": "nvme"}, ("h1",))}
    policy = Policy.SOFT_ANTI_AFFINITY
    assert violation(cloud({"a": "h1", "b": "h1"}, policy, None, nvme, "ssd")) is None


def test_violation_names_the_farthest_level(by_rack: cfg.ConfigOpts) -> None:
    aggregates = racks(h1="r1", h2="r1", h3="r2", h4="r2")
    policy = Policy.SOFT_ANTI_AFFINITY
    apart = cloud({"a": "h1", "b": "h2"}, policy, None, aggregates)
    finding = violation(apart, by_rack)
    assert finding is not None
    assert finding.details["level"] == "rack"
    assert finding.message == (
        "policy 'soft-anti-affinity': 2 of 2 servers would fit another 'rack' with fewer of "
        "the others: 'a' on 'h1' would fit 'h3'"
    )
    assert violation(apart) is None
    assert violation(cloud({"a": "h1", "b": "h3"}, policy, None, aggregates), by_rack) is None
    together = cloud({"a": "h1", "b": "h3", "c": "h1"}, policy, None, aggregates)
    finding = violation(together, by_rack)
    assert finding is not None
    assert finding.details["level"] == "host"  # in another rack, it would have one other, too
    assert [each["better_host"] for each in finding.details["servers"]] == ["h4", "h4"]


def test_soft_affinity_prefers_the_domain_with_most_others(by_rack: cfg.ConfigOpts) -> None:
    aggregates = racks(h1="r1", h2="r1", h3="r2", h4="r2")
    places = {"a": "h1", "b": "h3", "c": "h4"}
    finding = violation(cloud(places, Policy.SOFT_AFFINITY, None, aggregates), by_rack)
    assert finding is not None
    assert finding.details["level"] == "rack"
    assert [each["server"] for each in finding.details["servers"]] == ["a"]


@pytest.mark.parametrize("policy", [*Policy])
def test_group_of_one_server_violates_no_policy(policy: Policy) -> None:
    assert violation(cloud({"a": "h1"}, policy)) is None
    assert violation(cloud({}, policy)) is None


def test_misplaced_server_names_the_reason() -> None:
    sata = {
        "pool": Aggregate("pool", {"ssd": "sata"}, ("h1",)),
        "fast": Aggregate("fast", {"ssd": "nvme"}, ("h2",)),
    }
    subject = cloud({"a": "h1", "b": "h2"}, Policy.ANTI_AFFINITY, None, sata, "ssd")
    findings = found(subject)
    assert set(findings) == {("misplaced-server", "server 'a'")}
    (finding,) = findings.values()
    reason = "key 'ssd': flavor wants 'nvme', aggregate 'pool' offers 'sata'"
    assert finding.severity is Severity.WARNING
    assert finding.message == (
        f"it is on 'h1', which would reject flavor 'ssd' even if the host were empty: {reason}"
    )
    assert finding.details == {"uuid": "uuid-a", "flavor": "ssd", "host": "h1", "reason": reason}


def test_server_on_full_host_or_out_of_service_is_not_misplaced() -> None:
    hosts = [Host("h1", 8, 1024, 80), Host("h2", 8, 1024, 80, out_of_service="down")]
    findings = found(cloud({"a": "h1", "b": "h2"}, Policy.ANTI_AFFINITY, hosts=hosts))
    assert "misplaced-server" not in {check for check, _ in findings}


def test_server_of_unlisted_flavor_is_judged_by_its_own() -> None:
    subject = cloud({"a": "h1"})
    huge = Server("s", "s", Flavor("gone", 1, 9216, 10), "h1")
    findings = found(subject.with_servers([huge]))
    assert "RAM: flavor wants 9 GiB" in findings["misplaced-server", "server 's'"].message


def overcommitted(flavor: Flavor, **host: Any) -> Finding | None:
    """Return the finding about the one host of a cloud with two servers of the flavor on it."""
    hosts = {"h": Host("h", 8, 8192, 80, **host), "large": Host("large", 99, 99999, 999)}
    subject = Cloud(hosts, {}, {"f": flavor}).with_servers(
        Server(f"s{number}", f"s{number}", flavor, "h") for number in range(2)
    )
    return found(subject).get(("overcommitted-host", "host 'h'"))


def test_overcommitted_host_names_the_amounts() -> None:
    finding = overcommitted(Flavor("f", 8, 4097, 40), allocation_ratios={"vcpus": 1.5})
    assert finding is not None
    assert finding.severity is Severity.WARNING
    assert finding.message == (
        "more is allocated than the host has: vCPUs: 16 of 12, RAM: 8.1 of 8 GiB"
    )
    assert finding.details == {
        "resources": [
            {"resource_class": "VCPU", "allocated": 16, "limit": 12},
            {"resource_class": "MEMORY_MB", "allocated": 8194, "limit": 8192},
        ]
    }


def test_fully_allocated_host_is_not_overcommitted() -> None:
    assert overcommitted(Flavor("f", 8, 4096, 40), allocation_ratios={"vcpus": 2.0}) is None


def test_reserved_amounts_count_for_overcommitment() -> None:
    finding = overcommitted(Flavor("f", 1, 4096, 40), reserved={"disk_gb": 1})
    assert finding is not None
    assert finding.message.endswith("has: disk: 80 of 79 GiB")


def test_other_resources_count_for_overcommitment() -> None:
    gpu = Flavor("f", 1, 1024, 10, {"resources:VGPU": "1"})
    assert overcommitted(gpu, resources={"VGPU": 2}) is None
    for resources, limit in (({"VGPU": 1}, "1"), ({}, "0")):
        finding = overcommitted(gpu, resources=resources)
        assert finding is not None
        assert finding.message.endswith(f"has: VGPU: 2 of {limit}")


def test_nested_providers_count_for_overcommitment() -> None:
    gpu = Flavor("f", 1, 1024, 10, {"resources:VGPU": "1"})
    uuid = "8b2f1f2a-7c9e-4a63-9d2b-0a3d1f0e5c11"
    for total, is_over in ((2, False), (1, True)):
        nested = ResourceProvider(uuid, "h_gpu", inventories={"VGPU": Inventory(total)})
        assert (overcommitted(gpu, providers=(nested,)) is not None) is is_over
