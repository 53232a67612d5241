"""Keys that Nova has uses of its own for, and values that its API refuses."""

import fnmatch
from collections.abc import Iterator

from steelyard.aggregates import SCOPE
from steelyard.desk.checks.finding import Check, Finding, of_aggregate, of_flavor
from steelyard.desk.checks.subject import Subject, is_plain
from steelyard.severity import Severity

# Metadata of aggregates, and what in Nova reads it.
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

# Plain keys of flavors that are not about aggregates, and what reads them.
_PLAIN_KEYS = {
    "group_policy": "Placement, which is asked for several groups of resources",
    "hide_hypervisor_id": "the driver of the hypervisor",
}

#: Attributes of Nova's hosts, which ComputeCapabilitiesFilter holds against plain keys of flavors.
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

#: Extra specs whose values Nova's API checks, from microversion 2.86 on.
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


def of_aggregates(subject: Subject) -> Iterator[Finding]:
    """Keys of forced aggregates that Nova reads, and that are demanded of flavors all the same."""
    for offer in subject.offered:
        reader = _reader(offer.written)
        if offer.forced and reader and not subject.is_ignored(offer.key):
            yield Finding(
                Severity.WARNING,
                Check.KEY_NOVA_READS,
                of_aggregate(offer.aggregate, offer.written),
                f"it is there for {reader}, and the forced aggregate requires it of flavors: "
                f"flavors without it do not fit its hosts",
                f"add {offer.written!r} to the option force_check_ignored_keys",
            )


def of_flavors(subject: Subject) -> Iterator[Finding]:
    """Plain keys of flavors that mean something else to Nova, and are held against aggregates."""
    for asked in subject.asked:
        key = asked.written
        if key in _PLAIN_KEYS:
            yield Finding(
                Severity.WARNING,
                Check.KEY_NOVA_READS,
                of_flavor(asked.flavor, key),
                f"it is there for {_PLAIN_KEYS[key]}; as a plain key it is held against "
                f"aggregates as well, by Nova's filter and by ours: hosts without it do not fit",
                f"offer {key!r} in the aggregates of the hosts that it is meant for",
            )
        if key in HOST_ATTRIBUTES:
            yield Finding(
                Severity.WARNING,
                Check.KEY_NOVA_READS,
                of_flavor(asked.flavor, key),
                "Nova's ComputeCapabilitiesFilter holds it against what it knows of hosts by that "
                "name, and takes sentinels for text",
                f"write {SCOPE + key!r}",
            )


def refused_by_api(subject: Subject) -> Iterator[Finding]:
    """Sentinels and operators on keys whose values Nova's API checks."""
    for asked in subject.asked:
        validated = any(fnmatch.fnmatchcase(asked.written, pattern) for pattern in VALIDATED)
        if validated and not is_plain(asked.demand.expression):
            yield Finding(
                Severity.ERROR,
                Check.REFUSED_BY_NOVA,
                of_flavor(asked.flavor, asked.written),
                f"Nova's API refuses {str(asked.demand.expression)!r} here from microversion 2.86 "
                f"on, and what reads the key in Nova does not understand it",
                "write a plain value here, and the sentinel in the forced aggregate",
            )


def _reader(key: str) -> str | None:
    """What in Nova reads the key of an aggregate's metadata."""
    readers = (
        reader
        for pattern, reader in _READ_FROM_AGGREGATES.items()
        if fnmatch.fnmatchcase(key, pattern)
    )
    return next(readers, None)
