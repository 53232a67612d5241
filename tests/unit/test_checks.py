"""Each check by a cloud in which it finds something, and one in which it does not."""

import dataclasses
from typing import Any

import pytest
from oslo_config import cfg

from steelyard.desk.checks import Finding, check
from steelyard.groups import Policy, ServerGroup
from steelyard.scheduler import Aggregate, Cloud, Flavor, Host, Server
from steelyard.severity import Severity

TRAIT = "HW_CPU_X86_AVX2"


def cloud(
    aggregates: dict[str, dict[str, str]], flavors: dict[str, dict[str, str]], **hosts: Host
) -> Cloud:
    """A cloud whose aggregates all have all of its hosts, or those that their names begin with."""
    hosts = hosts or {"host": Host("host", 8, 8192, 80, frozenset({TRAIT}))}
    return Cloud(
        hosts,
        {
            name: Aggregate(name, said, tuple(hosts if name not in hosts else [name]))
            for name, said in aggregates.items()
        },
        {name: Flavor(name, 1, 1024, 10, specs) for name, specs in flavors.items()},
    )


def found(subject: Cloud, conf: Any = None) -> dict[tuple[str, str], Finding]:
    """The findings by what was looked for and where it is."""
    findings = check(subject, conf or cfg.ConfigOpts())
    by_place = {(str(finding.check), finding.where): finding for finding in findings}
    assert len(by_place) == len(findings)
    return by_place


FORCED = {"force_metadata_check": "true"}
PLAIN = {"f": {"ssd": "nvme"}}
FLAVOR = "flavor 'f', extra spec"


