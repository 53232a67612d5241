"""The output with --quiet, with -v and with -vv."""

import pathlib

import pytest

from support.cli.in_process import Run

pytestmark = pytest.mark.usefixtures("cloud")


@pytest.mark.parametrize(
    "argv", ["check", "capacity --flavor small", "compare --rules own", "explain --flavor small"]
)
def test_quiet_prints_the_same_table_and_no_summary(run: Run, argv: str) -> None:
    status, out, err = run("-q", *argv.split())
    assert err == ""
    loud = run(*argv.split())
    assert (status, out) == loud[:2]
    if not argv.startswith("explain"):
        assert loud[2].startswith("steelyard: ")


@pytest.mark.parametrize(
    "argv",
    [
        "db upgrade --url sqlite:///new.db",
        "explain --flavor small --html page.html",
        "group delete near --cloud cloud.yaml",
    ],
)
def test_quiet_prints_no_confirmation(run: Run, argv: str) -> None:
    assert run("-q", *argv.split()) == (0, "", "")


def test_quiet_prints_errors(run: Run) -> None:
    status, out, err = run("-q", "capacity", "--flavor", "smal")
    assert (status, out) == (2, "")
    assert err.startswith("steelyard: no flavor 'smal'")


def test_verbose_reports_the_steps_of_an_upgrade(run: Run) -> None:
    status, _, err = run("-v", "db", "upgrade", "--url", "sqlite:///new.db")
    assert status == 0
    lines = err.splitlines()
    assert lines[0].startswith("INFO: Applied revision 0001 of 'consumers': ")
    assert all(line.startswith("INFO: Applied revision ") for line in lines)


def test_verbose_reports_what_is_read(run: Run, tmp_path: pathlib.Path) -> None:
    (tmp_path / "trial.conf").write_text(
        "[steelyard]\ntrial_filters = AggregateInstanceTypeFilter\n"
    )
    _, _, err = run("-v", "--config-file", "trial.conf", "group", "list")
    assert err == "INFO: Reading the cloud from cloud.yaml\n"
    _, _, err = run("-v", "--config-file", "trial.conf", "explain", "--flavor", "small")
    assert "INFO: Reading options from trial.conf\n" in err
    assert [line for line in err.splitlines() if "stevedore" in line or "extension" in line] == []


def test_debug_messages_of_libraries_need_two(run: Run) -> None:
    _, _, err = run("-vv", "db", "upgrade", "--url", "sqlite:///new.db")
    assert "INFO: Context impl SQLiteImpl." in err
