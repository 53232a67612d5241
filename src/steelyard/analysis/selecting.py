"""The providers that a request to Placement selects, and why it rejects the others."""

import dataclasses
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence

from oslo_config import cfg

from steelyard.cloud import Cloud, Host
from steelyard.cloud.derived_uuids import uuid_of
from steelyard.cloud.host_state import host_states
from steelyard.filters.capacity import FreeCapacity, Supply, left_of
from steelyard.resources import FIELDS, kind, quantity
from steelyard.text import uuids
from steelyard.traits import (
    CandidatesRequest,
    Inventory,
    ProvidersRequest,
    ProviderTrees,
    RequestGroup,
    ResourceProvider,
    TraitQuery,
)

_Providers = Sequence[ResourceProvider]

_MOST = 2**62  # a large ratio may make the capacity of a host infinite


def trees_of(cloud: Cloud, conf: cfg.ConfigOpts | None = None) -> ProviderTrees[ResourceProvider]:
    """Return the hosts of the cloud as resource providers, with the providers below them.

    One server may use at most the host's total of a resource, as in the inventories that Nova's
    drivers report, unless the cloud has another limit. A host without a valid UUID has one derived
    from its name.
    """
    capacity = FreeCapacity(conf)
    return ProviderTrees(
        provider
        for state in host_states(cloud)
        for provider in _tree(cloud.hosts[state.host], dict(capacity.of(state)))
    )


def _tree(host: Host, supplies: Mapping[str, Supply]) -> Iterator[ResourceProvider]:
    """Yield the provider of the host, then those below it."""
    root = uuids.canonical(host.uuid) or uuid_of(host.name)
    yield ResourceProvider(
        root,
        host.name,
        inventories={name: _inventory(host, name, each) for name, each in supplies.items()},
        traits=host.traits,
        aggregates=host.placement_aggregates,
    )
    for provider in host.providers:
        yield dataclasses.replace(provider, parent=provider.parent or root)


def _inventory(host: Host, resource_class: str, supply: Supply) -> Inventory:
    limit = int(min(supply.limit, _MOST))
    used = max(round(supply.limit - supply.left), 0) if supply.limit <= _MOST else 0
    name = FIELDS.get(resource_class, resource_class)
    return Inventory(
        limit,
        used,
        min_unit=host.min_units.get(name, 1),
        max_unit=host.max_units.get(name, max(int(supply.total), 1)),
        step_size=host.step_sizes.get(name, 1),
    )


