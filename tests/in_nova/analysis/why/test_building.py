"""The rebuilt request is the one of Nova's own code."""

import importlib.metadata
from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.analysis.nova_conf import NOVAS_AFFINITY, NOVAS_DEFAULT_FILTERS, NOVAS_WEIGHERS
from steelyard.analysis.why.building import built
from steelyard.analysis.why.comparing import compared
from steelyard.analysis.why.facts import Facts, KnownHost
from steelyard.analysis.why.rebuilding import releases
from steelyard.analysis.why.switches import Switches
from steelyard.cloud import Aggregate, Flavor
from steelyard.cloud.wanted import WantedServer
from steelyard.groups import Policy, ServerGroup
from steelyard.nova.requests import sent_requests
from support.analysis.wanted_servers import wanted_server
from support.examples import examples

UUIDS = [f"5e08ea53-c4c6-448e-9334-ac4953de3c{number:02x}" for number in range(8)]
MICROVERSIONS = {"29": "2.96", "31": "2.100", "32": "2.100", "33": "2.101", "34": "2.104"}
MAJOR = importlib.metadata.version("nova").partition(".")[0]

FLAGS = ["true", "1", "no", "False", "Yes"]
# The values of extra specs; those of image properties are the same, under other names.
CONSTRAINTS = {
    "hw:cpu_policy": ["dedicated", "shared", "mixed"],
    "hw:cpu_thread_policy": ["prefer", "isolate", "require"],
    "hw:mem_encryption": FLAGS,
    "hw:mem_encryption_model": ["amd-sev", "amd-sev-es"],
    "hw:tpm_version": ["1.2", "2.0"],
    "hw:tpm_model": ["tpm-tis", "tpm-crb"],
    "hw:pci_numa_affinity_policy": ["socket", "legacy"],
    "os:secure_boot": ["required", "optional"],
    "hw:maxphysaddr_mode": ["passthrough", "emulate"],
    "hw:virtio_packed_ring": FLAGS,
    "hw:ephemeral_encryption": FLAGS,
    "hw:ephemeral_encryption_format": ["luks", "plain"],
    "hw:sound_model": ["virtio", "usb"],
    "hw:cpu_realtime_mask": ["0-1", "^0", "7"],
}
SPECS = {
    **CONSTRAINTS,
    "hw:cpu_policy": [*CONSTRAINTS["hw:cpu_policy"], "odd"],
    "hw:sound_model": [*CONSTRAINTS["hw:sound_model"], "odd"],
    "hw:tpm_version": [*CONSTRAINTS["hw:tpm_version"], "3.0"],
    "hw:cpu_dedicated_mask": ["0-1", "^0-2", "0,x", "0-9", "3-1", "^0,^1,1"],
    "hw:cpu_realtime": FLAGS,
    "hw:emulator_threads_policy": ["share", "isolate", "odd"],
    "hw:pmem": ["4GB", "4GB, 16-GB,4GB"],
    "hw:tpm_secret_security": ["user", "host", "deployment", "odd"],
    "accel:device_profile": ["gpu"],
    "group_policy": ["none", "isolate", "odd"],
    "other:key": ["value"],
}
SUFFIXES = ["", "", "1", "_NET"]
REQUESTS = st.dictionaries(
    st.builds(
        "resources{}:{}".format,
        st.sampled_from(SUFFIXES),
        st.sampled_from(["VCPU", "PCPU", "MEMORY_MB", "DISK_GB", "VGPU", "VGPUS", "CUSTOM_A"]),
    ),
    st.sampled_from(["0", "1", "2", " 3", "-1", "x", "2147483648", "99999999999"]),
    max_size=4,
) | st.dictionaries(
    st.builds(
        "trait{}:{}".format,
        st.sampled_from(SUFFIXES),
        st.sampled_from(["CUSTOM_A", "CUSTOM_B", "HW_CPU_HYPERTHREADING", "odd name"]),
    ),
    st.sampled_from(["required", "required", "forbidden", "odd"]),
    max_size=4,
)
PROPERTIES = {
    **{key.replace(":", "_"): values for key, values in CONSTRAINTS.items()},
    "hw_firmware_type": ["uefi", "bios"],
    "hw_firmware_stateless": FLAGS,
    "hw_machine_type": ["q35", "pc-i440fx"],
    "hw_video_model": ["none", "virtio"],
    "hw_vif_model": ["virtio", "VirtualE1000", "e1000", "spapr-vlan"],
    "hw_disk_bus": ["virtio", "scsi"],
    "hw_cdrom_bus": ["ide"],
    "vmware_adaptertype": ["ide", "lsiLogic"],
    "architecture": ["amd64", "x86_64", "i386"],
    "hw_architecture": ["aarch64", "AMD64"],
    "hw_emulation_architecture": ["s390x"],
    "hw_viommu_model": ["intel"],
    "trait:CUSTOM_A": ["required", "odd"],
    "trait:HW_CPU_HYPERTHREADING": ["required"],
}
if int(MAJOR) < 32:
    for key in ("hw_sound_model", "hw_mem_encryption_model"):
        del PROPERTIES[key]  # these releases ignore it
