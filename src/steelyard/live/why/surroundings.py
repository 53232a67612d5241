"""The hosts, aggregates and availability zones of a live cloud."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from steelyard.analysis.why.facts import KnownHost
from steelyard.clients.compute import Compute
from steelyard.cloud import Aggregate
from steelyard.live import fields
from steelyard.live.answers import Hypervisor, SeenAggregate
from steelyard.live.places import Places, own_names
from steelyard.live.why.parts import Reading, readable


def hypervisors(compute: Compute) -> Iterator[Hypervisor]:
    """Yield the hypervisors, read at a microversion that shows their CPUs."""
    return compute.by_marker("/os-hypervisors/detail", "hypervisors", Hypervisor.of)


def listed_hosts(found: Iterable[Hypervisor]) -> Reading[list[Hypervisor] | None]:
    """Return the hypervisors; None if they are unreadable."""
    return readable(
        "hosts",
        lambda: list(found),
        None,
        "the policy rule os_compute_api:os-hypervisors:list-detail",
    )


def aggregates(compute: Compute) -> Reading[list[SeenAggregate] | None]:
    """Return the aggregates; None if they are unreadable."""
    return readable(
        "aggregates",
        lambda: compute.listing("/os-aggregates", "aggregates", SeenAggregate.of),
        None,
        "the policy rule os_compute_api:os-aggregates:index",
    )


def zones(compute: Compute) -> Reading[list[str] | None]:
    """Return the names of the availability zones; None if they are unreadable."""
    return readable(
        "availability zones",
        lambda: compute.listing("/os-availability-zone", "availabilityZoneInfo", _zone),
        None,
        "the policy rule os_compute_api:os-availability-zone:list",
    )


def _zone(record: Mapping[str, Any]) -> str:
    return fields.read(record, "zoneName", fields.text)


def known_hosts(seen: Sequence[Hypervisor], places: Places) -> list[KnownHost]:
    """Return the hosts, sorted by name."""
    found = [
        KnownHost(
            name=places.names[each.uuid],
            uuid=each.uuid,
            node_of="" if each.host == places.names[each.uuid] else each.host,
            out_of_service=each.out_of_service,
            hypervisor_type=each.kind,
            architecture="" if each.cpu is None else each.cpu.arch,
        )
        for each in seen
    ]
    return sorted(found, key=lambda each: each.name)


def known_aggregates(seen: Sequence[SeenAggregate], places: Places) -> list[Aggregate]:
    """Return the aggregates, sorted by name.

    A host that Nova does not list as a hypervisor has the name of its compute service.
    """
    names = own_names((each.uuid, each.name) for each in seen)
    found = [
        Aggregate(
            names[each.uuid],
            dict(each.metadata),
            tuple(name for host in each.hosts for name in places.of_service(host) or [host]),
            each.uuid,
        )
        for each in seen
    ]
    return sorted(found, key=lambda each: each.name)