class RejectionReasons:
    """The reasons why a request does not select providers.

    ``noun`` is the word for a provider in the reasons.
    """

    def __init__(self, trees: ProviderTrees[ResourceProvider], noun: str) -> None:
        self._trees = trees
        self._it = f"the {noun}"
        self._served: dict[CandidatesRequest, set[str]] = {}

    def of_providers(self, request: ProvidersRequest) -> dict[str, list[str]]:
        """Return the reasons by provider, for each one that the request does not select."""
        selected = {provider.uuid for provider in request.matching(self._trees)}
        return {
            shown(provider): [
                *self._of_provider({"": request.group}, provider, provider),
                *self._of_identity(request, provider),
            ]
            for provider, _ in self._trees.pairs
            if provider.uuid not in selected
        }

    def of_trees(self, request: CandidatesRequest) -> dict[str, list[str]]:
        """Return the reasons by root provider, for each tree without a candidate."""
        return {
            shown(root): list(self._of_tree(request, root))
            for root in self._trees.roots
            if not self._serves(root, request)
        }

    def _serves(self, root: ResourceProvider, request: CandidatesRequest) -> bool:
        if request not in self._served:
            self._served[request] = {each.uuid for each in request.roots(self._trees)}
        return root.uuid in self._served[request]

    def _of_tree(self, request: CandidatesRequest, root: ResourceProvider) -> Iterator[str]:
        found = [f"root: {what}" for what in request.root_required.unmet(root.traits)]
        members = [*self._trees.tree(root), *self._trees.shared_with(root)]
        if len(members) == 1:
            found += self._of_provider(request.groups, root, root)
        else:
            for suffix, group in request.groups.items():
                found += self._of_group(suffix, group, root, members)
        yield from found or self._of_groups_together(request, root)

    def _of_group(
        self, suffix: str, group: RequestGroup, root: ResourceProvider, members: _Providers
    ) -> Iterator[str]:
        """Yield the reasons why no providers of the tree serve the group, for the nearest ones."""
        if group.resources and self._serves(root, CandidatesRequest({suffix: group})):
            return
        parts = [group]
        if not (group.resources or group.traits.required or group.traits.any_of or group.member_of):
            yield f"group {suffix}: without resources, it needs required traits or member_of"
            return
        if not suffix:
            # Each class may come from another provider, and so may each required trait.
            parts = [
                dataclasses.replace(
                    group,
                    resources={name: amount},
                    traits=TraitQuery(forbidden=group.traits.forbidden),
                )
                for name, amount in group.resources.items()
            ]
            present = frozenset[str]().union(*(each.traits for each in members))
            together = dataclasses.replace(group.traits, forbidden=frozenset())
            yield from together.unmet(present)
        for part in parts:
            near, reasons = min(
                ((each, list(self._of_provider({suffix: part}, each, root))) for each in members),
                key=lambda pair: (len(part.resources.keys() - pair[0].inventories), len(pair[1])),
            )
            # The reasons are listed by root.
            of = "" if near is root else f"{shown(near)}: "
            yield from (of + reason for reason in reasons)

    def _of_groups_together(
        self, request: CandidatesRequest, root: ResourceProvider
    ) -> Iterator[str]:
        """Yield the reason why the tree serves each group, but not all of them in one candidate."""
        apart = [suffix for suffix in request.groups if suffix]
        names = ", ".join(apart)
        shared = dataclasses.replace(request, group_policy="none")
        if request.group_policy == "isolate" and self._serves(root, shared):
            yield f"groups {names}: group_policy 'isolate' needs one provider for each"
        elif request.same_subtree and self._serves(root, _without_subtrees(request)):
            yield f"groups {names}: same_subtree needs one provider above the others"
        else:
            yield "the providers of the tree do not serve all groups together"

    def _of_provider(
        self, groups: Mapping[str, RequestGroup], provider: ResourceProvider, top: ResourceProvider
    ) -> Iterator[str]:
        """Yield the reasons why the provider by itself does not serve the groups.

        The aggregates of ``top`` count for the group without a suffix, too.
        """
        root = self._trees.root(provider)
        for suffix, group in groups.items():
            of = f"group {suffix}: " if suffix else ""
            for what in group.traits.unmet(provider.traits):
                yield of + what
            spanning = [provider] if suffix else [provider, top]
            missing = [list(_aggregates_missing(group, each)) for each in spanning]
            if all(missing):
                for several in missing[0]:
                    yield f"{of}{self._it} is in none of the aggregates {_listed(several)}"
            unwanted = [
                aggregate
                for aggregate in group.not_member_of
                if any(aggregate.lower() in each.aggregates for each in spanning)
            ]
            if unwanted:
                yield f"{of}{self._it} is in the forbidden aggregate {_listed(unwanted)}"
            if group.in_tree is not None and self._trees.root_of(group.in_tree) is not root:
                yield f"{of}in_tree is {group.in_tree!r}, {self._it} has the UUID {root.uuid!r}"
        yield from self._shortages(groups, provider)

    def _shortages(
        self, groups: Mapping[str, RequestGroup], provider: ResourceProvider
    ) -> Iterator[str]:
        wanted: dict[str, list[int]] = {}
        for group in groups.values():
            for name, amount in group.resources.items():
                wanted.setdefault(name, []).append(amount)
        for name, amounts in sorted(wanted.items()):
            inventory = provider.inventories.get(name)
            # Round in opposite directions, so that the two amounts never print the same.
            wants = f"{kind(name)}: {quantity(name, sum(amounts), math.ceil)} wanted"
            if inventory is None:
                yield f"{name}: {self._it} has none"
            elif sum(amounts) > inventory.capacity - inventory.used:
                limit = max(inventory.capacity, 0)
                yield f"{wants}, {self._it} has {left_of(name, limit, limit - inventory.used)}"
            elif sum(amounts) > inventory.max_unit:
                most = quantity(name, inventory.max_unit, math.floor)
                yield f"{wants}, {self._it} gives at most {most} to one server"
            elif not all(map(inventory.admits, amounts)):
                yield (
                    f"{wants}, {self._it} gives at least {inventory.min_unit}, in steps of "
                    f"{inventory.step_size}"
                )

    def _of_identity(self, request: ProvidersRequest, provider: ResourceProvider) -> Iterator[str]:
        if request.name and request.name != provider.name:
            yield f"name is {request.name!r}, {self._it} has the name {provider.name!r}"
        if request.uuid is not None and not uuids.same(request.uuid, provider.uuid):
            yield f"uuid is {request.uuid!r}, {self._it} has the UUID {provider.uuid!r}"


def shown(provider: ResourceProvider) -> str:
    """Return the name of the provider, or its UUID if it has none."""
    return provider.name or provider.uuid


def _without_subtrees(request: CandidatesRequest) -> CandidatesRequest:
    """Return the request without ``same_subtree``, and without groups that only it permits."""
    groups = {suffix: group for suffix, group in request.groups.items() if group.resources}
    return dataclasses.replace(request, groups=groups, same_subtree=frozenset())


def _aggregates_missing(
    group: RequestGroup, provider: ResourceProvider
) -> Iterator[frozenset[str]]:
    """Yield the sets of aggregates of which the provider is in none, though it should be."""
    for several in group.member_of:
        if not any(each.lower() in provider.aggregates for each in several):
            yield several


def _listed(aggregates: Iterable[str]) -> str:
    return ", ".join(sorted(aggregates))
