"""Plugins of another distribution, really installed."""

import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import pytest

SOURCE = pathlib.Path(__file__).parent / "third_party"


@pytest.fixture(scope="module")
def scratch(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder with the other distribution in it, to be put on the path."""
    target = str(tmp_path_factory.mktemp("scratch"))
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", target]
    subprocess.run([*command, str(SOURCE)], check=True)
    return target


@pytest.fixture
def steelyard(scratch: str, tmp_path: pathlib.Path) -> Any:
    def run(options: str, *argv: str) -> tuple[int, str, str]:
        path = tmp_path / "steelyard.conf"
        path.write_text(f"[steelyard]\n{options}\n")
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                "import sys; from steelyard.cli import main; sys.exit(main())",
                "--config-file",
                str(path),
                *argv,
            ],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONPATH": scratch},
        )
        return done.returncode, done.stdout, done.stderr

    return run


def test_they_are_listed_with_their_distribution(steelyard: Any) -> None:
    _, out, _ = steelyard("enabled_filters = NameFilter", "plugins", "-f", "json")
    found = {(row["Name"], row["Distribution"]): row["Enabled"] for row in json.loads(out)}
    assert found["NameFilter", "weekend-plugins 1.2.3"] == 1
    assert found["NameWeigher", "weekend-plugins 1.2.3"] is None


def test_they_decide(steelyard: Any) -> None:
    options = "enabled_filters = NameFilter\nenabled_weighers = NameWeigher"
    status, out, _ = steelyard(
        options, "explain", "--example", "--flavor", "any.small", "-f", "json"
    )
    assert status == 0
    rows = json.loads(out)
    assert {row["Host"]: row["Verdict"] for row in rows} == {
        "rack1-node1": "chosen",
        "rack2-node1": "fits",
        "rack3-node1": "fits",
        "gpu-node1": "fits",
        "rack1-node2": "rejected",
        "rack2-node2": "rejected",
    }
    assert rows[-1]["Why"]["reason"] == "'rack2-node2' does not end in 1"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            "enabled_filters = BrokenFilter",
            "the filter 'BrokenFilter' of weekend-plugins 1.2.3 cannot be loaded: "
            "ModuleNotFoundError: No module named 'weekend_plugins.nowhere'",
        ),
        (
            "enabled_filters = NoFilterAtAll",
            "of weekend-plugins 1.2.3 cannot be loaded: TypeError: "
            "<class 'weekend_plugins.NoFilterAtAll'> is no subclass of Filter",
        ),
        (
            "enabled_filters = FailingFilter",
            "of weekend-plugins 1.2.3 cannot be loaded: RuntimeError: no licence",
        ),
        ("enabled_filters = NameFiltr", "there is no filter 'NameFiltr'; installed are "),
        ("enabled_weighers = RAMWeigher", "the weigher 'RAMWeigher' is provided by steelyard "),
        ("enabled_weighers = RAMWeigher", " and weekend-plugins 1.2.3; uninstall one of them"),
    ],
)
def test_what_is_wrong_with_one_is_said(steelyard: Any, options: str, said: str) -> None:
    if "weighers" not in options:
        options += "\nenabled_weighers = NameWeigher"
    status, out, err = steelyard(options, "schedule", "--example")
    assert (status, out) == (2, "")
    assert err.startswith("steelyard: ")
    assert said in err
    assert err.count("\n") == 1
