"""Failure domains of hosts, such as racks and rooms, read from aggregate metadata.

A place is a tuple of names from far to near, such as ``("room 1", "rack 7")``; None stands for a
level without a name. Each prefix of a place is a domain, so racks named 7 in two rooms are two
domains.
"""

from collections.abc import Callable, Iterable, Sequence, Set
from operator import is_
from typing import NamedTuple

from steelyard.attributes import by_identity, read, read_all, read_mapping

Place = tuple[str | None, ...]


# Lists of aggregates that no host has now are kept up to this number.
_MOST_KEPT = 10_000


class FailureDomains:
    """The failure domains of hosts; the places of lists of aggregates are kept.

    ``keys`` are metadata keys from near to far. If aggregates give a host two names at one level,
    the first in text order counts, and ``warn`` is called with a message.
    """

    def __init__(
        self, keys: Sequence[str], warn: Callable[[str], None] = lambda message: None
    ) -> None:
        self._far_to_near = tuple(reversed(keys))
        self._warn = warn
        # Replaced as a whole, because threads may share this object.
        self._last = HostPlaces([], self._far_to_near, warn)

    def of(self, hosts: Sequence[object]) -> "HostPlaces":
        """Return the places of the hosts."""
        memberships = read_all(hosts, "aggregates")
        last = self._last
        if not last.is_valid_for(memberships):
            self._last = last = HostPlaces(memberships, self._far_to_near, self._warn, last)
        return last


class _List(NamedTuple):
    """A list of aggregates, a copy of it, and the place of hosts in these aggregates."""

    aggregates: Iterable[object]
    copy: Sequence[object]
    place: Place

    def is_of(self, aggregates: Iterable[object]) -> bool:
        """Return whether this is the same list with the same content."""
        return self.aggregates is aggregates and self.copy == aggregates


class HostPlaces:
    """The places of hosts. Each has a number: ``distinct`` has the places by number.

    Lists of aggregates and metadata may be changed in place, so copies are compared before places
    are used again, also those that ``previous`` hosts had.
    """

    def __init__(
        self,
        memberships: Sequence[Iterable[object] | None],
        far_to_near: Sequence[str],
        warn: Callable[[str], None],
        previous: "HostPlaces | None" = None,
    ) -> None:
        self._memberships = memberships
        self._far_to_near = far_to_near
        self._warn = warn
        self._memo: dict[frozenset[int], Place] = {}
        kept: dict[int, _List] = {}
        if previous is not None and previous._has_same_names():
            kept = previous._lists
        lists = {id(each): () if each is None else each for each in memberships}
        known = [
            found if (found := kept.get(identity)) and found.is_of(each) else None
            for identity, each in lists.items()
        ]
        copies = [
            found.copy if found else each[:] if isinstance(each, list) else tuple(each)
            for found, each in zip(known, lists.values(), strict=True)
        ]
        aggregates = by_identity(copies)
        self._naming = {key: each for key, each in aggregates.items() if self._names(each)}
        self._here = [
            found or _List(each, copied, self._place_in(copied))
            for found, each, copied in zip(known, lists.values(), copies, strict=True)
        ]
        of_lists = dict(zip(lists, self._here, strict=True))
        # Schedulers such as Nova's make new lists for each request: none of them is kept.
        is_used = any(known) and len(kept) <= _MOST_KEPT + 2 * len(of_lists)
        self._lists: dict[int, _List] = {**kept, **of_lists} if is_used else of_lists
        self._aggregates: dict[int, object] = aggregates
        if previous is not None and is_used:
            self._aggregates = {**previous._aggregates, **aggregates}
        self._stated = list(map(self._names, self._aggregates.values()))
        self.distinct: list[Place] = list(dict.fromkeys(each.place for each in self._here))
        number_of = {place: number for number, place in enumerate(self.distinct)}
        of_list = {identity: number_of[each.place] for identity, each in of_lists.items()}
        self.numbers = [of_list[id(aggregates)] for aggregates in memberships]
        """The number of each host's place, in the order of the hosts."""

    def is_valid_for(self, memberships: Sequence[Iterable[object] | None]) -> bool:
        """Return whether these are the places of hosts in these lists of aggregates."""
        return (
            len(memberships) == len(self._memberships)
            and all(map(is_, memberships, self._memberships))
            and all(each.aggregates == each.copy for each in self._here)
            and self._has_same_names()
        )

    @property
    def places(self) -> list[Place]:
        """The place of each host, in the order of the hosts."""
        return list(map(self.distinct.__getitem__, self.numbers))

    def places_of(self, names: Set[str]) -> list[Place]:
        """Return the places of the named hosts, in any order.

        A host is left out if none of the aggregates that name domains contains it.
        """
        found: dict[str, set[int]] = {}
        for identity, aggregate in self._naming.items():
            for name in names & set(read(aggregate, "hosts") or ()) if names else ():
                found.setdefault(name, set()).add(identity)
        return [self._place(frozenset(identities)) for identities in found.values()]

    def _has_same_names(self) -> bool:
        return list(map(self._names, self._aggregates.values())) == self._stated

    def _names(self, aggregate: object) -> list[tuple[int, str]]:
        """Return the names that the aggregate gives, each with the index of its level."""
        metadata = read_mapping(aggregate, "metadata")
        stated = (metadata.get(key) for key in self._far_to_near)
        names = ("" if name is None else str(name).strip() for name in stated)
        return [(level, name) for level, name in enumerate(names) if name]

    def _place_in(self, aggregates: Iterable[object]) -> Place:
        return self._place(frozenset(filter(self._naming.__contains__, map(id, aggregates))))

    def _place(self, identities: frozenset[int]) -> Place:
        if identities not in self._memo:
            self._memo[identities] = self._merged([self._naming[each] for each in identities])
        return self._memo[identities]

    def _merged(self, aggregates: Sequence[object]) -> Place:
        levels: list[set[str]] = [set() for _ in self._far_to_near]
        for aggregate in aggregates:
            for level, name in self._names(aggregate):
                levels[level].add(name)
        for key, names in zip(self._far_to_near, levels, strict=True):
            if len(names) > 1:
                called = sorted(str(read(aggregate, "name")) for aggregate in aggregates)
                self._warn(
                    f"Aggregates {', '.join(map(repr, called))} share hosts, but differ in "
                    f"{key!r}: {', '.join(map(repr, sorted(names)))}; {min(names)!r} applies to "
                    f"these hosts: put each host into one of the aggregates only"
                )
        return tuple(min(names, default=None) for names in levels)
