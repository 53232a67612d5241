"""The command that counts how many more servers fit."""

import json
import pathlib

import pytest

from support.cli.in_process import Run

pytestmark = pytest.mark.usefixtures("faulty_cloud")


def test_capacity_lists_each_host(run: Run) -> None:
    status, out, err = run("capacity", "--flavor", "small", "--by", "host", "-f", "json")
    assert (status, err.splitlines()[-1:]) == (
        0,
        ["steelyard: 8 more servers of 'small' fit, on 3 of 3 hosts"],
    )
    assert [tuple(row.values()) for row in json.loads(out)["hosts"]] == [
        ("small", "h1", 4, "vCPUs: flavor wants 1, the host has 0 of 4 left"),
        ("small", "h2", 2, "RAM: flavor wants 1 GiB, the host has 0 of 2 GiB left"),
        ("small", "h3", 2, "RAM: flavor wants 1 GiB, the host has 0 of 2 GiB left"),
    ]


@pytest.mark.parametrize("argv", [(), ("--by", "reason"), ("--by", "host")])
def test_capacity_has_totals_in_its_summary(run: Run, argv: tuple[str, ...]) -> None:
    flavors = ("--flavor", "small", "--flavor", "huge")
    _, out, _ = run("capacity", *flavors, *argv, "-f", "json")
    assert json.loads(out)["summary"] == {
        "by": argv[1] if argv else None,
        "group": None,
        "on_one_host": False,
        "flavors": [
            {"flavor": "small", "more": 8, "at_least": False, "fitting_hosts": 3, "hosts": 3},
            {"flavor": "huge", "more": 0, "at_least": False, "fitting_hosts": 0, "hosts": 3},
        ],
    }


def test_capacity_by_reason_groups_hosts(run: Run) -> None:
    status, out, _ = run("capacity", "--flavor", "fast", "--by", "reason", "-f", "json")
    assert status == 0
    assert [tuple(row.values()) for row in json.loads(out)["reasons"]] == [
        ("fast", 1, 0, "key 'ssd': flavor wants 'nvme', no aggregate of the host has the key"),
        ("fast", 1, 2, "not enough RAM: flavor wants 1 GiB"),
        ("fast", 1, 4, "not enough vCPUs: flavor wants 1"),
    ]


def test_capacity_without_room_exits_with_1(run: Run) -> None:
    status, _, err = run("capacity", "--flavor", "huge")
    assert status == 1
    assert "steelyard: 0 more servers of 'huge' fit, on 0 of 3 hosts\n" in err


def test_capacity_of_an_unknown_flavor_is_rejected(run: Run) -> None:
    status, out, err = run("capacity", "--flavor", "smal")
    assert (status, out) == (2, "")
    assert err == "steelyard: no flavor 'smal'; did you mean 'small'?\n"


def test_capacity_counts_several_flavors(run: Run) -> None:
    argv = ("capacity", "--flavor", "small", "--flavor", "huge", "--flavor", "small")
    status, out, err = run(*argv, "--by", "host", "-f", "json")
    assert status == 1  # no server of one of them fits
    assert [(row["flavor"], row["host"], row["more"]) for row in json.loads(out)["hosts"]] == [
        ("small", "h1", 4),
        ("small", "h2", 2),
        ("small", "h3", 2),
        ("huge", "h1", 0),
        ("huge", "h2", 0),
        ("huge", "h3", 0),
    ]
    assert err.splitlines()[-2:] == [
        "steelyard: 8 more servers of 'small' fit, on 3 of 3 hosts",
        "steelyard: 0 more servers of 'huge' fit, on 0 of 3 hosts",
    ]
    status, _, _ = run("capacity", "--flavor", "small", "--flavor", "fast")
    assert status == 0


def test_capacity_without_flavor_shows_a_total_of_each_flavor(run: Run) -> None:
    status, out, err = run("capacity", "-f", "json")
    assert status == 1
    found = json.loads(out)
    rows = {row["flavor"]: row for row in found["flavors"]}
    assert [each["flavor"] for each in found["summary"]["flavors"]] == list(rows)
    assert len(rows) > 2
    assert rows["small"] == {
        "flavor": "small",
        "fitting_hosts": 3,
        "more": 8,
        "main_cause": "not enough RAM: flavor wants 1 GiB",
    }
    fitting = sum(row["more"] > 0 for row in rows.values())
    assert err.splitlines()[-1] == (
        f"steelyard: more servers of {fitting} of {len(rows)} flavors fit"
    )


