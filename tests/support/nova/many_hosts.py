"""A real Nova and a real Placement with many hosts.

One compute service runs; the other hosts are copies of its records in Nova's databases and in
Placement, because their services would slow the scheduler down.
"""

import random
from typing import Any

from support.nova import clouds  # before the rest of Nova; see there

# isort: split
from nova import context, objects
from oslo_utils import uuidutils

_OF_THE_RECORD = ("id", "created_at", "updated_at", "deleted", "deleted_at", "service_id")


class ManyHosts(clouds.Cloud):
    """A cloud with one host, of which ``copy_host0`` makes ``many``."""

    hosts = ("host0",)
    many = 1000

    def setUp(self) -> None:
        clouds.CONF.set_override("service_down_time", 10**7)  # the copied hosts have no services
        super().setUp()
        self.admin = context.get_admin_context()
        self.everywhere = ["host0", *(f"host{number}" for number in range(1, self.many))]

    def copy_host0(self) -> None:
        """Create hosts like the first one, in Nova and in Placement."""
        node = objects.ComputeNode.get_first_node_by_host_for_old_compat(self.admin, "host0")
        service = objects.Service.get_by_compute_host(self.admin, "host0")
        cell = objects.HostMapping.get_by_host(self.admin, "host0").cell_mapping
        fields = {
            field: getattr(node, field)
            for field in node.fields
            if field not in _OF_THE_RECORD and node.obj_attr_is_set(field)
        }
        provider = f"/resource_providers/{node.uuid}"
        about = {
            what: self.placement.get(f"{provider}/{what}", version="1.6").body
            for what in ("inventories", "traits")
        }
        for host in self.everywhere[1:]:
            copy = objects.Service(
                self.admin, host=host, binary=service.binary, topic=service.topic, uuid=_uuid()
            )
            copy.create()
            copy.report_count = 1
            copy.save()
            objects.HostMapping(self.admin, host=host, cell_mapping=cell).create()
            uuid = _uuid()
            own = {"uuid": uuid, "host": host, "hypervisor_hostname": host}
            objects.ComputeNode(self.admin, **fields | own).create()
            self.copy_provider(uuid, host, about)

    def copy_provider(self, uuid: str, name: str, about: dict[str, dict[str, Any]]) -> None:
        made = self.placement.post("/resource_providers", {"name": name, "uuid": uuid})
        assert made.status == 201, made.body
        for generation, (what, body) in enumerate(about.items()):
            body["resource_provider_generation"] = generation
            url = f"/resource_providers/{uuid}/{what}"
            put = self.placement.put(url, body, version="1.6")
            assert put.status == 200, put.body

    def fill_aggregates(self) -> list[Any]:
        """Put every host into 3 of 20 aggregates, and return them.

        They are written to the database; the API would take half a second for each host.
        """
        chance = random.Random(1)
        made = []
        for number in range(20):
            metadata = {
                "disk": chance.choice(["nvme", "ssd", "nvme, ssd"]),
                "tier": chance.choice(["gold", "silver"]),
                "licence": chance.choice(["none", "windows"]),
                "rack": str(number),
            }
            aggregate = objects.Aggregate(self.admin, name=f"a{number}", metadata=metadata)
            aggregate.create()
            aggregate.hosts = []
            made.append(aggregate)
        for number, host in enumerate(self.everywhere):
            for step in (0, 7, 13):
                made[(number + step) % len(made)].add_host(host)
        return made


def _uuid() -> str:
    made: str = uuidutils.generate_uuid()
    return made
