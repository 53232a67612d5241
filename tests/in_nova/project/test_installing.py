"""The installation of steelyard into Nova's environment."""

import json
import pathlib
import subprocess
import sys

from support.repository import ROOT


def test_installation_changes_no_package_of_nova(tmp_path: pathlib.Path) -> None:
    report = tmp_path / "report.json"
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--dry-run"]
    subprocess.run([*command, "--report", str(report), str(ROOT)], check=True)
    installed = json.loads(report.read_text())["install"]
    assert [each["metadata"]["name"] for each in installed] == ["steelyard"]