METADATA = {
    "availability_zone": ["north", "south"],
    "filter_tenant_id": ["p1", "p2"],
    "filter_tenant_id7": ["p1"],
    "owner": ["p1"],
    "trait:CUSTOM_A": ["required"],
    "trait:CUSTOM_C": ["required", "forbidden"],
}


def some(values: dict[str, list[str]], most: int) -> st.SearchStrategy[dict[str, str]]:
    """Return a strategy for some of the keys, each with one of its values."""
    keys = st.lists(st.sampled_from(sorted(values)), max_size=most, unique=True)
    return keys.flatmap(
        lambda chosen: st.fixed_dictionaries({key: st.sampled_from(values[key]) for key in chosen})
    )


def is_accepted(wanted: WantedServer) -> bool:
    """Return whether Nova's API accepts the CPUs: no CPU policy beside CPUs as resources."""
    specs = wanted.flavor.extra_specs
    if "hw:cpu_policy" not in specs and "hw_cpu_policy" not in wanted.image_properties:
        return True
    return all(
        value in ("0", "x") for key, value in specs.items() if key.endswith((":VCPU", ":PCPU"))
    )


flavors = st.builds(
    lambda vcpus, disk, specs, requests: Flavor("m1", vcpus, 512, disk, {**specs, **requests}),
    st.integers(1, 4),
    st.sampled_from([0, 5]),
    some(SPECS, 5),
    REQUESTS,
)
wanted_servers = st.builds(
    wanted_server,
    flavors,
    image_properties=some(PROPERTIES, 6),
    disk_format=st.sampled_from(["qcow2", "raw"]),
    from_volume=st.booleans(),
    project=st.sampled_from(["p1", "p2", "p3"]),
    availability_zone=st.sampled_from(["", "north", "nowhere"]),
    host=st.sampled_from(["", "", "one", "two", "nowhere"]),
    scheduler_hints=st.sampled_from([{}, {}, {"query": ("[]",)}, {"same_host": (UUIDS[0],)}]),
    group=st.none() | st.sampled_from([ServerGroup("g", each, uuid=UUIDS[1]) for each in Policy]),
).filter(is_accepted)
aggregates = st.lists(some(METADATA, 3), max_size=3).map(
    lambda several: [
        Aggregate(f"a{number}", metadata, (), UUIDS[2 + number])
        for number, metadata in enumerate(several)
    ]
)
OPTIONS = (
    "limit_tenants_to_placement_aggregate",
    "placement_aggregate_required_for_tenants",
    "query_placement_for_image_type_support",
    "enable_isolated_aggregate_filtering",
    "image_metadata_prefilter",
    "disable_fallback_pcpu_query",
)
options = st.fixed_dictionaries(
    {
        **dict.fromkeys(OPTIONS, st.booleans()),
        "max_placement_results": st.sampled_from([10, 1000]),
        "default_schedule_zone": st.sampled_from(["", "north"]),
        "enabled_filters": st.sampled_from([NOVAS_DEFAULT_FILTERS, ("ServerGroupAffinityFilter",)]),
        "weight_classes": st.sampled_from(
            [(NOVAS_WEIGHERS,), (f"{NOVAS_AFFINITY}.ServerGroupSoftAffinityWeigher",)]
        ),
    }
)
NODES = {"one": [UUIDS[5]], "two": [UUIDS[6], UUIDS[7]]}
HOSTS = [KnownHost(name=name, uuid=uuid) for name, uuids in NODES.items() for uuid in uuids]


@pytest.fixture(scope="module", autouse=True)
def exact_release() -> Iterator[None]:
    """Tell the release of the installed Nova exactly, which a microversion may not do."""
    with mock.patch.dict(releases._MAXIMA, {MICROVERSIONS[MAJOR]: (int(MAJOR), int(MAJOR))}):
        yield


@settings(max_examples=examples(300), suppress_health_check=list(HealthCheck))
@given(wanted_servers, aggregates, options)
def test_request_is_the_one_of_nova(
    wanted: WantedServer, several: list[Aggregate], chosen: dict[str, Any]
) -> None:
    facts = Facts(
        wanted=wanted,
        hosts=HOSTS,
        aggregates=several,
        nova_microversion=MICROVERSIONS[MAJOR],
    )
    switches = Switches(**chosen)
    ours = built(facts, switches)
    assert compared(facts, switches, ours, sent_requests) == [], (ours.failure, ours.requests)
