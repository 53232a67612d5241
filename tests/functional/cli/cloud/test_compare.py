"""``steelyard compare`` without Nova."""

import csv
import functools
import io
import json
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from support.third_parties import make_importable

STEELYARD = pathlib.Path(sys.executable).with_name("steelyard")
Compare = Callable[..., tuple[int, str, str]]

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


@pytest.fixture
def compare(steelyard: Callable[..., tuple[int, str, str]]) -> Compare:
    """Return a function that runs compare and returns its status, output and errors."""
    return functools.partial(steelyard, "compare")


def installed(*argv: str, **environment: str) -> tuple[int, str, str]:
    """Return the exit status, standard output and error of the installed command."""
    done = subprocess.run(
        [STEELYARD, *argv],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )
    return done.returncode, done.stdout, done.stderr


def test_compare_groups_changes_by_cause(cloud: str, compare: Compare) -> None:
    status, out, err = compare("--cloud", cloud, "--rules", "own", "-f", "json")
    rows = [
        (row["change"], row["flavors"], row["hosts"], row["cause"].split("; steelyard: ")[-1])
        for row in json.loads(out)["changes"]
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
    assert {row["novas_rules"] for row in json.loads(out)["changes"]} == {"steelyard's own"}
    assert status == 1
    assert err == (
        "steelyard: 25 of 35 pairs of flavor and host (7 x 5) stay the same, 8 would change, 2 are not "
        "known, according to steelyard's knowledge of Nova's rules; for Nova's own rules, leave out "
        "--rules own where Nova is installed\n"
    )


def test_compare_without_nova_tells_how_to_get_its_rules(cloud: str, compare: Compare) -> None:
    status, out, err = compare("--cloud", cloud, "--flavor", "plain", "-f", "json")
    assert (status, json.loads(out)["changes"]) == (0, [])
    assert err == (
        "steelyard: 5 of 5 pairs of flavor and host (1 x 5) stay the same, 0 would change, according "
        "to steelyard's knowledge of Nova's rules; for Nova's own rules, install the package 'nova' in "
        "this environment\n"
    )


def test_compare_without_changes_exits_with_0(cloud: str, compare: Compare) -> None:
    argv = ("--cloud", cloud, "--rules", "own", "--flavor", "plain", "--flavor", "nvme")
    status, out, err = compare(*argv, "-f", "json")
    assert (status, json.loads(out)["changes"]) == (0, [])
    assert err.startswith("steelyard: 10 of 10 pairs of flavor and host (2 x 5) stay the same, 0 ")


def test_compare_counts_unknown_results_as_changes(cloud: str, compare: Compare) -> None:
    status, out, _ = compare("--cloud", cloud, "--rules", "own", "--flavor", "odd", "-f", "json")
    assert status == 1
    assert [row["change"] for row in json.loads(out)["changes"]] == ["not known without nova"]


def test_compare_table_shortens_long_lists_of_names(
    cloud: str, tmp_path: Any, compare: Compare
) -> None:
    _, out, _ = compare("--cloud", cloud, "--rules", "own", "--flavor", "any")
    assert "| 1: any" in out
    assert "| 2: fast1, fast2 |" in out
    _, out, _ = compare("--example", "--rules", "own", "--flavor", "any.small")
    assert "| 4: rack1-node1, rack1-node2, rack2-node1, … |" in out


def test_compare_each_lists_every_pair(cloud: str, compare: Compare) -> None:
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
    assert "25 of 35 pairs" in err


def test_compare_reads_the_example(compare: Compare) -> None:
    status, out, _ = compare("--example", "--rules", "own", "-f", "json")
    assert status == 1
    assert {row["change"] for row in json.loads(out)["changes"]} == {
        "newly rejected",
        "newly accepted",
    }


def test_compare_applies_the_configuration_of_the_filter(tmp_path: pathlib.Path) -> None:
    conf = tmp_path / "steelyard.conf"
    conf.write_text("[steelyard]\nforce_check_ignored_keys = gpu\n")
    argv = ("--config-file", str(conf), "compare", "--example", "--rules", "own", "-f", "json")
    _, out, _ = installed(*argv)
    assert {row["change"] for row in json.loads(out)["changes"]} == {"newly accepted"}


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--flavor", "plian"], "no flavor 'plian'; did you mean 'plain'?"),
        (["-c", "Chagne"], "no column 'Chagne'; did you mean 'Change'?"),
        (["--each", "-c", "Flavors"], "no column 'Flavors'; did you mean 'Flavor'?"),
    ],
)
def test_compare_reports_a_mistake_in_one_line(
    cloud: str, argv: list[str], said: str, compare: Compare
) -> None:
    status, out, err = compare("--cloud", cloud, *argv)
    assert (status, out, err) == (2, "", f"steelyard: {said}\n")


@pytest.mark.parametrize("kind", ["flavors", "hosts"])
def test_compare_rejects_a_cloud_without_flavors_or_hosts(
    tmp_path: pathlib.Path, kind: str, compare: Compare
) -> None:
    parts = {
        "hosts": "hosts: {h: {vcpus: 1, ram_mb: 1, disk_gb: 1}}\n",
        "flavors": "flavors: {f: {vcpus: 1, ram_mb: 1, disk_gb: 1}}\n",
    }
    parts[kind] = f"{kind}: {{}}\n"
    path = tmp_path / "cloud.yaml"
    path.write_text("".join(parts.values()))
    status, _, err = compare("--cloud", str(path))
    assert status == 2
    assert err == f"steelyard: nothing to compare: the cloud has no {kind}\n"


def test_compare_rejects_rules_of_a_missing_nova(compare: Compare) -> None:
    status, out, err = compare("--example", "--rules", "nova")
    assert (status, out) == (2, "")
    assert err.startswith("steelyard: --rules nova: Nova is not installed in this environment; ")
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("raise ValueError('half an upgrade')", "ValueError: half an upgrade"),
        ("import no_such_driver", "ModuleNotFoundError: No module named 'no_such"),
        ("", "ModuleNotFoundError: No module named 'nova.scheduler'"),
    ],
)
def test_compare_reports_a_broken_nova(
    compare: Compare,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    said: str,
) -> None:
    (tmp_path / "nova").mkdir()
    (tmp_path / "nova" / "__init__.py").write_text(code)
    make_importable(monkeypatch, str(tmp_path), "nova", "nova.scheduler")
    for argv in ((), ("--rules", "nova")):
        status, out, err = compare("--example", *argv)
        assert (status, out) == (2, "")
        assert err.startswith("steelyard: cannot use the installed Nova: ")
        assert said in err
        assert err.endswith("or compare with --rules own\n")
    status, out, _ = compare("--example", "--rules", "own")
    assert status == 1
    assert "steelyard's own" in out


def test_compare_judges_ten_thousand_hosts_in_time(
    tmp_path: pathlib.Path, compare: Compare
) -> None:
    """Check that compare judges hosts in the same aggregates once."""
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
    (row,) = json.loads(out)["changes"]
    assert status == 1
    assert sorted(row["hosts"]) == names
    assert len(row["flavors"]) == 20
    assert "800000 of 1000000 pairs of flavor and host (100 x 10000) stay the same" in err
