"""A cloud of three hosts with different amounts of RAM."""

from steelyard.cloud import Aggregate, Cloud, Flavor, Host
from steelyard.groups import Policy, ServerGroup


def cloud(**metadata: dict[str, str]) -> Cloud:
    """Return the cloud; each host is alone in an aggregate with the metadata given for it."""
    hosts = {name: Host(name, 4, ram, 100) for name, ram in (("a", 4096), ("b", 8192), ("c", 2048))}
    return Cloud(
        hosts,
        {name: Aggregate(f"rack-{name}", metadata.get(name, {}), (name,)) for name in hosts},
        {
            "small": Flavor("small", 1, 1024, 10),
            "nvme": Flavor("nvme", 1, 1024, 10, {"ssd": "nvme"}),
            "huge": Flavor("huge", 1, 99999, 10),
        },
        {
            "apart": ServerGroup("apart", Policy.ANTI_AFFINITY),
            "together": ServerGroup("together", Policy.AFFINITY),
            "softly": ServerGroup("softly", Policy.SOFT_AFFINITY),
        },
    )
