"""The choices of a provider for each part of a request, in one tree of providers."""

import collections
import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from steelyard.traits import supply
from steelyard.traits.providers import ResourceProvider
from steelyard.traits.query import TraitQuery
from steelyard.traits.trees import ProviderTrees

_ALONE = ""
"""A pseudo resource class, for ``isolate``.

Every provider has 1, and every group with a suffix takes 1.
"""

_MOST_DEAD_ENDS = 100_000


class Part(NamedTuple):
    """A part of the request that one provider serves, and the providers that can."""

    suffix: str
    resources: Mapping[str, int]
    options: list[ResourceProvider]


Chosen = Sequence[ResourceProvider]
"""The providers of the first parts."""


@dataclasses.dataclass(frozen=True)
class Conditions:
    """The conditions on the providers of a candidate together.

    ``traits`` are those of the group without a suffix. With ``nested`` false, a candidate has only
    one provider of each tree.
    """

    trees: ProviderTrees[Any]
    isolate: bool
    traits: TraitQuery
    same_subtree: frozenset[frozenset[str]]
    nested: bool


class Choices:
    """All choices of a provider for each part.

    The choice goes part by part, and leaves a path as soon as it cannot lead to a result. The tests
    are exact for the part itself and optimistic for the parts after it. A path without a result is
    kept as a dead end, and no path that leaves the later parts the same is followed.
    """

    def __init__(self, conditions: Conditions, parts: list[Part]) -> None:
        self._conditions = conditions
        self._parts = parts
        self._demands: list[Mapping[str, int]] = [
            {**part.resources, _ALONE: 1} if conditions.isolate and part.suffix else part.resources
            for part in parts
        ]
        counts = collections.Counter(name for demand in self._demands for name in demand)
        self._contended = [name for name, count in counts.items() if count > 1]
        self._subtrees = [
            frozenset(place for place, part in enumerate(parts) if part.suffix in suffixes)
            for suffixes in conditions.same_subtree
        ]
        self._uuids = [frozenset(each.uuid for each in part.options) for part in parts]
        trees = conditions.trees
        self._above = functools.cache(lambda uuid: {each.uuid for each in trees.above(trees[uuid])})
        traits = conditions.traits
        self._traits = [*traits.any_of, *(frozenset([trait]) for trait in traits.required)]
        self._wanted_of = functools.cache(self._wanted_traits)
        self._future = functools.cache(self._alike)
        self._dead_ends = set[Hashable]()

    def __iter__(self) -> Iterator[Chosen]:
        """Yield the choices; those for the last parts change first."""
        chosen: list[ResourceProvider] = []
        pending = [self._next(())]
        results = [False]  # whether the path has led to one
        while pending:
            provider = next(pending[-1], None)
            if provider is None:
                pending.pop()
                if results.pop():
                    results[-1:] = [True]
                elif len(self._dead_ends) < _MOST_DEAD_ENDS:
                    self._dead_ends.add(self._outlook(chosen))
                del chosen[-1:]
            elif len(pending) == len(self._parts):
                results[-1] = True
                yield [*chosen, provider]
            elif not self._is_dead_end([*chosen, provider]):
                chosen.append(provider)
                pending.append(self._next(tuple(chosen)))
                results.append(False)

    def _next(self, chosen: Chosen) -> Iterator[ResourceProvider]:
        """Yield the providers for the next part with which a result is possible."""
        may_be_in_subtrees = self._subtree_test(chosen)
        for provider in self._parts[len(chosen)].options:
            longer = [*chosen, provider]
            if (
                self._has_room(longer)
                and self._is_in_new_tree(longer)
                and self._can_have_traits(longer)
                and may_be_in_subtrees(len(chosen), provider)
                and self._can_find_room(longer)
            ):
                yield provider

    def _is_dead_end(self, chosen: Chosen) -> bool:
        return bool(self._dead_ends) and self._outlook(chosen) in self._dead_ends

    def _outlook(self, chosen: Chosen) -> Hashable:
        """Return all that matters for the parts after the chosen ones.

        Providers that the later parts cannot tell apart are counted, but not named. So the results
        for two choices with the same outlook differ only in the names of such providers.
        """
        named = set[str]()
        subtrees = list[Hashable]()
        for places in self._subtrees:
            its = {chosen[place].uuid for place in places if place < len(chosen)}
            tops = self._tops(places, chosen)[0] if its else set[str]()
            subtrees.append((frozenset(tops), frozenset(tops & its)))
            named |= tops
        room: collections.Counter[Hashable] = collections.Counter()
        taken = self._taken(chosen)
        alike, wanted = self._future(len(chosen))
        for provider, kind in alike:
            # Beyond what all later parts want together, more room makes no difference.
            left = (
                min(_room(provider, name) - taken[provider.uuid, name], most)
                if name == _ALONE or name in provider.inventories
                else 0
                for name, most in wanted
            )
            name = provider.uuid if provider.uuid in named else ""
            room[name, kind, tuple(left)] += 1
        users = () if self._conditions.nested else frozenset(self._users(chosen))
        return (
            len(chosen),
            tuple(subtrees),
            self._missing_traits(chosen),
            users,
            frozenset(room.items()),
        )

    def _alike(
        self, start: int
    ) -> tuple[list[tuple[ResourceProvider, Hashable]], list[tuple[str, int]]]:
        """Return the providers and the amounts that matter for the parts from this place on.

        Each provider comes with its kind. Those of one kind differ at most in the room they have.
        """
        rest = range(start, len(self._parts))
        options = {each.uuid: each for place in rest for each in self._parts[place].options}
        places = collections.defaultdict[str, list[int]](list)
        for place in rest:
            for each in self._parts[place].options:
                places[each.uuid].append(place)
        upper = {
            uuid
            for part in self._parts
            for each in part.options
            for uuid in self._above(each.uuid) - {each.uuid}
        }
        alike = list[tuple[ResourceProvider, Hashable]]()
        for uuid, provider in options.items():
            single = uuid in upper or not self._conditions.nested
            where = uuid if single else provider.parent
            alike.append((provider, (where, tuple(places[uuid]), self._wanted_of(provider))))
        wanted = [
            (name, sum(self._demands[place].get(name, 0) for place in rest))
            for name in self._contended
        ]
        return alike, wanted

    def _taken(self, chosen: Chosen) -> collections.Counter[tuple[str, str]]:
        """Return the amounts that the chosen providers give, by UUID and contended class."""
        taken: collections.Counter[tuple[str, str]] = collections.Counter()
        for demand, provider in zip(self._demands, chosen, strict=False):
            for name, amount in demand.items():
                taken[provider.uuid, name] += amount
        return taken

    def _has_room(self, chosen: Chosen) -> bool:
        """Return whether the last provider can serve all parts that it is chosen for."""
        demand, provider = self._demands[len(chosen) - 1], chosen[-1]
        return all(
            sum(
                other.get(name, 0)
                for other, its in zip(self._demands, chosen, strict=False)
                if its is provider
            )
            <= _room(provider, name)
            for name in demand
        )

    def _is_in_new_tree(self, chosen: Chosen) -> bool:
        """Return whether the last provider may be in one candidate with those before it."""
        if self._conditions.nested:
            return True
        users = self._users(chosen)
        root = self._conditions.trees.root
        return len(users) == len({root(self._conditions.trees[uuid]).uuid for uuid in users})

    def _users(self, chosen: Chosen) -> set[str]:
        """Return the UUIDs of the chosen providers that give resources."""
        parts = zip(chosen, self._parts, strict=False)
        return {provider.uuid for provider, part in parts if part.resources}

    def _wanted_traits(self, provider: ResourceProvider) -> frozenset[int]:
        """Return the places of the conditions on traits that the provider meets."""
        return frozenset(
            place
            for place, several in enumerate(self._traits)
            if not several.isdisjoint(provider.traits)
        )

    def _missing_traits(self, chosen: Chosen) -> frozenset[int]:
        """Return the places of the conditions on traits that no chosen provider meets."""
        parts = zip(chosen, self._parts, strict=False)
        return frozenset(range(len(self._traits))).difference(
            *(self._wanted_of(provider) for provider, part in parts if not part.suffix)
        )

    def _can_have_traits(self, chosen: Chosen) -> bool:
        """Return whether the providers of the group without a suffix can have all its traits."""
        missing = self._missing_traits(chosen)
        if not missing:
            return True
        found, most = set[int](), 0
        for part in self._parts[len(chosen) :]:
            if not part.suffix:
                gains = {self._wanted_of(option) & missing for option in part.options}
                found = found.union(*gains)
                most += max(map(len, gains))
        return missing <= found and len(missing) <= most

    def _subtree_test(self, chosen: Chosen) -> Callable[[int, ResourceProvider], bool]:
        """Return a test of whether a later part may have a provider, for every ``same_subtree``.

        Its arguments are the place of the part and the provider. In each subtree, one provider must
        still be able to be above all others.
        """
        found = [(places, *self._tops(places, chosen)) for places in self._subtrees]

        def may_be_in_subtrees(place: int, provider: ResourceProvider) -> bool:
            return all(
                any(
                    # The provider displaces the other options of its part.
                    uuid == provider.uuid or offers[uuid] > (uuid in self._uuids[place])
                    for uuid in self._above(provider.uuid) & tops
                )
                for places, tops, offers in found
                if place in places
            )

        return may_be_in_subtrees

    def _tops(self, places: Set[int], chosen: Chosen) -> tuple[set[str], collections.Counter[str]]:
        """Return the UUIDs of the providers that can be above those of all these parts.

        Also return how many of the parts can have each provider.
        """
        offers: collections.Counter[str] = collections.Counter()
        for place in places:
            offers.update([chosen[place].uuid] if place < len(chosen) else self._uuids[place])
        above = [self._above(chosen[place].uuid) for place in places if place < len(chosen)]
        return set(offers).intersection(*above), offers

    def _can_find_room(self, chosen: Chosen) -> bool:
        """Return whether the providers have room for the parts that are still to choose."""
        complete = len(chosen) == len(self._parts)
        if complete or not (self._contended or self._subtrees):
            return True
        options = self._options(chosen)
        if not all(options.values()):
            return False
        for name in self._contended:
            wanted = {
                place: self._demands[place][name]
                for place in options
                if name in self._demands[place]
            }
            room = {each.uuid: _room(each, name) for place in wanted for each in options[place]}
            for demand, provider in zip(self._demands, chosen, strict=False):
                if provider.uuid in room:
                    room[provider.uuid] -= demand.get(name, 0)
            demands = [
                (amount, [each.uuid for each in options[place] if room[each.uuid] >= amount])
                for place, amount in wanted.items()
            ]
            if not supply.suffices(demands, room):
                return False
        return True

    def _options(self, chosen: Chosen) -> dict[int, list[ResourceProvider]]:
        """Return the options of the parts that are still to choose, by the places of the parts."""
        may_be_in_subtrees = self._subtree_test(chosen)
        return {
            place: [
                option for option in self._parts[place].options if may_be_in_subtrees(place, option)
            ]
            for place in range(len(chosen), len(self._parts))
        }


def _room(provider: ResourceProvider, name: str) -> int:
    return 1 if name == _ALONE else provider.inventories[name].largest
