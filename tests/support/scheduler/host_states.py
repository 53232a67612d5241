"""Host states of the embedded scheduler."""

from typing import Any

from steelyard.cloud.host_state import HostState


def state(**fields: Any) -> HostState:
    """Return the state of an empty host of 4 vCPUs, 4 GiB of RAM and 100 GiB of disk."""
    defaults: dict[str, Any] = {
        "host": "h",
        "aggregates": [],
        "instances": {},
        "traits": frozenset(),
        "vcpus_total": 4,
        "ram_mb_total": 4096,
        "disk_gb_total": 100,
    }
    return HostState(**(defaults | fields))