@pytest.mark.parametrize(
    ("aggregates", "flavors", "name", "where", "severity", "why", "remedy"),
    [
        (
            {"a": {"ssd": "nvme"}},
            {"f": {"ssd": ">= many"}},
            "malformed-value",
            f"{FLAVOR} 'ssd'",
            Severity.ERROR,
            "'many' is not a finite number",
            "until then the flavor fits no host",
        ),
        (
            {"a": {"hw:cpu_policy": "dedicated"}},
            {"f": {"hw:cpu_policy": "<or>"}},
            "malformed-value",
            f"{FLAVOR} 'hw:cpu_policy'",
            Severity.ERROR,
            "'<or>' has nothing behind it",
            "the flavor fits no host",
        ),
        (
            {"a": {"ssd": "nvme", **FORCED, "gpu": "<or>"}},
            PLAIN,
            "malformed-value",
            "aggregate 'a', key 'gpu'",
            Severity.ERROR,
            "'<or>' has nothing behind it",
            "until then no flavor fits its hosts",
        ),
        (
            {"a": {"ssd": "nvme", **FORCED, "availability_zone": "= x"}},
            PLAIN,
            "malformed-value",
            "aggregate 'a', key 'availability_zone'",
            Severity.ERROR,
            "'x' is not a finite number",
            "until then no flavor with the key fits its hosts",
        ),
        (
            {"a": {"ssd": "<or>"}},
            {"f": {"ssd": "<or>= 4"}},
            "doubtful-value",
            f"{FLAVOR} 'ssd'",
            Severity.WARNING,
            "is taken literally",
            "one thing only",
        ),
        (
            {"a": {"ssd": "nvme", "force_metadata_check": "yes please"}},
            PLAIN,
            "unrecognised-flag",
            "aggregate 'a', key 'force_metadata_check'",
            Severity.WARNING,
            "'yes please' is neither true nor false",
            "write 'true' or 'false'",
        ),
        (
            {"a": {"ssd": "nvme, <or> sata <or> ~"}},
            PLAIN,
            "expression-not-forced",
            "aggregate 'a', key 'ssd'",
            Severity.WARNING,
            "'<or> sata <or> ~' is taken literally",
            "set force_metadata_check to 'true'",
        ),
        (
            {"a": {"aggregate_instance_extra_specs:ssd": "nvme"}},
            PLAIN,
            "scope-not-forced",
            "aggregate 'a', key 'aggregate_instance_extra_specs:ssd'",
            Severity.WARNING,
            "taken with the scope",
            "call the key 'ssd'",
        ),
        (
            {"a": {"ssd": "nvme"}},
            {"f": {"sdd": "nvme"}},
            "near-miss-key",
            f"{FLAVOR} 'sdd'",
            Severity.WARNING,
            "no aggregate has the key 'sdd', but there is 'ssd'",
            "write 'ssd'",
        ),
        (
            {"a": {"ssd": "nvme"}, "b": {"SSD": "nvme"}},
            PLAIN,
            "near-miss-key",
            "aggregate 'b', key 'SSD'",
            Severity.WARNING,
            "no flavor has the key 'SSD', but there is 'ssd'",
            "write 'ssd'",
        ),
        (
            {"a": {"ssd": "true"}},
            {"f": {"ssd": "<or> True <or> ~"}},
            "near-miss-value",
            f"{FLAVOR} 'ssd'",
            Severity.WARNING,
            "no aggregate has the value 'True', but there is 'true'",
            "write 'true'",
        ),
        (
            {"a": {"ssd": "nvme"}},
            {"f": {"ssd": "<or> nvem <or> ~"}},
            "near-miss-value",
            f"{FLAVOR} 'ssd'",
            Severity.WARNING,
            "no aggregate has the value 'nvem', but there is 'nvme'",
            "write 'nvme'",
        ),
        (
            {"a": {"force_metadta_check": "true"}},
            {"f": {}},
            "near-miss-key",
            "aggregate 'a', key 'force_metadta_check'",
            Severity.WARNING,
            "the key 'force_metadta_check' forces nothing",
            "write 'force_metadata_check'",
        ),
        (
            {"a": {"rack": "r1"}},
            {"f": {"aggregate_instance_extra_spec:rack": "r1"}},
            "near-miss-key",
            f"{FLAVOR} 'aggregate_instance_extra_spec:rack'",
            Severity.WARNING,
            "the namespace 'aggregate_instance_extra_spec' means nothing",
            "write 'aggregate_instance_extra_specs'",
        ),
        (
            {},
            {"f": {"Trait:CUSTOM_FAST": "required"}},
            "near-miss-key",
            f"{FLAVOR} 'Trait:CUSTOM_FAST'",
            Severity.WARNING,
            "the namespace 'Trait' means nothing",
            "write 'trait'",
        ),
        (
            {"a": {"hw:cpu_polcy": "dedicated"}},
            {"f": {"hw:cpu_policy": "dedicated"}},
            "near-miss-key",
            f"{FLAVOR} 'hw:cpu_policy'",
            Severity.WARNING,
            "no aggregate has the key 'hw:cpu_policy', but there is 'hw:cpu_polcy'",
            "if that is what is meant",
        ),
        (
            {},
            {"f": {"force_metadata_check": "true"}},
            "misplaced-flag",
            f"{FLAVOR} 'force_metadata_check'",
            Severity.WARNING,
            "the flag belongs to aggregates",
            "take it out of the flavor",
        ),
        (
            {"a": {"os_type": "windows", **FORCED}},
            {"f": {}},
            "key-nova-reads",
            "aggregate 'a', key 'os_type'",
            Severity.WARNING,
            "it is there for AggregateImagePropertiesIsolation",
            "force_check_ignored_keys",
        ),
        (
            {},
            {"f": {"group_policy": "none"}},
            "key-nova-reads",
            f"{FLAVOR} 'group_policy'",
            Severity.WARNING,
            "it is there for Placement",
            "offer 'group_policy' in the aggregates",
        ),
        (
            {"a": {"zone": "north"}, "b": {"zone": "North"}},
            {"f": {"zone": "north"}},
            "near-miss-value",
            "aggregate 'b', key 'zone'",
            Severity.WARNING,
            "no flavor has the value 'North', but there is 'north'",
            "write 'north'",
        ),
        (
            {},
            {"f": {"trait:HW_CPU_X86_AVX_2": "required"}},
            "near-miss-trait",
            "flavor 'f', extra spec 'trait:HW_CPU_X86_AVX_2'",
            Severity.WARNING,
            f"but there is '{TRAIT}'",
            f"write '{TRAIT}'",
        ),
        (
            {"a": {"ssd": "nvme", **FORCED}, "b": {"ssd": "!", **FORCED}},
            PLAIN,
            "contradictory-aggregates",
            "aggregates 'a', 'b', key 'ssd'",
            Severity.ERROR,
            "'b' forbids '!', 'a' offers 'nvme', on hosts 'host': no flavor fits there",
            "put the hosts into one of them only",
        ),
        (
            {"a": {"ssd": "nvme"}, "b": {"ssd": "<or> !", **FORCED}},
            {"f": {"ssd": "<or> nvme <or> ~"}},
            "contradictory-aggregates",
            "aggregates 'a', 'b', key 'ssd'",
            Severity.WARNING,
            "on hosts 'host': no flavor that wants a value fits there",
            "remove the key from one of them",
        ),
        (
            {"a": {"ssd": "<or> nvme <or> ~", **FORCED}, "b": {"ssd": "!", **FORCED}},
            PLAIN,
            "contradictory-aggregates",
            "aggregates 'a', 'b', key 'ssd'",
            Severity.WARNING,
            "no flavor that wants a value fits there",
            "remove the key from one of them",
        ),
        (
            {"a": {"ssd": "nvme", "os_type": "linux", **FORCED}},
            PLAIN,
            "key-nova-reads",
            "aggregate 'a', key 'os_type'",
            Severity.WARNING,
            "it is there for AggregateImagePropertiesIsolation",
            "force_check_ignored_keys",
        ),
        (
            {"a": {"host": "x"}},
            {"f": {"host": "*"}},
            "key-nova-reads",
            f"{FLAVOR} 'host'",
            Severity.WARNING,
            "ComputeCapabilitiesFilter",
            "write 'aggregate_instance_extra_specs:host'",
        ),
        (
            {},
            {"f": {"hw:cpu_policy": "<or> dedicated <or> ~"}},
            "refused-by-nova",
            f"{FLAVOR} 'hw:cpu_policy'",
            Severity.ERROR,
            "Nova's API refuses '<or> dedicated <or> ~'",
            "write a plain value",
        ),
        (
            {"a": {"ssd": "sata"}},
            PLAIN,
            "nobody-offers",
            f"{FLAVOR} 'ssd'",
            Severity.ERROR,
            "no aggregate offers 'nvme' for 'ssd'; offered are 'sata'",
            "adding '<or> ~'",
        ),
        (
            {},
            PLAIN,
            "nobody-offers",
            f"{FLAVOR} 'ssd'",
            Severity.ERROR,
            "none has the key at all",
            "offer it in an aggregate",
        ),
        (
            {},
            {"f": {f"trait:{TRAIT}": "wanted"}},
            "malformed-request",
            "flavor 'f'",
            Severity.ERROR,
            "'wanted'",
            "correct the extra spec",
        ),
        (
            {},
            {
                "f": {
                    f"trait:{TRAIT}": "required",
                    f"trait1:{TRAIT}": "forbidden",
                    "resources1:VGPU": "1",
                }
            },
            "contradictory-traits",
            f"{FLAVOR} 'trait1:{TRAIT}'",
            Severity.NOTE,
            f"forbidden here, and required by 'trait:{TRAIT}'",
            "remove one of them",
        ),
        (
            {"a": {"ssd": "sata"}},
            PLAIN,
            "fits-no-host",
            "flavor 'f'",
            Severity.ERROR,
            "nearest is 'host', where key 'ssd': flavor wants 'nvme', aggregate 'a' offers 'sata'",
            "change the flavor",
        ),
        (
            {"a": {"gpu": "*", **FORCED}},
            {"f": {}},
            "unreachable-host",
            "host 'host'",
            Severity.WARNING,
            "nearest is 'f': key 'gpu': forced aggregate 'a' wants '*'",
            "add a flavor that fits",
        ),
    ],
)
def test_what_is_found(
    aggregates: Any, flavors: Any, name: str, where: str, severity: Severity, why: str, remedy: str
) -> None:
    finding = found(cloud(aggregates, flavors))[name, where]
    assert finding.severity == severity
    assert why in finding.why
    assert remedy in finding.remedy


