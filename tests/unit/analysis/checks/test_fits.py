"""Checks for flavors that fit no host, and hosts that no flavor fits."""

import dataclasses

import pytest
from oslo_config import cfg

from steelyard import conf as options
from steelyard.analysis.checks import check
from steelyard.cloud import Cloud, Flavor, Host, Server
from steelyard.findings import Severity
from steelyard.groups import Policy, ServerGroup
from support.analysis.small_clouds import (
    FORCED,
    PLAIN,
    TRAIT,
    Expected,
    check_reported,
    cloud,
    found,
)

FLAVOR = "flavor 'f', extra spec"


@pytest.mark.parametrize(
    "expected",
    [
        Expected(
            {"a": {"ssd": "sata"}},
            PLAIN,
            "not-offered",
            f"{FLAVOR} 'ssd'",
            Severity.ERROR,
            "no aggregate offers 'nvme' for 'ssd'; offered: 'sata'",
            "adding '<or> ~'",
        ),
        Expected(
            {},
            PLAIN,
            "not-offered",
            f"{FLAVOR} 'ssd'",
            Severity.ERROR,
            "none has the key",
            "offer it in an aggregate",
        ),
        Expected(
            {},
            {"f": {f"trait:{TRAIT}": "wanted"}},
            "malformed-request",
            "flavor 'f'",
            Severity.ERROR,
            "'wanted'",
            "correct the extra spec",
        ),
        Expected(
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
        Expected(
            {"a": {"ssd": "sata"}},
            PLAIN,
            "fits-no-host",
            "flavor 'f'",
            Severity.ERROR,
            "nearest is 'host': key 'ssd': flavor wants 'nvme', aggregate 'a' offers 'sata'",
            "change the flavor",
        ),
        Expected(
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
def test_check_reports_finding_about_fit(expected: Expected) -> None:
    check_reported(expected)


def test_isolated_groups_do_not_contradict_each_other() -> None:
    specs = {
        f"trait1:{TRAIT}": "required",
        f"trait2:{TRAIT}": "forbidden",
        "resources1:VGPU": "1",
        "resources2:VGPU": "1",
    }
    for policy, told in (("isolate", False), ("none", True)):
        names = {name for name, _ in found(cloud({}, {"f": {"group_policy": policy, **specs}}))}
        assert ("contradictory-traits" in names) is told


def test_nearest_host_has_fewest_reasons_and_smallest_shortage() -> None:
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
    assert "nearest is 'near': RAM: flavor wants 1 GiB" in finding.message


@pytest.mark.parametrize("dedicating", [{"gpu": "a100", **FORCED}, {"filter_tenant_id": "acme"}])
def test_nearest_host_is_dedicated_to_others_only_if_no_other_remains(
    dedicating: dict[str, str],
) -> None:
    nearly, hardly = Host("nearly", 8, 1000, 80), Host("hardly", 8, 100, 1)
    for hosts, expected in (
        ([nearly, hardly], "hardly"),
        ([nearly], "nearly"),
    ):
        subject = cloud({"nearly": dedicating}, {"f": {}}, **{each.name: each for each in hosts})
        finding = found(subject)["fits-no-host", "flavor 'f'"]
        assert finding.details["nearest_host"] == expected


def test_nearest_of_dedicated_hosts_has_fewest_unmet_demands_of_the_flavor() -> None:
    aggregates = {
        "a": {"gpu": "a100", "tier": "gold", "zone": "z", **FORCED},
        "b": {"gpu": "a100", **FORCED},
    }
    hosts = {"a": Host("a", 8, 1000, 80), "b": Host("b", 8, 1000, 1)}
    finding = found(cloud(aggregates, {"f": {}}, **hosts))["fits-no-host", "flavor 'f'"]
    assert finding.details["nearest_host"] == "a"  # it requires three keys, but has enough disk
    assert len(finding.details["reasons"]) == 4


def test_nearest_host_of_cloud_without_aggregate_filter_requires_no_keys() -> None:
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
    options.register(conf)
    conf.set_override("enabled_filters", ["CapacityFilter"], "steelyard")
    hosts = {"a": Host("a", 8, 1000, 80), "b": Host("b", 8, 100, 80)}
    subject = cloud({"a": {"gpu": "a100", **FORCED}}, {"f": {}}, **hosts)
    finding = found(subject, conf)["fits-no-host", "flavor 'f'"]
    assert finding.details["nearest_host"] == "a"
    for_tenants = cloud({"a": {"filter_tenant_id": "acme"}}, {"f": {}}, **hosts)
    finding = found(for_tenants, conf)["fits-no-host", "flavor 'f'"]
    assert finding.details["nearest_host"] == "b"


def test_flavor_that_fits_only_empty_host_has_no_room() -> None:
    subject = cloud({}, {"f": {}})
    full = Server("s", "s", dataclasses.replace(subject.flavors["f"], vcpus=32), "host")
    finding = found(subject.with_servers([full]))["no-room", "flavor 'f'"]
    assert finding.severity == Severity.WARNING
    assert "it would fit 'host' if empty, but fits no host now" in finding.message
    assert "vCPUs: flavor wants 1, the host has 0 of 32 left" in finding.message


def test_host_out_of_service_is_not_unreachable() -> None:
    down = Host("host", 8, 8192, 80, out_of_service="disabled", used={"vcpus": 32})
    assert set(found(cloud({}, {"f": {}}, host=down))) == {("no-room", "flavor 'f'")}


def test_similar_unreachable_hosts_share_one_finding() -> None:
    hosts = {f"h{number}": Host(f"h{number}", 8, 8192, 80) for number in range(5)}
    finding = found(cloud({"a": {"gpu": "*", **FORCED}}, {"f": {}}, **hosts))
    told = finding["unreachable-host", "host 'h0'"]
    assert told.message.endswith("; the same applies to 'h1', 'h2', 'h3' and 1 more")
    assert len([name for name, _ in finding if name == "unreachable-host"]) == 1


def test_different_unreachable_hosts_have_separate_findings() -> None:
    hosts = {
        "a": Host("a", 8, 8192, 80, reserved={"vcpus": 8}),
        "b": Host("b", 8, 8192, 80, reserved={"ram_mb": 8192}),
        "c": Host("c", 8, 8192, 80),
    }
    told = found(cloud({}, {"f": {}}, **hosts))
    assert "vCPUs" in told["unreachable-host", "host 'a'"].message
    assert "RAM: " in told["unreachable-host", "host 'b'"].message
    assert len(told) == 2


def test_check_handles_cloud_without_hosts_or_flavors() -> None:
    assert found(Cloud({})) == {}
    (finding,) = check(Cloud({}, {}, {"f": Flavor("f", 1, 1, 1)}), cfg.ConfigOpts())
    assert (finding.check, finding.message.rpartition("; ")[2]) == (
        "fits-no-host",
        "there are no hosts",
    )
    assert finding.remedy == "add hosts to the cloud"


def test_check_ignores_server_groups() -> None:
    subject = cloud({}, {"f": {}}).with_server_group(ServerGroup("g", Policy.ANTI_AFFINITY))
    server = Server("s", "s", subject.flavors["f"], "host", "g")
    assert found(subject.with_servers([server])) == {}
