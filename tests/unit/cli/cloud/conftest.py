import json
import pathlib
from typing import Any

import pytest

from support.cli.in_process import Run

CLOUD = """\
hosts:
  h1: {vcpus: 1, ram_mb: 4096, disk_gb: 100}
  h2: {vcpus: 1, ram_mb: 2048, disk_gb: 100}
  h3: {vcpus: 1, ram_mb: 2048, disk_gb: 100}
aggregates:
  fast: {hosts: [h1, h2], metadata: {ssd: nvme, force_metadata_check: perhaps}}
flavors:
  small: {vcpus: 1, ram_mb: 1024, disk_gb: 10}
  fast: {vcpus: 1, ram_mb: 1024, disk_gb: 10, extra_specs: {ssd: nvme}}
  huge: {vcpus: 1, ram_mb: 8192, disk_gb: 10}
"""


@pytest.fixture
def faulty_cloud(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return the path of a cloud.yaml with a huge flavor and an invalid flag in an aggregate."""
    path = tmp_path / "cloud.yaml"
    path.write_text(CLOUD)
    return path


@pytest.fixture
def steelyard(run: Run, cloud: pathlib.Path) -> Any:
    """Return a function that runs a command on the cloud file, with its output read as JSON."""

    def on_cloud(*argv: str, rows: bool = True) -> tuple[int, Any, str]:
        form = ["-f", "json"] if rows else []
        status, out, err = run(*argv, "--cloud", cloud, *form)
        return status, json.loads(out) if rows and status == 0 else out, err

    return on_cloud
