"""Plugins of another distribution, really installed."""

import json
import pathlib
import shutil
from collections.abc import Callable
from typing import Any

import pytest

from support.repository import EXAMPLES
from support.third_parties import install, make_importable


@pytest.fixture
def run(
    steelyard: Callable[..., tuple[int, str, str]],
    third_party: str,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Any:
    """Return a function that runs a command with options where the distribution is installed."""
    make_importable(monkeypatch, third_party, "weekend_plugins")

    def run(options: str, *argv: str) -> tuple[int, str, str]:
        path = tmp_path / "steelyard.conf"
        path.write_text(f"[steelyard]\n{options}\n")
        return steelyard("--config-file", str(path), *argv)

    return run


def test_plugins_command_lists_plugins_of_another_distribution(run: Any) -> None:
    _, out, _ = run("enabled_filters = NameFilter", "plugins", "-f", "json")
    found = {
        (row["name"], row["distribution"]): row["enabled"] for row in json.loads(out)["plugins"]
    }
    assert found["NameFilter", "weekend-plugins 1.2.3"] == 1
    assert found["NameWeigher", "weekend-plugins 1.2.3"] is None


def test_plugins_of_another_distribution_decide(run: Any) -> None:
    options = "enabled_filters = NameFilter\nenabled_weighers = NameWeigher"
    status, out, _ = run(options, "explain", "--example", "--flavor", "any.small", "-f", "json")
    assert status == 0
    rows = json.loads(out)["hosts"]
    assert {row["host"]: row["verdict"] for row in rows} == {
        "rack1-node1": "chosen",
        "rack2-node1": "fits",
        "rack3-node1": "fits",
        "gpu-node1": "fits",
        "rack1-node2": "rejected",
        "rack2-node2": "rejected",
    }
    assert rows[-1]["why"]["reason"] == "'rack2-node2' does not end in 1"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            "enabled_filters = BrokenFilter",
            "the filter 'BrokenFilter' of weekend-plugins 1.2.3 cannot be loaded: "
            "ModuleNotFoundError: No module named 'weekend_plugins.nowhere'",
        ),
        (
            "enabled_filters = NoFilterAtAll",
            "of weekend-plugins 1.2.3 cannot be loaded: TypeError: "
            "<class 'weekend_plugins.NoFilterAtAll'> is not a subclass of Filter",
        ),
        (
            "enabled_filters = FailingFilter",
            "of weekend-plugins 1.2.3 cannot be loaded: RuntimeError: no licence",
        ),
        ("enabled_filters = NameFiltr", "no filter 'NameFiltr'; installed: "),
        ("enabled_filters = NameFiltr", "; did you mean 'NameFilter'"),
        (
            "enabled_filters = LicensedFilter\n[weekend]\nseats = 0\n[steelyard]",
            "steelyard.conf:4: [weekend] seats = '0': expected a whole number of at least 1",
        ),
        (
            "seed = x\nenabled_filters = LicensedFilter\n[weekend]\nseats = 0\n[steelyard]",
            "steelyard.conf:5: [weekend] seats = '0': expected a whole number of at least 1",
        ),
        ("enabled_weighers = RAMWeigher", "the weigher 'RAMWeigher' is provided by steelyard "),
        ("enabled_weighers = RAMWeigher", " and weekend-plugins 1.2.3; uninstall one of them"),
    ],
)
def test_broken_plugin_is_reported(run: Any, options: str, message: str) -> None:
    if "weighers" not in options:
        options += "\nenabled_weighers = NameWeigher"
    status, out, err = run(options, "schedule", "--example")
    assert (status, out) == (2, "")
    assert err.startswith("steelyard: ")
    assert message in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    "argv",
    [["plugins"], ["compare", "--rules", "own", "--example"], ["check", "--example"]],
    ids=lambda argv: argv[0],
)
def test_options_of_plugins_are_known_after_construction(run: Any, argv: list[str]) -> None:
    options = "enabled_filters = LicensedFilter\nenabled_weighers = NameWeigher\nlicence = x"
    _, _, err = run(f"{options}\nlicense = y", *argv)
    (warning,) = [line for line in err.splitlines() if line.startswith("WARNING")]
    assert "steelyard.conf:5: [steelyard] license; did you mean" in warning
    assert warning.endswith("; did you mean 'licence'?")


def subjects(findings: str) -> list[str]:
    """Return the names of the subjects in JSON output."""
    return [finding["subject"]["name"] for finding in json.loads(findings)["findings"]]


def test_doctor_accepts_options_of_enabled_plugins(run: Any) -> None:
    options = "licence = x\n[filter_scheduler]\nenabled_filters = LicensedFilter"
    _, out, _ = run(options, "doctor", "-f", "json")
    assert "[steelyard] licence" not in subjects(out)
    _, out, _ = run("licence = x", "doctor", "-f", "json")
    assert "[steelyard] licence" in subjects(out)


@pytest.mark.parametrize(
    ("available", "found"),
    [("nova.scheduler.filters.all_filters", True), ("steelyard.nova.NameFilter", False)],
)
def test_doctor_reports_an_enabled_filter_that_is_not_available(
    run: Any, available: str, found: bool
) -> None:
    lines = ["[filter_scheduler]", "available_filters = nova.scheduler.filters.all_filters"]
    lines += [f"available_filters = {available}", "enabled_filters = ComputeFilter, NameFilter"]
    _, out, _ = run("\n".join(lines), "doctor", "-f", "json")
    assert ("NameFilter is enabled but not available" in out) is found


def test_filter_of_the_guide_works_when_installed(
    steelyard: Any, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "acme"
    source.mkdir()
    for name in ("acme_scheduling.py", "pyproject.toml"):
        shutil.copy(EXAMPLES / "plugins" / "acme" / name, source)
    assert sum(len(file.read_text().splitlines()) for file in source.iterdir()) < 40
    folder = install(source, tmp_path / "target")
    make_importable(monkeypatch, str(folder), "acme_scheduling")
    monkeypatch.chdir(EXAMPLES)
    options = "--config-file acme.conf explain --cloud acme.yaml --flavor web -f json"
    status, out, _ = steelyard(*options.split())
    assert status == 0
    why = {row["host"]: row["why"] for row in json.loads(out)["hosts"]}
    assert why["node1"]["rejected_by"] == "ServerCountFilter"
    assert why["node1"]["reason"] == "has 2 of at most 2 servers"
    assert [host for host in why if not why[host]["rejected_by"]] == ["node3", "node2"]
