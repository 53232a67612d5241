"""Installing steelyard where Nova is."""

import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).parents[2]


def test_nothing_that_nova_has_is_upgraded(tmp_path: pathlib.Path) -> None:
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run"]
    subprocess.run([*command, "--report", str(report), str(ROOT)], check=True)
    installed = json.loads(report.read_text())["install"]
    assert [each["metadata"]["name"] for each in installed] == ["steelyard"]
