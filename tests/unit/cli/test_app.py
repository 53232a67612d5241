"""Options before the command, configuration files, logs, and errors."""

import logging
import pathlib
import subprocess
import sys
from typing import Any

import pytest

from support.cli.in_process import Run


def test_later_configuration_files_take_precedence(
    run: Run, cloud: pathlib.Path, tmp_path: Any
) -> None:
    first, second = tmp_path / "first.conf", tmp_path / "second.conf"
    first.write_text("[steelyard]\nram_weight_multiplier = -1\n")
    second.write_text("[steelyard]\nram_weight_multiplier = 2\n")

    def host(*files: str) -> str:
        options = [part for file in files for part in ("--config-file", file)]
        _, out, _ = run(
            *options, "schedule", "--cloud", cloud, "--flavor", "small", "-f", "value", "-c", "Host"
        )
        return str(out).strip()

    assert host() == "h2"
    assert host(str(first)) == "h1"
    assert host(str(first), str(second)) == "h2"


def test_unwritable_log_file_is_reported(run: Run, tmp_path: Any) -> None:
    status, _, err = run("--log-file", str(tmp_path / "no" / "log"), "plugins")
    assert status == 2
    assert "No such file or directory" in err


def test_binary_configuration_file_is_reported(run: Run, tmp_path: Any) -> None:
    path = tmp_path / "steelyard.conf"
    path.write_bytes(b"[steelyard]\nseed = \xff\n")
    status, _, err = run("--config-file", str(path), "plugins")
    assert status == 2
    assert "not UTF-8 text" in err


def test_log_level_is_that_of_the_most_verbose_handler(run: Run) -> None:
    run("plugins")
    assert logging.root.level == logging.WARNING
    run("-vv", "plugins")
    assert logging.root.level == logging.DEBUG


def test_warnings_of_filters_are_printed(run: Run, cloud: pathlib.Path) -> None:
    cloud.write_text(cloud.read_text().replace('"!"', '">= many"'))
    status, _, err = run("schedule", "--cloud", cloud, "--flavor", "open")
    assert status == 1
    assert "WARNING: Flavor extra spec 'ssd' cannot be satisfied: '>= many'" in err


def test_internal_error_exits_with_70(run: Run, monkeypatch: Any) -> None:
    monkeypatch.setattr("steelyard.cli.plugins.plugins.installed", lambda group: 1 / 0)
    status, _, err = run("plugins")
    assert status == 70
    assert "division by zero" in err
    assert "internal error; run again with --debug" in err


def test_invalid_option_is_reported_with_its_line(run: Run, tmp_path: Any) -> None:
    path = tmp_path / "steelyard.conf"
    path.write_text("[steelyard]\nseed = 1\n\nhost_subset_size = 0\n")
    status, out, err = run("--config-file", str(path), "schedule", "--example")
    assert (status, out) == (2, "")
    assert err == (
        f"steelyard: {path}:4: [steelyard] host_subset_size = '0': expected a whole number of at "
        "least 1\n"
    )


@pytest.mark.parametrize(
    ("option", "kind", "mistyped", "meant"),
    [
        ("enabled_filters", "filter", "CapacityFiltr", "CapacityFilter"),
        ("enabled_weighers", "weigher", "ramweigher", "RAMWeigher"),
        ("query_builder", "query builder", "trait", "traits"),
    ],
)
def test_mistyped_plugin_gets_a_suggestion(
    run: Run, tmp_path: Any, option: Any, kind: Any, mistyped: Any, meant: Any
) -> None:
    path = tmp_path / "steelyard.conf"
    path.write_text(f"[steelyard]\n{option} = {mistyped}\n")
    status, out, err = run("--config-file", str(path), "schedule", "--example")
    assert (status, out) == (2, "")
    assert err.startswith(f"steelyard: no {kind} {mistyped!r}; installed: ")
    assert f"{meant} (steelyard " in err
    assert f"; did you mean {meant!r}" in err


@pytest.mark.parametrize(
    ("option", "argv", "meant"),
    [
        ("consumer_model = sqll", "schedule --example --commit --url sqlite:///c.db", "sql"),
        ("", "tags backend set ganety --url sqlite:///tags.db", "ganeti"),
    ],
)
def test_mistyped_model_or_backend_gets_a_suggestion(
    run: Run, tmp_path: Any, monkeypatch: Any, option: Any, argv: Any, meant: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "steelyard.conf").write_text(f"[steelyard]\n{option}\n")
    run("db", "upgrade", "--url", "sqlite:///c.db")
    run("db", "upgrade", "--schema", "tags", "--url", "sqlite:///tags.db")
    status, out, err = run("--config-file", "steelyard.conf", *argv.split())
    assert (status, out) == (2, "")
    assert f"{meant} (steelyard " in err
    assert err.endswith(f"; did you mean {meant!r}?\n")


def test_command_imports_no_other_command() -> None:
    code = """
import sys
from steelyard import cli
cli.main(["plugins", "-f", "json"])
print(*(name for name in sys.modules if name.startswith("steelyard.")), sep="\\n")
"""
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).splitlines()
    assert "steelyard.cli.plugins" in loaded
    assert not {"steelyard.cli.query", "steelyard.live", "steelyard.page"}.intersection(loaded)
