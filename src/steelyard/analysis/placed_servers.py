"""Servers whose own hosts would reject them today, and hosts with more allocated than they have."""

import dataclasses
from collections.abc import Iterator

from steelyard.analysis.fitting import Fitting
from steelyard.cloud import Server
from steelyard.cloud.host_state import HostState
from steelyard.resources import FIELDS
from steelyard.verdict import Verdict


@dataclasses.dataclass(frozen=True, slots=True)
class Misplaced:
    """A server whose host would reject its flavor even if it were empty and in service.

    ``verdict`` is the first rejection.
    """

    server: Server
    verdict: Verdict


@dataclasses.dataclass(frozen=True, slots=True)
class Excess:
    """A resource class of which more is allocated on a host than the host has.

    ``limit`` is the amount that servers may use, after overcommitment.
    """

    resource_class: str
    allocated: int
    limit: float


@dataclasses.dataclass(frozen=True, slots=True)
class Overcommitted:
    """A host with more allocated than it has."""

    host: str
    excesses: tuple[Excess, ...]


def misplaced(fitting: Fitting) -> Iterator[Misplaced]:
    """Yield the misplaced servers of the cloud, by flavor.

    Each pair of a flavor and a host is examined once, however many servers it has.
    """
    emptied = {host.host: host for host in fitting.emptied.hosts}
    placed: dict[str, dict[str, list[Server]]] = {}
    for server in fitting.cloud.servers.values():
        placed.setdefault(server.flavor.name, {}).setdefault(server.host, []).append(server)
    for flavor, servers in placed.items():
        hosts = [emptied[name] for name in servers]
        passing = set(fitting.of(flavor, fitting.emptied, hosts))
        for host in hosts:
            if host not in passing:
                verdict = fitting.first_rejection(flavor, host)
                for server in servers[host.host]:
                    yield Misplaced(server, verdict)


def overcommitted(fitting: Fitting) -> Iterator[Overcommitted]:
    """Yield the hosts with more allocated than they have, in the order of the cloud.

    The resources of nested resource providers count as resources of their host.
    """
    hosts = fitting.present.hosts
    columns = fitting.capacity.columns(hosts)
    lowest = map(min, *(column.left for column in columns.values()))
    for host, left in zip(hosts, lowest, strict=True):
        if left < 0 or host.resources_used:
            excesses = tuple(_excesses(fitting, host))
            if excesses:
                yield Overcommitted(host.host, excesses)


def _excesses(fitting: Fitting, host: HostState) -> Iterator[Excess]:
    limits = dict.fromkeys(host.resources_used, 0.0)
    limits.update((name, supply.limit) for name, supply in fitting.capacity.of(host))
    used = {name: getattr(host, f"{field}_used") for name, field in FIELDS.items()}
    used.update(host.resources_used)
    for provider in fitting.cloud.hosts[host.host].providers:
        for name, inventory in provider.inventories.items():
            limits[name] = limits.get(name, 0) + inventory.capacity
    for name, limit in limits.items():
        if used.get(name, 0) > limit:
            yield Excess(name, used[name], limit)
