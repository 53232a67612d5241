"""Answers of a Nova and a Placement with one host and one server, and their cloud file."""

import json
from typing import Any

HOST = "00000000-0000-4000-8000-000000000001"
SERVER = "00000000-0000-4000-8000-000000000002"
GROUP = "00000000-0000-4000-8000-000000000003"
OTHER = "00000000-0000-4000-8000-000000000004"
PROVIDER = f"/resource_providers/{HOST}"
HYPERVISORS = "/os-hypervisors/detail"
SERVERS = "/servers/detail"

AMOUNTS = {"vcpus": 8, "vcpus_used": 3, "memory_mb": 8192, "memory_mb_used": 1024}
FLAVOR = {"vcpus": 1, "ram": 1024, "disk": 10, "swap": "", "extra_specs": {"ssd": "nvme"}}
ANSWERS: dict[str, Any] = {
    HYPERVISORS: {
        "hypervisors": [
            {
                "id": HOST,
                "hypervisor_hostname": "node1.example",
                "service": {"host": "node1", "disabled_reason": None},
                "status": "enabled",
                "state": "up",
                "local_gb": 100,
                "local_gb_used": 10,
                "hypervisor_type": "QEMU",
                "hypervisor_version": 8002002,
                "cpu_info": {
                    "arch": "x86_64",
                    "features": ["avx2", "aes"],
                    "topology": {"cores": 4},
                },
                **AMOUNTS,
            }
        ]
    },
    f"{HYPERVISORS}?marker={HOST}": {"hypervisors": []},
    "/os-aggregates": {
        "aggregates": [
            {
                "id": 1,
                "uuid": OTHER,
                "name": "fast",
                "metadata": {"ssd": "nvme"},
                "hosts": ["node1"],
            }
        ]
    },
    "/flavors/detail": {"flavors": []},
    "/flavors/detail?is_public=True": {"flavors": [{"id": "1", "name": "small", **FLAVOR}]},
    "/os-server-groups": {
        "server_groups": [
            {
                "id": GROUP,
                "name": "web",
                "policy": "anti-affinity",
                "rules": {"max_server_per_host": 2},
                "members": [SERVER],
            }
        ]
    },
    "/os-server-groups?all_projects=True&offset=1": {"server_groups": []},
    "/os-server-groups?offset=1": {"server_groups": []},
    SERVERS: {
        "servers": [
            {
                "id": SERVER,
                "name": "web-1",
                "image": {"id": "i", "properties": {"hw_vif_model": "virtio"}},
                "tenant_id": "shop",
                "user_id": "ada",
                "pinned_availability_zone": "north",
                "scheduler_hints": {"group": [GROUP]},
                "OS-EXT-SRV-ATTR:host": "node1",
                "OS-EXT-SRV-ATTR:hypervisor_hostname": "node1.example",
                "flavor": {"original_name": "small", "ephemeral": 0, **FLAVOR},
            }
        ]
    },
    f"{SERVERS}?all_tenants=1&marker={SERVER}": {"servers": []},
    f"{SERVERS}?marker={SERVER}": {"servers": []},
    "/resource_providers": {"resource_providers": [{"uuid": HOST, "root_provider_uuid": HOST}]},
    f"{PROVIDER}/inventories": {
        "inventories": {
            "VCPU": {"total": 8, "reserved": 1, "allocation_ratio": 4.0, "max_unit": 8},
            "MEMORY_MB": {"total": 8192, "allocation_ratio": 1.0},
            "DISK_GB": {"total": 100, "allocation_ratio": 1.0},
        }
    },
    f"{PROVIDER}/usages": {"usages": {"VCPU": 3, "MEMORY_MB": 1024, "DISK_GB": 10}},
    f"{PROVIDER}/traits": {"traits": ["HW_CPU_X86_AVX2"]},
}
WRITTEN = f"""\
hosts:
  node1:
    vcpus: 8
    ram_mb: 8192
    disk_gb: 100
    traits: [HW_CPU_X86_AVX2]
    uuid: {HOST}
    reserved: {{vcpus: 1}}
    used: {{vcpus: 2}}
    allocation_ratios: {{vcpus: 4.0, ram_mb: 1.0, disk_gb: 1.0}}
    max_units: {{ram_mb: 2147483647, disk_gb: 2147483647}}
    node: node1.example
    hypervisor_type: QEMU
    hypervisor_version: 8002002
    cpu_info:
      arch: x86_64
      features: [aes, avx2]
      topology: {{cores: 4}}
    placement_aggregates: [{OTHER}]
aggregates:
  fast:
    hosts: [node1]
    metadata: {{ssd: nvme}}
    uuid: {OTHER}
flavors:
  small:
    vcpus: 1
    ram_mb: 1024
    disk_gb: 10
    extra_specs: {{ssd: nvme}}
server_groups:
  web:
    policy: anti-affinity
    rules: {{max_server_per_host: 2}}
    uuid: {GROUP}
servers:
  web-1:
    host: node1
    flavor: small
    group: web
    uuid: {SERVER}
    project: shop
    user: ada
    availability_zone: north
    image_properties: {{hw_vif_model: virtio}}
    scheduler_hints: {{group: {GROUP}}}
"""
WRITTEN_JSON = f"""\
{{
  "hosts": {{
    "node1": {{"vcpus": 8, "ram_mb": 8192, "disk_gb": 100, "traits": ["HW_CPU_X86_AVX2"], \
"uuid": "{HOST}", "reserved": {{"vcpus": 1}}, "used": {{"vcpus": 2}}, \
"allocation_ratios": {{"vcpus": 4.0, "ram_mb": 1.0, "disk_gb": 1.0}}, \
"max_units": {{"ram_mb": 2147483647, "disk_gb": 2147483647}}, "node": "node1.example", "hypervisor_type": "QEMU", "hypervisor_version": 8002002, \
"cpu_info": {{"arch": "x86_64", "features": ["aes", "avx2"], "topology": {{"cores": 4}}}}, \
"placement_aggregates": ["{OTHER}"]}}
  }},
  "aggregates": {{
    "fast": {{"hosts": ["node1"], "metadata": {{"ssd": "nvme"}}, "uuid": "{OTHER}"}}
  }},
  "flavors": {{
    "small": {{"vcpus": 1, "ram_mb": 1024, "disk_gb": 10, "extra_specs": {{"ssd": "nvme"}}}}
  }},
  "server_groups": {{
    "web": {{"policy": "anti-affinity", "rules": {{"max_server_per_host": 2}}, "uuid": "{GROUP}"}}
  }},
  "servers": {{
    "web-1": {{"host": "node1", "flavor": "small", "group": "web", "uuid": "{SERVER}", \
"project": "shop", "user": "ada", "availability_zone": "north", \
"image_properties": {{"hw_vif_model": "virtio"}}, "scheduler_hints": {{"group": "{GROUP}"}}}}
  }}
}}
"""
SUMMARY = "1 host, 1 aggregate, 1 flavor, 1 server group, 1 server\n"
IMPORT = ["cloud", "import", "--os-cloud", "here"]


def refused(status: int, message: str = "not you") -> tuple[int, bytes]:
    return status, json.dumps({"forbidden": {"code": status, "message": message}}).encode()


class Busy(dict[str, tuple[int, bytes]]):
    """Answers of which one path fails on its first two requests."""

    def __init__(self, answers: Any, path: str, status: int) -> None:
        super().__init__(answers)
        self._path, self._left, self._status = path, 2, status

    def get(self, path: str, *otherwise: Any) -> Any:
        if path == self._path and self._left:
            self._left -= 1
            return self._status, b"busy"
        return super().get(path, *otherwise)


class Changing(dict[str, tuple[int, bytes]]):
    """Answers that call a function when traits are requested."""

    def __init__(self, answers: Any, do: Any) -> None:
        super().__init__(answers)
        self._do = do

    def get(self, path: str, *otherwise: Any) -> Any:
        if path.endswith("/traits"):
            self._do()
        return super().get(path, *otherwise)
