"""The list of plugins."""

import json
from typing import Any

from support.cli.in_process import Run


def test_plugins_lists_the_position_of_enabled_plugins(run: Run) -> None:
    _, out, _ = run("plugins", "-f", "json")
    rows = {row["name"]: row for row in json.loads(out)["plugins"]}
    assert rows["CapacityFilter"]["enabled"] == 2
    assert rows["RAMWeigher"]["kind"] == "weigher"
    assert rows["RAMWeigher"]["distribution"].startswith("steelyard ")


def test_plugins_lists_disabled_plugins(run: Run, tmp_path: Any) -> None:
    path = tmp_path / "steelyard.conf"
    path.write_text("[steelyard]\nenabled_filters = CapacityFilter\n")
    _, out, _ = run("--config-file", str(path), "plugins", "-f", "json")
    rows = {row["name"]: row for row in json.loads(out)["plugins"]}
    assert rows["AggregateInstanceTypeFilter"]["enabled"] is None


def test_plugins_lists_missing_plugins(run: Run, tmp_path: Any) -> None:
    path = tmp_path / "steelyard.conf"
    path.write_text("[steelyard]\nenabled_filters = CapacityFilter, Nope\n")
    _, out, _ = run("--config-file", str(path), "plugins", "-f", "json")
    rows = {row["name"]: row for row in json.loads(out)["plugins"]}
    assert (rows["Nope"]["enabled"], rows["Nope"]["distribution"]) == (2, "not installed")
