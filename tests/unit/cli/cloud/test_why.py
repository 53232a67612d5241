"""The command ``why`` on a cloud file."""

import json
import pathlib
from typing import Any

import pytest
import yaml

from support.cli.in_process import Run

CLOUD = """\
hosts:
  h1: {vcpus: 4, ram_mb: 4096, disk_gb: 100}
  h2: {vcpus: 4, ram_mb: 4096, disk_gb: 100, traits: [CUSTOM_FAST_DISK]}
  h3: {vcpus: 4, ram_mb: 8192, disk_gb: 100, out_of_service: "disabled"}
aggregates:
  north: {hosts: [h2], metadata: {availability_zone: north}}
  vip: {hosts: [h2], metadata: {filter_tenant_id: p1}}
  typo: {hosts: [h1, h2, h3], metadata: {ssd: nvme}}
flavors:
  small: {vcpus: 1, ram_mb: 1024, disk_gb: 10}
  huge: {vcpus: 1, ram_mb: 16384, disk_gb: 10}
  most: {vcpus: 1, ram_mb: 3072, disk_gb: 10}
  traits: {vcpus: 1, ram_mb: 1024, disk_gb: 10, extra_specs: {"trait:CUSTOM_FASTDISK": required}}
  sdd: {vcpus: 1, ram_mb: 1024, disk_gb: 10, extra_specs: {sdd: nvme}}
server_groups:
  apart: {policy: anti-affinity}
  together: {policy: affinity}
servers:
  one: {host: h1, flavor: small, group: apart}
  two: {host: h2, flavor: small, group: apart}
  big: {host: h1, flavor: most, group: together}
"""
NOVA_CONF = """\
[filter_scheduler]
enabled_filters = ComputeFilter,AggregateInstanceTypeFilter,IoOpsFilter
[scheduler]
limit_tenants_to_placement_aggregate = {limit}
"""


@pytest.fixture
def why(run: Run, tmp_path: pathlib.Path) -> Any:
    """Return a function that runs the command; its last argument may be options before it."""
    path = tmp_path / "cloud.yaml"
    path.write_text(CLOUD)

    def on_cloud(*argv: object, before: tuple[object, ...] = ()) -> tuple[int, dict[str, Any]]:
        status, out, err = run(*before, "why", "--cloud", path, *argv, "-f", "json")
        assert not err
        return status, json.loads(out)

    return on_cloud


@pytest.fixture
def nova_conf(tmp_path: pathlib.Path) -> Any:
    def of(*, limit: bool = False) -> tuple[str, pathlib.Path]:
        path = tmp_path / "nova.conf"
        path.write_text(NOVA_CONF.format(limit=limit))
        return "--config-file", path

    return of


def demands(found: dict[str, Any]) -> list[str]:
    return [each["demand"] for each in found["repair"]]


def test_demand_that_no_host_meets_is_named_with_counts(why: Any) -> None:
    status, found = why("--flavor", "huge")
    assert (status, found["summary"]["stage"]) == (0, "placement")
    assert found["summary"]["server"] is None
    assert found["repair"] == [
        {
            "kind": "resource",
            "demand": "16 GiB of RAM",
            "from": "flavor 'huge'",
            "source": "read from the cloud file",
            "refusal": None,
            "possible_typos": [],
            "providers_alone": 0,
            "providers_without": 3,
        }
    ]


def test_misspelt_trait_has_suggestion(why: Any) -> None:
    _, found = why("--flavor", "traits")
    (member,) = found["repair"]
    assert member["possible_typos"] == ["CUSTOM_FAST_DISK"]


def test_zone_is_requested_from_placement(why: Any) -> None:
    status, found = why("--flavor", "traits", "--availability-zone", "north")
    assert status == 0
    assert demands(found) == ["trait CUSTOM_FASTDISK required"]
    status, found = why("--flavor", "small", "--availability-zone", "north")
    assert (status, found["summary"]["stage"]) == (1, "fits-now")
    assert "'h2'" in found["summary"]["answer"]


