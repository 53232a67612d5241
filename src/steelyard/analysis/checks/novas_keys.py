"""Checks for keys that Nova itself uses, and for values that its API rejects."""

import fnmatch
from collections.abc import Iterator

from steelyard.aggregates import SCOPE
from steelyard.analysis.checks.checked_cloud import CheckedCloud, is_plain
from steelyard.findings import Check, Finding, Severity

# Keys of aggregates that Nova reads, with the part of Nova that reads them.
_READ_FROM_AGGREGATES = {
    "availability_zone": "the availability zone",
    "filter_tenant_id*": "AggregateMultiTenancyIsolation",
    "hw_*": "AggregateImagePropertiesIsolation",
    "img_*": "AggregateImagePropertiesIsolation",
    "instance_type": "AggregateTypeAffinityFilter",
    "max_instances_per_host": "AggregateNumInstancesFilter",
    "max_io_ops_per_host": "AggregateIoOpsFilter",
    "os_distro": "AggregateImagePropertiesIsolation",
    "os_type": "AggregateImagePropertiesIsolation",
    "os_version": "AggregateImagePropertiesIsolation",
    "trait:*": "the isolation of aggregates by traits",
    "*_weight_multiplier": "a weigher's multiplier",
}

# Plain keys of flavors that are meant for other parts of Nova, with that part.
_PLAIN_KEYS = {
    "group_policy": "requests to Placement for several groups of resources",
    "hide_hypervisor_id": "the hypervisor driver",
}

#: Attributes of Nova's hosts. ComputeCapabilitiesFilter compares plain keys of flavors with them.
HOST_ATTRIBUTES = frozenset(
    {
        "aggregates",
        "allocation_candidates",
        "cell_uuid",
        "consume_from_request",
        "cpu_allocation_ratio",
        "cpu_info",
        "disk_allocation_ratio",
        "disk_mb_used",
        "failed_builds",
        "free_disk_mb",
        "free_ram_mb",
        "host",
        "host_ip",
        "hypervisor_hostname",
        "hypervisor_type",
        "hypervisor_version",
        "instances",
        "limits",
        "metrics",
        "nodename",
        "num_instances",
        "num_io_ops",
        "numa_topology",
        "pci_stats",
        "ram_allocation_ratio",
        "service",
        "stats",
        "supported_instances",
        "total_usable_disk_gb",
        "total_usable_ram_mb",
        "update",
        "updated",
        "uuid",
        "vcpus_total",
        "vcpus_used",
    }
)

#: Extra specs whose values Nova's API validates from microversion 2.86 on.
VALIDATED = (
    "group_policy",
    "hide_hypervisor_id",
    "hw:*",
    "hw_rng:*",
    "hw_video:*",
    "os:*",
    "pci_passthrough:*",
    "quota:*",
    "resources*:*",
    "trait*:*",
)


def of_aggregates(checked: CheckedCloud) -> Iterator[Finding]:
    """Yield keys of forced aggregates that Nova reads but that flavors are required to have."""
    for offer in checked.offered:
        reader = _reader(offer.written)
        if offer.forced and reader and not checked.is_ignored(offer.key):
            yield Finding(
                Severity.WARNING,
                Check.KEY_NOVA_READS,
                offer.subject,
                f"the key is meant for {reader}, but the forced aggregate also requires it: "
                f"flavors without it do not fit its hosts",
                f"add {offer.written!r} to the option force_check_ignored_keys",
                details={"reader": reader},
            )


def of_flavors(checked: CheckedCloud) -> Iterator[Finding]:
    """Yield plain keys of flavors that Nova uses for something else."""
    for asked in checked.asked:
        key = asked.written
        if key in _PLAIN_KEYS:
            yield Finding(
                Severity.WARNING,
                Check.KEY_NOVA_READS,
                asked.subject,
                f"the key is meant for {_PLAIN_KEYS[key]}, but Nova's filter and steelyard's "
                f"also compare it with aggregates: hosts without it do not fit",
                f"offer {key!r} in the aggregates of the hosts that the flavor should fit",
                details={"reader": _PLAIN_KEYS[key]},
            )
        if key in HOST_ATTRIBUTES:
            yield Finding(
                Severity.WARNING,
                Check.KEY_NOVA_READS,
                asked.subject,
                f"Nova's ComputeCapabilitiesFilter compares it with the attribute {key!r} of "
                f"hosts, and reads sentinels as literal text",
                f"write {SCOPE + key!r}",
                details={"reader": "ComputeCapabilitiesFilter"},
            )


def refused_by_api(checked: CheckedCloud) -> Iterator[Finding]:
    """Yield sentinels and operators in extra specs whose values Nova's API validates."""
    for asked in checked.asked:
        validated = any(fnmatch.fnmatchcase(asked.written, pattern) for pattern in VALIDATED)
        if validated and not is_plain(asked.demand.expression):
            yield Finding(
                Severity.ERROR,
                Check.REFUSED_BY_NOVA,
                asked.subject,
                f"Nova's API rejects {str(asked.demand.expression)!r} here from microversion 2.86 "
                f"on, and the part of Nova that reads the key does not understand it",
                "write a plain value here, and the sentinel in the forced aggregate",
                details={"value": asked.demand.expression.text},
            )


def _reader(key: str) -> str | None:
    """Return the part of Nova that reads the key of an aggregate, or None."""
    readers = (
        reader
        for pattern, reader in _READ_FROM_AGGREGATES.items()
        if fnmatch.fnmatchcase(key, pattern)
    )
    return next(readers, None)
