"""A cloud file with ten thousand hosts."""

import json
from typing import Any


def test_schedule_handles_ten_thousand_hosts(steelyard: Any, tmp_path: Any) -> None:
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
    argv = ["schedule", "--cloud", str(path), "--flavor", "fast", "--explain", "-f", "json"]
    status, out, err = steelyard(*argv)
    assert (status, err) == (0, "")
    (row,) = json.loads(out)["servers"]
    assert row["host"] == "node-00001"
    assert row["hosts_that_fit"] == 5000
    # Each rack without NVMe disks is a separate cause.
    assert [cause["count"] for cause in row["rejected"]] == [50] * 100