@pytest.mark.parametrize(
    ("aggregates", "flavors"),
    [
        ({}, {"f": {}}),
        ({"a": {"ssd": "nvme", "force_metadata_check": "false"}}, PLAIN),
        ({"a": {"ssd": "<or> nvme <or> ~", **FORCED}}, {"f": {"ssd": "<or> nvme <or> ~"}}),
        ({"a": {"ssd": "nvme, sata", "availability_zone": "north", **FORCED}}, PLAIN),
        # Two zones, two generations, two models: what differs by a digit is meant to.
        ({"a": {"gen": "1, 2"}, "b": {"gen": "12"}}, {"f": {"gen": "1"}, "g": {"gen": "12"}}),
        # A namespace that no aggregate knows is none of the aggregates' business.
        ({}, {"f": {"hw:cpu_policy": "dedicated", f"trait:{TRAIT}": "required"}}),
        ({"a": {"ssd": ">= 4", **FORCED}}, {"f": {"ssd": "8"}}),
        # Nobody asks for the other racks, and that is no slip.
        ({"a": {"rack": "rack-a"}, "b": {"rack": "rack-b"}}, {"f": {"rack": "rack-a"}}),
        (
            {"a": {"pool": "nvme-a"}, "b": {"pool": "NVMe-A"}},
            {"f": {"pool": "nvme-a"}, "g": {"pool": "*"}},
        ),
        ({"a": {"contact": "ops"}, "b": {"contact": "Ops"}}, {"f": {}}),
        # The values of forced aggregates combine, so different ones are no contradiction.
        (
            {"a": {"gpu": "a", **FORCED}, "b": {"gpu": "c", **FORCED}},
            {"f": {"gpu": "a"}, "g": {"gpu": "c"}},
        ),
        ({"a": {"gpu": "!", **FORCED}, "b": {"gpu": "~", **FORCED}}, {"f": {}}),
        # Two spellings in one aggregate are not two aggregates.
        ({"a": {"x": "!", "aggregate_instance_extra_specs:x": "~", **FORCED}}, {"f": {}}),
        # Whether the two meet is not decided, so nothing is said of a contradiction.
        ({"a": {"x": "s> a", **FORCED}, "b": {"x": "<in> b", **FORCED}}, {"f": {"x": "s== ab"}}),
    ],
)
def test_where_nothing_is_wrong(aggregates: Any, flavors: Any) -> None:
    assert found(cloud(aggregates, flavors)) == {}


