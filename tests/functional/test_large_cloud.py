"""Ten thousand hosts, described in a file."""

import json
import subprocess
import sys
from typing import Any


def test_ten_thousand_hosts_are_read_and_decided_on(tmp_path: Any) -> None:
    names = [f"node-{number:05}" for number in range(10_000)]
    lines = ["hosts:"]
    lines += [f"  {name}: {{vcpus: 64, ram_mb: 262144, disk_gb: 4000}}" for name in names]
    lines.append("aggregates:")
    for rack in range(200):
        kind = "nvme" if rack % 2 else "sata"
        lines.append(
            f"  rack-{rack}: {{hosts: [{', '.join(names[rack::200])}], metadata: {{ssd: {kind}}}}}"
        )
    lines.append("flavors: {fast: {vcpus: 4, ram_mb: 8192, disk_gb: 40, extra_specs: {ssd: nvme}}}")
    path = tmp_path / "cloud.yaml"
    path.write_text("\n".join(lines))
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from steelyard.cli import main; sys.exit(main())",
            "schedule",
            "--cloud",
            str(path),
            "--flavor",
            "fast",
            "--explain",
            "-f",
            "json",
        ],
        capture_output=True,
        text=True,
        check=True,
    )
    (row,) = json.loads(done.stdout)
    assert row["Host"] == "node-00001"
    assert row["Hosts that fit"] == 5000
    # Each of the racks without such disks is a cause of its own.
    assert [cause["count"] for cause in row["Rejected"]] == [50] * 100
    assert done.stderr == ""
