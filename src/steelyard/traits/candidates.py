"""Allocation candidates: the ways in which trees of providers can serve a request.

Each group with a suffix gets its resources from one provider. The group without one may get each
resource class from another provider, so each of its classes is looked up on its own.
"""

import collections
import dataclasses
import itertools
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, TypeVar

from steelyard import errors
from steelyard.traits import arguments
from steelyard.traits.choices import Choices, Chosen, Conditions, Part
from steelyard.traits.frozen import FrozenMapping, freeze
from steelyard.traits.providers import ResourceProvider
from steelyard.traits.query import TraitQuery
from steelyard.traits.request_group import RequestGroup
from steelyard.traits.trees import SHARES, ProviderTrees

T = TypeVar("T")

_FORM = "expected an allocation request of Placement, with 'allocations' and 'mappings'"


@dataclasses.dataclass(frozen=True, slots=True)
class Candidate:
    """An allocation candidate: the amounts by provider, and the providers of each group."""

    allocations: Mapping[str, Mapping[str, int]]
    """The amounts by resource class, by the UUID of the provider."""
    mappings: Mapping[str, frozenset[str]]
    """The UUIDs of the providers of each group, by its suffix."""
    root: str = dataclasses.field(default="", compare=False)
    """The UUID of the root provider of the tree; empty if it is not known."""

    def __post_init__(self) -> None:
        allocations = arguments.mapping("allocations", self.allocations, "UUIDs to amounts")
        amounts = {
            uuid: FrozenMapping(arguments.mapping("allocations", each, "classes to amounts"))
            for uuid, each in allocations.items()
        }
        mappings = arguments.mapping("mappings", self.mappings, "suffixes to sets of UUIDs")
        providers = {
            suffix: frozenset(arguments.members("mappings", each, "sets of UUIDs"))
            for suffix, each in mappings.items()
        }
        freeze(self, "allocations", FrozenMapping(amounts))
        freeze(self, "mappings", FrozenMapping(providers))

    @classmethod
    def from_json(cls, allocation_request: Mapping[str, Any]) -> "Candidate":
        """Return the candidate in an allocation request of Placement, from microversion 1.34 on.

        Raises InvalidQuery if it has another form.
        """
        try:
            amounts = {
                uuid: each["resources"] for uuid, each in allocation_request["allocations"].items()
            }
            return cls(amounts, allocation_request["mappings"])
        except (AttributeError, KeyError, TypeError):
            raise errors.InvalidQuery(f"{_FORM}, not {allocation_request!r:.80}") from None

    @property
    def providers(self) -> frozenset[str]:
        """The UUIDs of all providers of the candidate."""
        return frozenset[str]().union(*self.mappings.values())

    def as_json(self) -> dict[str, Any]:
        """Return the allocation request in the form of Placement's JSON."""
        return {
            "allocations": {
                uuid: {"resources": dict(amounts)} for uuid, amounts in self.allocations.items()
            },
            "mappings": {suffix: sorted(uuids) for suffix, uuids in self.mappings.items()},
        }


def serves(provider: ResourceProvider, group: RequestGroup) -> bool:
    """Return whether the provider by itself offers the group, wherever its tree is."""
    return (
        all(provider.admits(name, amount) for name, amount in group.resources.items())
        and group.traits.satisfied_by(provider.traits)
        and _in_wanted_aggregates(provider, group)
        and not _in_unwanted_aggregates(provider, group)
    )


def _in_wanted_aggregates(provider: ResourceProvider, group: RequestGroup) -> bool:
    return all(
        any(aggregate.lower() in provider.aggregates for aggregate in several)
        for several in group.member_of
    )


def _in_unwanted_aggregates(provider: ResourceProvider, group: RequestGroup) -> bool:
    return any(aggregate.lower() in provider.aggregates for aggregate in group.not_member_of)


