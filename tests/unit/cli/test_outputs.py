"""The cells of the formats, the order of rows, and the choice of columns."""

import csv
import io
import json
import pathlib
import subprocess
from collections.abc import Callable
from typing import Any

import pytest

from support.cli.commands import DISPLAYING, options_of
from support.cli.in_process import Run

Steelyard = Callable[..., str]

EXPANDED = 'a"$(echo forged)`echo forged`$HOME\\'
CLOUD = f"""\
hosts:
  low: {{vcpus: 4, ram_mb: 2048, disk_gb: 100}}
  full: {{vcpus: 0, ram_mb: 4096, disk_gb: 100}}
  high: {{vcpus: 4, ram_mb: 4096, disk_gb: 100}}
flavors:
  small: {{vcpus: 1, ram_mb: 1024, disk_gb: 10}}
server_groups:
  {json.dumps(EXPANDED)}: {{policy: affinity}}
servers:
  alone: {{host: low, flavor: small}}
"""


@pytest.fixture
def steelyard(tmp_path: pathlib.Path, run: Run) -> Steelyard:
    """Return a function that runs a command beside a cloud file and returns its output."""
    (tmp_path / "cloud.yaml").write_text(CLOUD)

    def succeed(*argv: str) -> str:
        status, out, err = run("--quiet", *argv)
        assert (status, err) == (0, "")
        return out

    return succeed


@pytest.mark.parametrize(
    ("form", "printed"),
    [("csv", '"alone",""\n'), ("value", "alone \n"), ("table", "| alone |       |\n")],
)
def test_missing_value_is_null_in_json_and_empty_in_text(
    steelyard: Steelyard, form: str, printed: str
) -> None:
    columns = ("-c", "Name", "-c", "Group")
    listed = json.loads(steelyard("server", "list", *columns, "-f", "json"))
    assert listed["servers"] == [{"name": "alone", "group": None}]
    assert printed in steelyard("server", "list", *columns, "-f", form)


def test_missing_number_is_empty_in_csv(steelyard: Steelyard) -> None:
    out = steelyard("explain", "--flavor", "small", "-f", "csv", "-c", "Host", "-c", "Weight")
    assert dict(csv.reader(io.StringIO(out)))["full"] == ""


@pytest.mark.parametrize("form", ["table", "csv", "value", "json", "yaml"])
@pytest.mark.parametrize(
    ("column", "order"),
    [("weight", ["low", "high", "full"]), ("why", ["full", "low", "high"])],
)
def test_rows_are_sorted_alike_in_every_format(
    steelyard: Steelyard, form: str, column: str, order: list[str]
) -> None:
    argv = ("-f", form, "-c", "Host", "--sort-column", column)
    rows = steelyard("explain", "--flavor", "small", *argv).rpartition("hosts")[2]
    assert sorted(order, key=rows.index) == order


def test_rows_are_sorted_in_descending_order(steelyard: Steelyard) -> None:
    argv = ("--sort-column", "weight", "--sort-descending", "-c", "Host", "-f", "value")
    assert steelyard("explain", "--flavor", "small", *argv).split() == ["full", "high", "low"]


def test_lists_and_mappings_are_json_in_plain_formats(steelyard: Steelyard) -> None:
    out = steelyard("explain", "--flavor", "small", "-f", "csv", "-c", "Host", "-c", "Why")
    why = json.loads(dict(csv.reader(io.StringIO(out)))["full"])
    assert why["rejected_by"] == "CapacityFilter"
    assert steelyard("group", "show", EXPANDED, "-c", "Servers", "-f", "value") == "[]\n"


def test_shell_expands_nothing_in_a_value(steelyard: Steelyard) -> None:
    out = steelyard("group", "show", EXPANDED, "-f", "shell")
    script = f'{out}printf %s "$name"'
    shell = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True)
    assert shell.stdout == EXPANDED


@pytest.mark.parametrize("name", DISPLAYING)
def test_help_of_sort_column_names_no_behaviour_of_cliff(name: str) -> None:
    helps = [each.help or "" for each in options_of(name) if "--sort-column" in each.option_strings]
    assert not any("ignored" in each for each in helps)


@pytest.mark.parametrize("form", ["json", "yaml", "csv", "value", "table"])
def test_commands_print_every_format(run: Run, cloud: pathlib.Path, form: Any) -> None:
    for command in (["schedule", "--explain"], ["explain"]):
        status, out, _ = run(*command, "--cloud", cloud, "--flavor", "open", "-f", form)
        assert status == 0
        assert "h1" in out
    status, out, _ = run("plugins", "-f", form)
    assert status == 0
    assert "AggregateInstanceTypeFilter" in out


@pytest.mark.parametrize("column", ["Hosts that fit", "hosts_that_fit", "HOSTS THAT FIT"])
@pytest.mark.parametrize(
    ("form", "printed"),
    [
        ("csv", '"Hosts that fit"\n2\n'),
        ("value", "2\n"),
        ("table", "| Hosts that fit |"),
        ("json", '"hosts_that_fit": 2\n'),
        ("yaml", "- hosts_that_fit: 2\n"),
    ],
)
def test_columns_are_selected_by_name_or_key(
    run: Run, cloud: pathlib.Path, column: str, form: str, printed: str
) -> None:
    argv = ("schedule", "--cloud", cloud, "--flavor", "small", "-f", form)
    status, out, _ = run(*argv, "-c", column, "--sort-column", column)
    assert status == 0
    assert printed in out
    assert "h1" not in out


def test_unknown_column_gets_a_suggestion(run: Run) -> None:
    status, _, err = run("schedule", "--example", "-c", "Nope")
    assert status == 2
    assert "Nope" in err
    assert err.count("\n") == 1