def test_groups_that_are_isolated_come_from_different_providers() -> None:
    specs = {
        f"trait1:{TRAIT}": "required",
        f"trait2:{TRAIT}": "forbidden",
        "resources1:VGPU": "1",
        "resources2:VGPU": "1",
    }
    for policy, told in (("isolate", False), ("none", True)):
        names = {name for name, _ in found(cloud({}, {"f": {"group_policy": policy, **specs}}))}
        assert ("contradictory-traits" in names) is told


def test_an_ignored_key_is_not_looked_at(configured: Any) -> None:
    subject = cloud({"a": {"max_io_ops_per_host": ">= 8", **FORCED}}, {"f": {}})
    assert not found(subject)
    assert found(subject, configured("force_check_ignored_keys ="))
    rack = cloud({"a": {"rack": "a1", **FORCED}}, {"f": {}})
    assert found(rack)
    assert not found(rack, configured("failure_domains = rack"))


def test_the_nearest_host_lacks_the_fewest_things_and_of_these_least() -> None:
    hosts = {
        "small": Host("small", 8, 512, 80),
        "near": Host("near", 8, 1000, 80),
        "far": Host("far", 0, 1000, 80),
    }
    (finding,) = (
        each
        for each in found(cloud({}, {"f": {}}, **hosts)).values()
        if each.check == "fits-no-host"
    )
    assert "nearest is 'near', where MiB of RAM: flavor wants 1024" in finding.why


def test_what_fits_an_empty_host_only() -> None:
    subject = cloud({}, {"f": {}})
    full = Server("s", "s", dataclasses.replace(subject.flavors["f"], vcpus=32), "host")
    finding = found(subject.with_servers([full]))["no-room", "flavor 'f'"]
    assert finding.severity == Severity.WARNING
    assert "it would fit 'host' if nothing else was there, and fits no host now" in finding.why
    assert "vCPUs: flavor wants 1, the host has 0 of 32 left" in finding.why


def test_a_host_out_of_service_is_not_unreachable() -> None:
    down = Host("host", 8, 8192, 80, out_of_service="disabled", used={"vcpus": 32})
    assert set(found(cloud({}, {"f": {}}, host=down))) == {("no-room", "flavor 'f'")}


def test_hosts_of_a_kind_are_found_together() -> None:
    hosts = {f"h{number}": Host(f"h{number}", 8, 8192, 80) for number in range(5)}
    finding = found(cloud({"a": {"gpu": "*", **FORCED}}, {"f": {}}, **hosts))
    told = finding["unreachable-host", "host 'h0'"]
    assert told.why.endswith("; the same with 'h1', 'h2', 'h3' and 1 more")
    assert len([name for name, _ in finding if name == "unreachable-host"]) == 1


def test_hosts_of_different_kinds_are_found_apart() -> None:
    hosts = {
        "a": Host("a", 8, 8192, 80, reserved={"vcpus": 8}),
        "b": Host("b", 8, 8192, 80, reserved={"ram_mb": 8192}),
        "c": Host("c", 8, 8192, 80),
    }
    told = found(cloud({}, {"f": {}}, **hosts))
    assert "vCPUs" in told["unreachable-host", "host 'a'"].why
    assert "MiB of RAM" in told["unreachable-host", "host 'b'"].why
    assert len(told) == 2


def test_a_cloud_without_hosts_or_flavors() -> None:
    assert found(Cloud({})) == {}
    (finding,) = check(Cloud({}, {}, {"f": Flavor("f", 1, 1, 1)}), cfg.ConfigOpts())
    assert (finding.check, finding.why.rpartition("; ")[2]) == (
        "fits-no-host",
        "there are no hosts",
    )


def test_groups_do_not_matter() -> None:
    subject = cloud({}, {"f": {}}).with_server_group(ServerGroup("g", Policy.ANTI_AFFINITY))
    server = Server("s", "s", subject.flavors["f"], "host", "g")
    assert found(subject.with_servers([server])) == {}


def test_the_worst_comes_first() -> None:
    subject = cloud({"a": {"ssd": "~"}, "b": {"force_metadata_check": "?"}}, {"f": {"ssd": "<or>"}})
    severities = [finding.severity for finding in check(subject, cfg.ConfigOpts())]
    assert severities == sorted(severities, key=list(Severity).index)
    assert len(set(severities)) > 1
