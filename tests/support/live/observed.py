"""Parts of a live cloud as the services describe them."""

import dataclasses
from typing import Any

from steelyard.live.answers import Hypervisor, Provider, SeenFlavor, SeenInventory, SeenServer

SMALL = SeenFlavor("f", "small", 1, 1024, 10, {"ssd": "nvme"})
KEPT = dataclasses.replace(SMALL, uuid="")
AMOUNTS = {"vcpus": 8, "ram_mb": 8192, "disk_gb": 100}
HAS = {"VCPU": SeenInventory(8), "MEMORY_MB": SeenInventory(8192), "DISK_GB": SeenInventory(100)}


def hypervisor(name: str, node: str = "", **more: Any) -> Hypervisor:
    """Return a hypervisor of a compute service with this name."""
    node = node or f"{name}.example"
    made = Hypervisor(f"uuid-{node}", node, name, "", AMOUNTS, AMOUNTS)
    return dataclasses.replace(made, **more)


def server(name: str, host: str | None, node: str = "", **more: Any) -> SeenServer:
    """Return a server of the flavor SMALL."""
    made = SeenServer(f"uuid-{name}", name, host, node, KEPT)
    return dataclasses.replace(made, **more)


def provider(
    has: dict[str, SeenInventory] | None = None, used: dict[str, int] | None = None, **more: Any
) -> Provider:
    """Return a resource provider with these inventories and usages."""
    return Provider(HAS if has is None else has, used or {}, frozenset(), **more)