def test_capacity_without_flavor_by_reason_counts_all_flavors(run: Run) -> None:
    _, out, _ = run("capacity", "--by", "reason", "-f", "json")
    found = json.loads(out)
    flavors = [each["flavor"] for each in found["summary"]["flavors"]]
    assert list(dict.fromkeys(row["flavor"] for row in found["reasons"])) == flavors


def test_capacity_says_at_least_for_hosts_with_room_for_all_tried(
    run: Run, tmp_path: pathlib.Path
) -> None:
    file = tmp_path / "large.yaml"
    file.write_text(
        "hosts: {h: {vcpus: 9000, ram_mb: 9000, disk_gb: 9000}}\n"
        "flavors: {tiny: {vcpus: 1, ram_mb: 1, disk_gb: 1}}\n"
    )
    _, out, err = run("capacity", "--cloud", str(file))
    assert (
        "| tiny   |             1 | at least 1000 | at most 1000 servers are tried per host |"
        in out
    )
    assert err == "steelyard: more servers of 1 of 1 flavor fit\n"
    _, out, _ = run("capacity", "--cloud", str(file), "-f", "csv", "-c", "More")
    assert out.split() == ['"More"', "1000"]


def test_capacity_without_hosts_has_no_main_cause(run: Run, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "empty.yaml"
    file.write_text("hosts: {}\nflavors: {tiny: {vcpus: 1, ram_mb: 1, disk_gb: 1}}\n")
    _, out, _ = run("capacity", "--cloud", str(file), "-f", "json")
    assert json.loads(out)["flavors"] == [
        {"flavor": "tiny", "fitting_hosts": 0, "more": 0, "main_cause": None}
    ]


def test_capacity_of_a_cloud_without_flavors_is_rejected(run: Run, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "empty.yaml"
    file.write_text("hosts: {}")
    assert run("capacity", "--cloud", str(file)) == (
        2,
        "",
        "steelyard: nothing to count: the cloud has no flavors\n",
    )


ZONES = """
hosts:
  a: {vcpus: 4, ram_mb: 4096, disk_gb: 100}
  b: {vcpus: 2, ram_mb: 4096, disk_gb: 100}
  total: {vcpus: 1, ram_mb: 1024, disk_gb: 100}
aggregates:
  one: {hosts: [a, b], metadata: {availability_zone: az1}}
  two: {hosts: [b], metadata: {availability_zone: az0, rack: r}}
flavors:
  small: {vcpus: 1, ram_mb: 1024, disk_gb: 1}
  large: {vcpus: 1, ram_mb: 4096, disk_gb: 1}
server_groups:
  apart: {policy: anti-affinity}
  together: {policy: affinity}
"""


@pytest.fixture
def zones(tmp_path: pathlib.Path) -> str:
    """Return the path of a cloud with a host in two zones and one in none."""
    file = tmp_path / "zones.yaml"
    file.write_text(ZONES)
    return str(file)


def test_capacity_by_key_has_a_row_for_each_value(run: Run, zones: str) -> None:
    argv = ("capacity", "--cloud", zones, "--by", "availability_zone")
    status, out, err = run(*argv, "-f", "json")
    found = json.loads(out)
    assert status == 0
    assert [tuple(row.values()) for row in found["values"]] == [
        ("small", "az0", 1, 1, 4),
        ("small", "az1", 1, 1, 4),
        ("small", None, 1, 1, 1),
        ("large", "az0", 1, 1, 1),
        ("large", "az1", 1, 1, 1),
        ("large", None, 1, 0, 0),
    ]
    assert found["summary"]["by"] == "availability_zone"
    assert found["summary"]["hosts_with_several_values"] == 1
    assert [each["more"] for each in found["summary"]["flavors"]] == [9, 2]
    assert err.splitlines() == [
        "steelyard: 1 host with several values of 'availability_zone': the first in text order "
        "counts",
        "steelyard: more servers of 2 of 2 flavors fit",
    ]


def test_capacity_by_aggregate_is_a_matrix(run: Run, zones: str) -> None:
    _, out, _ = run("capacity", "--cloud", zones, "--by", "aggregate", "-f", "json")
    found = json.loads(out)
    assert [tuple(row.values()) for row in found["aggregates"]] == [
        ("small", "one", 2, 2, 8),
        ("small", "two", 1, 1, 4),
        ("small", None, 1, 1, 1),
        ("large", "one", 2, 2, 2),
        ("large", "two", 1, 1, 1),
        ("large", None, 1, 0, 0),
    ]
    assert "hosts_with_several_values" not in found["summary"]


def test_capacity_table_ends_with_totals_even_if_sorted(run: Run, zones: str) -> None:
    argv = ("capacity", "--cloud", zones, "--by", "aggregate", "--sort-column", "More")
    _, out, _ = run(*argv, "--sort-descending")
    assert (
        out
        == """\
+--------+-----------+-------+---------------+------+
| Flavor | Aggregate | Hosts | Fitting hosts | More |
+--------+-----------+-------+---------------+------+
| small  | one       |     2 |             2 |    8 |
| small  | two       |     1 |             1 |    4 |
| large  | one       |     2 |             2 |    2 |
| small  | (none)    |     1 |             1 |    1 |
| large  | two       |     1 |             1 |    1 |
| large  | (none)    |     1 |             0 |    0 |
| small  | (total)   |     3 |             3 |    9 |
| large  | (total)   |     3 |             2 |    2 |
+--------+-----------+-------+---------------+------+
"""
    )


@pytest.mark.parametrize(
    ("by", "form", "rows"),
    [
        ("host", "value", ["a 4", "b 4", "total 1"]),
        ("rack", "value", ["r 4", " 5"]),
        ("aggregate", "csv", ['"Aggregate","More"', '"one",8', '"two",4', '"",1']),
    ],
)
def test_capacity_for_programs_has_no_rows_with_totals(
    run: Run, zones: str, by: str, form: str, rows: list[str]
) -> None:
    name = {"host": "Host", "rack": "Value", "aggregate": "Aggregate"}[by]
    argv = ("--by", by, "-f", form, "-c", name, "-c", "More", "--flavor", "small")
    _, out, _ = run("capacity", "--cloud", zones, *argv)
    assert out.splitlines() == rows


@pytest.mark.parametrize(
    ("by", "message"),
    [
        (
            "availability_zon",
            "no aggregate has the metadata key 'availability_zon'; did you mean "
            "'availability_zone'?",
        ),
        ("hosts", "no aggregate has the metadata key 'hosts'; did you mean 'host'?"),
        (
            "x",
            "no aggregate has the metadata key 'x'; available: 'host', 'aggregate', 'reason', "
            "'availability_zone', 'rack'",
        ),
    ],
)
def test_capacity_by_an_unknown_key_is_rejected(
    run: Run, zones: str, by: str, message: str
) -> None:
    assert run("capacity", "--cloud", zones, "--by", by) == (2, "", f"steelyard: --by: {message}\n")


def test_capacity_of_a_group_counts_servers_that_join_it(run: Run, zones: str) -> None:
    argv = ("capacity", "--cloud", zones, "--flavor", "small", "--by", "host")
    _, out, err = run(*argv, "--group", "apart", "-f", "json")
    found = json.loads(out)
    assert [row["more"] for row in found["hosts"]] == [1, 1, 1]
    assert (found["summary"]["group"], found["summary"]["on_one_host"]) == ("apart", False)
    assert err == "steelyard: 3 more servers of 'small' fit, on 3 of 3 hosts\n"
    _, out, err = run(*argv, "--group", "together", "-f", "json")
    found = json.loads(out)
    assert [row["more"] for row in found["hosts"]] == [4, 4, 1]
    assert found["summary"]["on_one_host"] is True
    assert found["summary"]["flavors"][0]["more"] == 4
    assert err.splitlines() == [
        "steelyard: 4 more servers of 'small' fit, on 3 of 3 hosts",
        "steelyard: all servers of group 'together' go to one host",
    ]


def test_capacity_of_an_unknown_group_is_rejected(run: Run, zones: str) -> None:
    status, out, err = run("capacity", "--cloud", zones, "--group", "aparts")
    assert (status, out) == (2, "")
    assert err == "steelyard: no server group 'aparts'; did you mean 'apart'?\n"
