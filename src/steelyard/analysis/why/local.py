"""A Placement that is computed from a cloud file."""

import dataclasses

from oslo_config import cfg

from steelyard.analysis.selecting import trees_of
from steelyard.analysis.why.facts import KnownHost
from steelyard.analysis.why.placement_view import (
    CandidateRoot,
    Candidates,
    ClassUsage,
    supplying_roots,
)
from steelyard.cloud import Aggregate, Cloud, Host
from steelyard.cloud.derived_uuids import uuid_of
from steelyard.text import uuids
from steelyard.traits import CandidatesRequest, ProvidersRequest, ProviderTrees, ResourceProvider
from steelyard.traits.trees import SHARES


class PlacementOfTrees:
    """A PlacementView over trees of providers.

    A request without a limit counts one allocation request for each root, and at least one if it
    has candidates. Names that no provider has are never an error.
    """

    def __init__(self, trees: ProviderTrees[ResourceProvider]) -> None:
        self._trees = trees
        self._sharing = {each.uuid for each, _ in trees.pairs if SHARES in each.traits}

    def candidates(self, request: CandidatesRequest) -> Candidates:
        """Return the candidates."""
        if request.limit is None:
            found = [root.uuid for root in request.supplying_roots(self._trees)]
            requests = len(found) or len(request.roots(self._trees))
        else:
            allocations = [each.allocations for each in request.candidates(self._trees)]
            found = sorted(supplying_roots(allocations, self._root_of, self._sharing))
            requests = len(allocations)
        return Candidates({uuid: _root(self._trees[uuid]) for uuid in found}, requests)

    def _root_of(self, uuid: str) -> str:
        return self._trees.root(self._trees[uuid]).uuid

    def providers(self, request: ProvidersRequest) -> frozenset[str]:
        """Return the UUIDs of the roots of the providers that the request selects."""
        matching = request.matching(self._trees)
        return frozenset(self._trees.root(provider).uuid for provider in matching)


class LocalPlacement(PlacementOfTrees):
    """A PlacementView over the hosts of a cloud, with the providers below them."""

    def __init__(self, cloud: Cloud, conf: cfg.ConfigOpts | None = None) -> None:
        super().__init__(trees_of(_mirrored(cloud), conf))


def known_hosts(cloud: Cloud) -> list[KnownHost]:
    """Return the hosts of the cloud as an answer needs them."""
    return [
        KnownHost(
            name=host.name,
            uuid=_uuid(host),
            out_of_service=host.out_of_service,
            hypervisor_type=host.hypervisor_type,
            architecture=host.cpu_info.arch if host.cpu_info else "",
        )
        for host in cloud.hosts.values()
    ]


def known_aggregates(cloud: Cloud) -> list[Aggregate]:
    """Return the aggregates of the cloud, with a UUID for each."""
    return [
        aggregate
        if aggregate.uuid
        else dataclasses.replace(aggregate, uuid=uuid_of(aggregate.name))
        for aggregate in cloud.aggregates.values()
    ]


def _mirrored(cloud: Cloud) -> Cloud:
    """Return the cloud with its aggregates in Placement, as Nova mirrors them.

    A file that names aggregates in Placement is returned unchanged: it shows where they differ.
    """
    if any(host.placement_aggregates for host in cloud.hosts.values()):
        return cloud
    of_host: dict[str, set[str]] = {}
    for aggregate in known_aggregates(cloud):
        for name in aggregate.hosts:
            of_host.setdefault(name, set()).add(aggregate.uuid)
    hosts = {
        name: dataclasses.replace(host, placement_aggregates=frozenset(of_host.get(name, ())))
        for name, host in cloud.hosts.items()
    }
    return dataclasses.replace(cloud, hosts=hosts)


def _uuid(host: Host) -> str:
    """Return the UUID of the host's provider, as ``trees_of`` has it."""
    return uuids.canonical(host.uuid) or uuid_of(host.name)


def _root(provider: ResourceProvider) -> CandidateRoot:
    supplies = {
        name: ClassUsage(inventory.capacity, inventory.used)
        for name, inventory in provider.inventories.items()
    }
    return CandidateRoot(provider.uuid, provider.name, supplies, frozenset(provider.traits))
