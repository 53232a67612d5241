"""Answers of a Nova, a Glance and a Cinder about one server in error."""

import json
from typing import Any

from keystoneauth1 import adapter, noauth, session

from steelyard.clients.cloud_clients import CloudClients
from steelyard.clients.compute import Compute
from steelyard.clients.image import Images
from steelyard.clients.placement import Placement
from steelyard.clients.volume import Volumes
from support.clients.canned_cloud import ANSWERS, FLAVOR, GROUP, HOST, HYPERVISORS, SERVER

LOST = "10000000-0000-4000-8000-000000000001"
IMAGE = "10000000-0000-4000-8000-000000000002"
VOLUME = "10000000-0000-4000-8000-000000000003"
ASKED = f"/servers/{LOST}"
ACTIONS = f"{ASKED}/os-instance-actions"
CREATE = f"{ACTIONS}/req-1"
MEMBER = f"/servers/{SERVER}"
OF_GROUP = f"/os-server-groups/{GROUP}"
OF_IMAGE = f"/images/{IMAGE}"
OF_VOLUME = f"/volumes/{VOLUME}"
SIBLINGS = "/servers/detail"

(MEMBER_RECORD,) = ANSWERS[SIBLINGS]["servers"]
RECORD: dict[str, Any] = {
    "id": LOST,
    "name": "lost",
    "status": "ERROR",
    "created": "2026-01-01T00:00:00Z",
    "tenant_id": "shop",
    "user_id": "ada",
    "hostId": "",
    "fault": {"message": "No valid host was found. ", "created": "2026-01-01T00:00:09Z"},
    "image": {"id": IMAGE, "properties": {"hw_vif_model": "virtio"}},
    "flavor": {"original_name": "small", "ephemeral": 0, **FLAVOR},
    "pinned_availability_zone": "north",
    "scheduler_hints": {"group": [GROUP]},
    "server_groups": [GROUP],
    "os-extended-volumes:volumes_attached": [{"id": VOLUME}],
    "OS-EXT-AZ:availability_zone": "north",
    "OS-EXT-SRV-ATTR:host": None,
    "OS-EXT-SRV-ATTR:hypervisor_hostname": None,
    "OS-EXT-SRV-ATTR:reservation_id": "r-1",
}
EVENT = {
    "event": "compute__do_build_and_run_instance",
    "start_time": "2026-01-01T00:00:02.000000",
    "finish_time": "2026-01-01T00:00:08.000000",
    "result": "Error",
    "host": "node1",
    "details": "no more disk",
    "traceback": "Traceback\n  disk\nNoSpace: disk",
}
ACTION = {
    "request_id": "req-1",
    "action": "create",
    "start_time": "2026-01-01T00:00:01.000000",
    "message": "Error",
}
BODIES: dict[str, Any] = {
    "/flavors": {"flavors": []},
    "/flavors/detail": {"flavors": []},
    "/flavors/detail?is_public=None": ANSWERS["/flavors/detail?is_public=True"],
    ASKED: {"server": RECORD},
    ACTIONS: {"instanceActions": [ACTION]},
    CREATE: {"instanceAction": {**ACTION, "events": [EVENT]}},
    MEMBER: {"server": MEMBER_RECORD},
    OF_GROUP: {"server_group": ANSWERS["/os-server-groups"]["server_groups"][0]},
    "/os-server-groups": ANSWERS["/os-server-groups"],
    "/os-server-groups?all_projects=True&offset=1": {"server_groups": []},
    SIBLINGS: {"servers": []},
    HYPERVISORS: ANSWERS[HYPERVISORS],
    f"{HYPERVISORS}?marker={HOST}": {"hypervisors": []},
    "/os-aggregates": ANSWERS["/os-aggregates"],
    "/os-availability-zone": {"availabilityZoneInfo": [{"zoneName": "north"}]},
    OF_IMAGE: {
        "id": IMAGE,
        "name": "debian",
        "disk_format": "qcow2",
        "tags": ["stable"],
        "hw_vif_model": "e1000",
        "trait:CUSTOM_X": "required",
    },
    "/images": {"images": []},
    OF_VOLUME: {
        "volume": {
            "id": VOLUME,
            "bootable": "true",
            "volume_image_metadata": {"image_id": IMAGE, "size": "9", "hw_disk_bus": "scsi"},
        }
    },
}


def encoded(body: Any) -> tuple[int, bytes]:
    return 200, json.dumps(body).encode()


def answers() -> dict[str, tuple[int, bytes]]:
    return {path: encoded(body) for path, body in BODIES.items()}


def clients(url: str, seconds: float = 20) -> CloudClients:
    """Return clients without retries, with a time limit for each request."""
    open_to_all = session.Session(auth=noauth.NoAuth(), timeout=seconds)
    made = adapter.Adapter(open_to_all, endpoint_override=url)
    return CloudClients(Compute(made), Placement(made), Images(made), Volumes(made))
