"""``steelyard compare``, run as it is installed, where there is no Nova."""

import csv
import io
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

STEELYARD = pathlib.Path(sys.executable).with_name("steelyard")

CLOUD = """\
hosts:
  bare: {vcpus: 4, ram_mb: 4096, disk_gb: 100}
  typed: {vcpus: 4, ram_mb: 4096, disk_gb: 100}
  mixed: {vcpus: 4, ram_mb: 4096, disk_gb: 100}
  fast1: {vcpus: 4, ram_mb: 4096, disk_gb: 100}
  fast2: {vcpus: 4, ram_mb: 4096, disk_gb: 100}
aggregates:
  typed: {hosts: [typed], metadata: {cores: many}}
  mixed: {hosts: [mixed], metadata: {cores: "8, many"}}
  fast: {hosts: [fast1, fast2], metadata: {ssd: nvme, cores: 8, "hw:cpu_policy": dedicated}}
flavors:
  plain: {vcpus: 1, ram_mb: 1024, disk_gb: 10}
  nvme: {vcpus: 1, ram_mb: 1024, disk_gb: 10, extra_specs: {ssd: nvme}}
  any: {vcpus: 1, ram_mb: 1024, disk_gb: 10, extra_specs: {ssd: "*"}}
  all: {vcpus: 1, ram_mb: 1024, disk_gb: 10, extra_specs: {ssd: "*"}}
  big: {vcpus: 1, ram_mb: 1024, disk_gb: 10, extra_specs: {cores: ">= 8"}}
  shared: {vcpus: 1, ram_mb: 1024, disk_gb: 10, extra_specs: {"hw:cpu_policy": shared}}
  odd: {vcpus: 1, ram_mb: 1024, disk_gb: 10, extra_specs: {ssd: "<or> sata x <or> nvme"}}
"""


@pytest.fixture
def cloud(tmp_path: pathlib.Path) -> str:
    path = tmp_path / "cloud.yaml"
    path.write_text(CLOUD)
    return str(path)


