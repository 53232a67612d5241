"""Print the resource providers of a live Placement as a provider file."""

import json
import sys
from typing import Any

from steelyard.clients import Placement


def copy(placement: Placement) -> dict[str, Any]:
    """Return the content of the provider file."""
    providers = placement.send("GET", "/resource_providers", "1.39")["resource_providers"]
    for provider in providers:
        for part in ("inventories", "usages", "traits", "aggregates"):
            url = f"/resource_providers/{provider['uuid']}/{part}"
            provider[part] = placement.send("GET", url, "1.39")[part]
    return {"resource_providers": providers}


if __name__ == "__main__":
    import openstack

    placement = Placement(openstack.connect(cloud=sys.argv[1]).placement)
    json.dump(copy(placement), sys.stdout, indent=2)