@dataclasses.dataclass(frozen=True)
class Search:
    """A search for the candidates of one request.

    With ``nested`` false, a candidate has only one provider of each tree, as in Placement before
    microversion 1.29.
    """

    trees: ProviderTrees[Any]
    groups: Mapping[str, RequestGroup]
    isolate: bool
    root_required: TraitQuery
    same_subtree: frozenset[frozenset[str]]
    nested: bool

    def roots(self) -> Iterator[ResourceProvider]:
        """Yield the roots of the trees that have candidates."""
        return (root for root in self.trees.roots if any(True for _ in self._of_tree(root)))

    def supplying_roots(self) -> Iterator[ResourceProvider]:
        """Yield the roots that supply resources in a candidate.

        A root that shares its inventories counts only with candidates of its own tree alone.
        """
        return (root for root in self.trees.roots if self._supplies(root))

    def candidates(self) -> Iterator[Candidate]:
        """Yield all candidates: the first one of each tree, then the second ones, and so on."""
        shared: set[Candidate] = set()
        for candidate in _in_turn(map(self._of_tree, self.trees.roots)):
            # Sharing providers alone can serve several trees, always alike.
            if all(SHARES in self.trees[uuid].traits for uuid in candidate.providers):
                if candidate in shared:
                    continue
                shared.add(candidate)
            yield candidate

    def _of_tree(self, root: ResourceProvider) -> Iterator[Candidate]:
        """Yield the candidates of the tree with this root."""
        if self._may_serve(root):
            parts = list(self._parts(root))
            for chosen in self._choices(parts):
                yield _candidate(parts, chosen, root)

    def _supplies(self, root: ResourceProvider) -> bool:
        if not self._may_serve(root):
            return False
        parts = list(self._parts(root))
        if SHARES in root.traits:
            parts = [self._within(root, part) if part.resources else part for part in parts]
        return any(
            any(True for _ in self._choices([*parts[:at], of_root, *parts[at + 1 :]]))
            for at, part in enumerate(parts)
            if part.resources and any(each is root for each in part.options)
            for of_root in [part._replace(options=[root])]
        )

    def _within(self, root: ResourceProvider, part: Part) -> Part:
        """Return the part without the providers of other trees."""
        own = [each for each in part.options if self.trees.root(each) is root]
        return part._replace(options=own)

    def _may_serve(self, root: ResourceProvider) -> bool:
        """Return whether the trees of the request exist, and the root has the required traits."""
        wanted = (group.in_tree for group in self.groups.values())
        if any(uuid is not None and self.trees.root_of(uuid) is None for uuid in wanted):
            return False
        return self.root_required.satisfied_by(root.traits)

    def _choices(self, parts: list[Part]) -> Iterable[Chosen]:
        return Choices(self._conditions(), parts) if all(part.options for part in parts) else ()

    def _conditions(self) -> Conditions:
        traits = self.groups[""].traits if "" in self.groups else TraitQuery()
        return Conditions(self.trees, self.isolate, traits, self.same_subtree, self.nested)

    def _parts(self, root: ResourceProvider) -> Iterator[Part]:
        """Yield the parts of the request, each with its providers in the tree."""
        own, shared = self.trees.tree(root), self.trees.shared_with(root)
        for suffix, group in sorted(self.groups.items()):
            if suffix:
                options = [each for each in [*own, *shared] if self._serves(each, group)]
                yield Part(suffix, group.resources, options)
                continue
            usable = [*self._usable(own, root, group), *self._usable(shared, root, group)]
            for name, amount in sorted(group.resources.items()):
                options = [provider for provider in usable if provider.admits(name, amount)]
                yield Part("", {name: amount}, options)

    def _serves(self, provider: ResourceProvider, group: RequestGroup) -> bool:
        """Return whether the provider serves a group with a suffix."""
        if not group.resources:
            # As in Placement, in_tree has no effect on a group without resources, and no provider
            # serves one without required traits and aggregates.
            asks = group.traits.required or group.traits.any_of or group.member_of
            return bool(asks) and serves(provider, group)
        return self._in_tree(provider, group) and serves(provider, group)

    def _usable(
        self, providers: list[ResourceProvider], root: ResourceProvider, group: RequestGroup
    ) -> Iterator[ResourceProvider]:
        """Yield the providers that the group without a suffix may use for any resource.

        The aggregates of the root count for its whole tree.
        """
        if _in_unwanted_aggregates(root, group):
            return
        in_aggregates = _in_wanted_aggregates(root, group)
        for provider in providers:
            own = self.trees.root(provider) is root
            if (
                ((own and in_aggregates) or _in_wanted_aggregates(provider, group))
                and not _in_unwanted_aggregates(provider, group)
                and group.traits.forbidden.isdisjoint(provider.traits)
                and (own or group.in_tree is None)
                and self._in_tree(provider, group)
            ):
                yield provider

    def _in_tree(self, provider: ResourceProvider, group: RequestGroup) -> bool:
        return group.in_tree is None or (
            self.trees.root_of(group.in_tree) is self.trees.root(provider)
        )


def _candidate(parts: list[Part], chosen: Chosen, root: ResourceProvider) -> Candidate:
    amounts: dict[str, collections.Counter[str]] = {}
    mappings: dict[str, set[str]] = {}
    for part, provider in zip(parts, chosen, strict=True):
        mappings.setdefault(part.suffix, set()).add(provider.uuid)
        if part.resources:
            amounts.setdefault(provider.uuid, collections.Counter()).update(part.resources)
    providers = {suffix: frozenset(uuids) for suffix, uuids in mappings.items()}
    return Candidate(amounts, providers, root.uuid)


def _in_turn(several: Iterable[Iterator[T]]) -> Iterator[T]:
    """Yield the first items of all iterators, then the second ones, and so on.

    An iterator is created only when its first item is due.
    """
    while several:
        rest = []
        for each in several:
            for item in itertools.islice(each, 1):
                yield item
                rest.append(each)
        several = rest