def compare(*argv: str, **environment: str) -> tuple[int, str, str]:
    done = subprocess.run(
        [STEELYARD, "compare", *argv],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    return done.returncode, done.stdout, done.stderr


def test_changes_are_grouped_by_cause(cloud: str) -> None:
    status, out, err = compare("--cloud", cloud, "--rules", "own", "-f", "json")
    rows = [
        (row["Change"], row["Flavors"], row["Hosts"], row["Cause"].split("; here: ")[-1])
        for row in json.loads(out)
    ]
    assert rows == [
        (
            "newly rejected",
            ["shared"],
            ["fast1", "fast2"],
            "key 'hw:cpu_policy': flavor wants 'shared', aggregate 'fast' offers 'dedicated'",
        ),
        ("not known without nova", ["odd"], ["fast1", "fast2"], "the host passes"),
        (
            "Nova aborts the request",
            ["big"],
            ["typed"],
            "key 'cores': flavor wants '>= 8', aggregate 'typed' offers 'many'",
        ),
        ("Nova may abort the request", ["big"], ["mixed"], "the host passes"),
        (
            "newly accepted",
            ["any", "all"],
            ["fast1", "fast2"],
            "sentinel '*' in key 'ssd', which Nova reads as literal text",
        ),
    ]
    assert {row["Nova's rules"] for row in json.loads(out)} == {"steelyard's own"}
    assert status == 1
    assert err == (
        "steelyard: Nova's rules from what steelyard knows of them: of 35 pairs of flavor and host (7 x 5) "
        "25 stay the same, 8 would change, 2 are not known; for Nova's own rules, leave "
        "out --rules own where Nova is installed\n"
    )


def test_without_nova_it_says_how_to_get_novas_rules(cloud: str) -> None:
    status, out, err = compare("--cloud", cloud, "--flavor", "plain", "-f", "json")
    assert (status, out.strip()) == (0, "[]")
    assert err == (
        "steelyard: Nova's rules from what steelyard knows of them: of 5 pairs of flavor and host "
        "(1 x 5) 5 stay the same, 0 would change; for Nova's own rules, install the "
        "package 'nova' in this environment\n"
    )


def test_where_nothing_changes_the_status_is_0(cloud: str) -> None:
    argv = ("--cloud", cloud, "--rules", "own", "--flavor", "plain", "--flavor", "nvme")
    status, out, err = compare(*argv, "-f", "json")
    assert (status, json.loads(out)) == (0, [])
    assert err.startswith("steelyard: Nova's rules from what steelyard knows of them: of 10 pairs ")
    assert "(2 x 5) 10 stay the same, 0 would change;" in err


def test_what_is_not_known_counts_as_a_change(cloud: str) -> None:
    status, out, _ = compare("--cloud", cloud, "--rules", "own", "--flavor", "odd", "-f", "json")
    assert status == 1
    assert [row["Change"] for row in json.loads(out)] == ["not known without nova"]


def test_a_table_has_the_number_of_names_and_the_first(cloud: str, tmp_path: Any) -> None:
    _, out, _ = compare("--cloud", cloud, "--rules", "own", "--flavor", "any")
    assert "| 1: any" in out
    assert "| 2: fast1, fast2 |" in out
    _, out, _ = compare("--example", "--rules", "own", "--flavor", "any.small")
    assert "| 4: rack1-node1, rack1-node2, rack2-node1, … |" in out


def test_each_pair_can_be_listed(cloud: str) -> None:
    argv = ("--cloud", cloud, "--rules", "own", "--each", "-f", "csv")
    status, out, err = compare(*argv)
    rows = list(csv.DictReader(io.StringIO(out)))
    assert len({(row["Flavor"], row["Host"]) for row in rows}) == len(rows) == 35
    assert sum(not row["Change"] for row in rows) == 25
    answers = {(row["Flavor"], row["Host"]): (row["Nova"], row["steelyard"]) for row in rows}
    assert answers["nvme", "fast1"] == ("passes", "passes")
    assert answers["any", "fast2"] == ("rejects", "passes")
    assert answers["big", "typed"] == ("aborts", "rejects")
    assert answers["big", "mixed"] == ("may abort", "passes")
    assert answers["odd", "fast1"] == ("not known", "passes")
    assert answers["odd", "bare"] == ("rejects", "rejects")
    assert status == 1
    assert "25 stay the same" in err


def test_the_example_can_be_compared() -> None:
    status, out, _ = compare("--example", "--rules", "own", "-f", "json")
    assert status == 1
    assert {row["Change"] for row in json.loads(out)} == {"newly rejected", "newly accepted"}


def test_the_configuration_of_our_filter_counts(tmp_path: pathlib.Path) -> None:
    conf = tmp_path / "steelyard.conf"
    conf.write_text("[steelyard]\nforce_check_ignored_keys = gpu\n")
    done = subprocess.run(
        [STEELYARD, "--config-file", conf, "compare", "--example", "--rules", "own", "-f", "json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert {row["Change"] for row in json.loads(done.stdout)} == {"newly accepted"}


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--flavor", "plian"], "there is no flavor 'plian'; did you mean 'plain'?"),
        (["-c", "Chagne"], "there is no column 'Chagne'; did you mean 'Change'?"),
        (["--each", "-c", "Flavors"], "there is no column 'Flavors'; did you mean 'Flavor'?"),
    ],
)
def test_a_mistake_is_one_line(cloud: str, argv: list[str], said: str) -> None:
    status, out, err = compare("--cloud", cloud, *argv)
    assert (status, out, err) == (2, "", f"steelyard: {said}\n")


@pytest.mark.parametrize("kind", ["flavors", "hosts"])
def test_a_cloud_with_nothing_to_compare(tmp_path: pathlib.Path, kind: str) -> None:
    parts = {
        "hosts": "hosts: {h: {vcpus: 1, ram_mb: 1, disk_gb: 1}}\n",
        "flavors": "flavors: {f: {vcpus: 1, ram_mb: 1, disk_gb: 1}}\n",
    }
    parts[kind] = f"{kind}: {{}}\n"
    path = tmp_path / "cloud.yaml"
    path.write_text("".join(parts.values()))
    status, _, err = compare("--cloud", str(path))
    assert status == 2
    assert err == f"steelyard: the cloud has no {kind}: there is nothing to compare\n"


def test_without_nova_its_own_rules_cannot_be_chosen() -> None:
    status, out, err = compare("--example", "--rules", "nova")
    assert (status, out) == (2, "")
    assert err.startswith("steelyard: --rules nova: Nova is not installed in this environment: ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise ValueError('half an upgrade')", "ValueError: half an upgrade"),
        ("import no_such_driver", "ModuleNotFoundError: No module named 'no_such"),
        ("", "ModuleNotFoundError: No module named 'nova.scheduler'"),
    ],
)
def test_a_nova_that_is_broken_is_not_passed_over(
    tmp_path: pathlib.Path, code: str, said: str
) -> None:
    (tmp_path / "nova").mkdir()
    (tmp_path / "nova" / "__init__.py").write_text(code)
    for argv in ((), ("--rules", "nova")):
        status, out, err = compare("--example", *argv, PYTHONPATH=str(tmp_path))
        assert (status, out) == (2, "")
        assert err.startswith("steelyard: Nova is installed here, but cannot be used: ")
        assert said in err
        assert err.endswith("or compare by steelyard's own knowledge with --rules own\n")
    status, out, _ = compare("--example", "--rules", "own", PYTHONPATH=str(tmp_path))
    assert status == 1
    assert "steelyard's own" in out


def test_ten_thousand_hosts_and_many_flavors(tmp_path: pathlib.Path) -> None:
    """Hosts in the same aggregates are judged once, so this ends within the patience of a test."""
    names = [f"node-{number:05}" for number in range(10_000)]
    described = {
        "hosts": {name: {"vcpus": 4, "ram_mb": 4096, "disk_gb": 100} for name in names},
        "aggregates": {
            f"rack-{rack}": {
                "hosts": names[rack::100],
                "metadata": {"ssd": "nvme" if rack % 2 else "sata", "rack": str(rack)},
            }
            for rack in range(100)
        },
        "flavors": {
            f"f{i}": {
                "vcpus": 1,
                "ram_mb": 1024,
                "disk_gb": 1,
                "extra_specs": {"ssd": "nvme" if i % 5 else "*", "quota:n": str(i)},
            }
            for i in range(100)
        },
    }
    path = tmp_path / "cloud.json"
    path.write_text(json.dumps(described))
    status, out, err = compare("--cloud", str(path), "--rules", "own", "-f", "json")
    (row,) = json.loads(out)
    assert status == 1
    assert sorted(row["Hosts"]) == names
    assert len(row["Flavors"]) == 20
    assert "of 1000000 pairs of flavor and host (100 x 10000) 800000 stay the same" in err