def test_requested_host_names_what_it_lacks(why: Any) -> None:
    _, found = why("--flavor", "huge", "--host", "h2")
    assert demands(found) == ["16 GiB of RAM"]
    (member,) = found["repair"]
    assert member["providers_without"] == 1


def test_filters_and_options_come_from_nova_conf(why: Any, nova_conf: Any) -> None:
    status, found = why("--flavor", "sdd", before=nova_conf())
    assert (status, found["summary"]["stage"]) == (0, "filters")
    assert {each["filter"]: each["hosts"] for each in found["causes"]} == {
        "AggregateInstanceTypeFilter": 2,
        "ComputeFilter": 1,
    }
    assert "did you mean 'ssd'?" in found["causes"][0]["possible_typos"][0]
    assert found["filters_not_applied"] == ["IoOpsFilter"]
    assert found["assumptions"] == []
    status, found = why("--flavor", "small", "--project", "p1", before=nova_conf(limit=True))
    assert "'h2'" in found["summary"]["answer"]


def test_defaults_of_nova_are_assumed_without_its_configuration(why: Any) -> None:
    _, found = why("--flavor", "small")
    assert any(
        "Nova's filters are its defaults: ComputeFilter" in each for each in found["assumptions"]
    )


def test_affinity_group_on_full_host_names_what_the_host_lacks(why: Any) -> None:
    status, found = why("--flavor", "small", "--group", "together")
    assert (status, found["summary"]["stage"]) == (0, "filters")
    assert demands(found) == ["1 GiB of RAM"]
    assert found["summary"]["answer"].endswith(
        "host 'h1' of the group does not offer: 1 GiB of RAM"
    )


def test_server_of_the_file_is_requested_again(why: Any) -> None:
    status, found = why("two")
    assert (status, found["summary"]["server"]) == (1, "two")
    assert "'h2'" in found["summary"]["answer"]


def test_text_begins_with_the_answer(run: Run, why: Any, tmp_path: pathlib.Path) -> None:
    _, found = why("--flavor", "huge")
    status, out, err = run("why", "--cloud", tmp_path / "cloud.yaml", "--flavor", "huge")
    first, empty, *rest = out.splitlines()
    assert (status, first, empty, err) == (0, found["summary"]["answer"], "", "")
    assert "to mend for Placement (read from the cloud file):" in rest


def test_yaml_has_the_same_content(run: Run, why: Any, tmp_path: pathlib.Path) -> None:
    _, found = why("--flavor", "huge")
    _, out, _ = run("why", "--cloud", tmp_path / "cloud.yaml", "--flavor", "huge", "-f", "yaml")
    assert yaml.safe_load(out)["repair"] == found["repair"]


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ((), "missing --flavor: name the flavor of the server"),
        (("--flavor", "smal"), "no flavor 'smal'; did you mean 'small'?"),
        (("--flavor", "small", "--image", "x"), "--image 'x' needs --os-cloud"),
        (("web-9",), "no server 'web-9'; available: 'one', 'two', 'big'"),
    ],
)
def test_mistakes_have_status_2(
    run: Run, tmp_path: pathlib.Path, argv: tuple[str, ...], message: str
) -> None:
    path = tmp_path / "cloud.yaml"
    path.write_text(CLOUD)
    status, out, err = run("why", "--cloud", path, *argv)
    assert (status, out) == (2, "")
    assert err.startswith(f"steelyard: {message}"), err


def test_invalid_nova_conf_is_a_mistake(run: Run, tmp_path: pathlib.Path) -> None:
    conf = tmp_path / "nova.conf"
    conf.write_text("[scheduler]\nmax_placement_results = many\n")
    status, _, err = run("--config-file", conf, "why", "--example", "--flavor", "web.small")
    assert status == 2
    assert "max_placement_results" in err
    assert "'many'" in err
