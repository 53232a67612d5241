"""The command that explains the verdict on each host."""

import json
import pathlib

import pytest

from support.cli.in_process import Run


def test_explain_shows_every_host(run: Run, cloud: pathlib.Path) -> None:
    status, out, err = run("explain", "--cloud", cloud, "--flavor", "open", "-f", "json")
    assert (status, err) == (0, "steelyard: 1 of 2 hosts fit flavor 'open'; 2 hosts shown\n")
    chosen, rejected = json.loads(out)["hosts"]
    assert (chosen["host"], chosen["verdict"]) == ("h1", "chosen")
    assert (rejected["host"], rejected["verdict"], rejected["weight"]) == ("h2", "rejected", None)
    assert rejected["why"]["passed"] == ["InServiceFilter", "CapacityFilter", "TraitsFilter"]
    assert rejected["why"]["rejected_by"] == "AggregateInstanceTypeFilter"


CLOUD = """
hosts:
  h1: {vcpus: 4, ram_mb: 4096, disk_gb: 100}
  h2: {vcpus: 4, ram_mb: 2048, disk_gb: 100}
  h3: {vcpus: 4, ram_mb: 1024, disk_gb: 100}
  h4: {vcpus: 0, ram_mb: 4096, disk_gb: 100}
aggregates:
  fast: {hosts: [h1, h2, h4], metadata: {ssd: nvme}}
  slow: {hosts: [h3], metadata: {ssd: NVMe}}
flavors:
  small: {vcpus: 1, ram_mb: 1024, disk_gb: 1, extra_specs: {ssd: nvme}}
  typo: {vcpus: 1, ram_mb: 1024, disk_gb: 1, extra_specs: {sdd: nvme}}
"""


@pytest.fixture
def typos(tmp_path: pathlib.Path) -> str:
    """Return the path of a cloud with possible typos in a flavor and in an aggregate."""
    file = tmp_path / "typos.yaml"
    file.write_text(CLOUD)
    return str(file)


@pytest.mark.parametrize(
    ("argv", "shown"),
    [
        ((), ["h1", "h2", "h4", "h3"]),
        (("--host", "h3"), ["h3"]),
        (("--host", "h3", "--host", "h2", "--host", "h3"), ["h2", "h3"]),
        (("--only", "fits"), ["h1", "h2"]),
        (("--only", "rejected"), ["h4", "h3"]),
        (("--limit", "1"), ["h1"]),
        (("--limit", "9"), ["h1", "h2", "h4", "h3"]),
        (("--only", "rejected", "--limit", "1"), ["h4"]),
        (("--only", "fits", "--host", "h3"), []),
    ],
)
def test_explain_shows_the_chosen_hosts_and_counts_all(
    run: Run, typos: str, argv: tuple[str, ...], shown: list[str]
) -> None:
    argv = ("explain", "--cloud", typos, "--flavor", "small", *argv)
    status, out, err = run(*argv, "-f", "json")
    found = json.loads(out)
    assert status == 0
    assert [row["host"] for row in found["hosts"]] == shown
    assert found["summary"] == {
        "flavor": "small",
        "group": None,
        "hosts": 4,
        "fitting_hosts": 2,
        "shown": len(shown),
        "chosen": "h1",
    }
    hosts = "1 host" if len(shown) == 1 else f"{len(shown)} hosts"
    assert err == f"steelyard: 2 of 4 hosts fit flavor 'small'; {hosts} shown\n"
    status, out, _ = run(*argv, "-f", "value", "-c", "Host")
    assert out.split() == shown


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("--host", "h5"), "no host 'h5'; available: 'h1', 'h2', 'h3', 'h4'"),
        (("--limit", "0"), "invalid --limit 0: expected at least 1"),
        (
            ("--html", "page.html", "--only", "fits"),
            "--html writes a page with all hosts: leave out --host, --only and --limit",
        ),
    ],
)
def test_explain_rejects_invalid_choices_of_hosts(
    run: Run, typos: str, argv: tuple[str, ...], message: str
) -> None:
    found = run("explain", "--cloud", typos, "--flavor", "small", *argv)
    assert found == (2, "", f"steelyard: {message}\n")


def test_explain_says_what_was_possibly_meant(run: Run, typos: str) -> None:
    argv = ("explain", "--cloud", typos, "--host", "h3", "-c", "Host", "-c", "Why")
    _, out, _ = run(*argv, "--flavor", "small")
    assert (
        out
        == """\
+------+---------------------------------------------------------------------------------------------+
| Host | Why                                                                                         |
+------+---------------------------------------------------------------------------------------------+
| h3   | AggregateInstanceTypeFilter: key 'ssd': flavor wants 'nvme', aggregate 'slow' offers 'NVMe' |
|      | aggregate 'slow', key 'ssd': no flavor has the value 'NVMe'; did you mean 'nvme'?           |
+------+---------------------------------------------------------------------------------------------+
"""
    )
    status, out, err = run(*argv, "--flavor", "typo", "-f", "json")
    assert status == 1
    assert json.loads(out)["hosts"][0]["why"]["suggestions"] == [
        {
            "subject": {"kind": "flavor", "name": "typo", "key": "sdd"},
            "message": "no aggregate has the key 'sdd'; did you mean 'ssd'?",
            "found": "sdd",
            "did_you_mean": ["ssd"],
        }
    ]
    assert err.splitlines() == [
        "steelyard: 0 of 4 hosts fit flavor 'typo'; 1 host shown",
        "steelyard: no valid host: 0 of 4 hosts fit flavor 'typo'",
        "      3 AggregateInstanceTypeFilter: key 'sdd': flavor wants 'nvme', no aggregate of the "
        "host has the key",
        "      1 CapacityFilter: not enough vCPUs: flavor wants 1",
        "steelyard: no aggregate has the key 'sdd'; did you mean 'ssd'?",
    ]


def test_explain_on_trial_says_what_was_possibly_meant(
    run: Run, typos: str, tmp_path: pathlib.Path
) -> None:
    conf = tmp_path / "trial.conf"
    conf.write_text("[steelyard]\ntrial_filters = AggregateInstanceTypeFilter\n")
    argv = ("--config-file", str(conf), "explain", "--cloud", typos, "--flavor", "small")
    _, out, _ = run(*argv, "--host", "h3", "-f", "json")
    (host,) = json.loads(out)["hosts"]
    assert host["verdict"] == "fits"
    assert [each["did_you_mean"] for each in host["why"]["suggestions"]] == [["nvme"]]
