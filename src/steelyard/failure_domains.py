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


def values_of(key: str, aggregates: Iterable[object]) -> list[str]:
    """Return the values that the aggregates of a host give the metadata key, in text order.

    Empty values are left out. The first one counts.
    """
    stated = (read_mapping(aggregate, "metadata").get(key) for aggregate in aggregates)
    return sorted({str(value).strip() for value in stated if value is not None} - {""})


class _List(NamedTuple):
    """A list of aggregates, a copy of it, and the place of hosts in these aggregates."""

    aggregates: Iterable[object]
    copy: Sequence[object]
    naming: frozenset[int]
    """The aggregates that name domains, by their ``id``."""
    place: Place

    def is_of(self, aggregates: Iterable[object]) -> bool:
        """Return whether this is the same list with the same content."""
        return self.aggregates is aggregates and self.copy == aggregates


class _Kept(NamedTuple):
    """The facts about lists of aggregates and about single aggregates, by their ``id``.

    References to them are kept, so that no ``id`` is reused.
    """

    lists: dict[int, _List]
    aggregates: dict[int, object]
    names: dict[int, list[tuple[int, str]]]
    """The names that each aggregate gives, each with the index of its level."""
    places: dict[frozenset[int], Place]
    """The place of hosts in these aggregates."""
    hosts: dict[int, tuple[object, frozenset[str]]]
    """The hosts of an aggregate as a tuple, and as a set."""


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
        kept: _Kept = _Kept({}, {}, {}, {}, {})
        if previous is not None and previous._has_same_names():
            kept = previous._kept
        lists = {id(each): () if each is None else each for each in memberships}
        known = [
            found if (found := kept.lists.get(identity)) and found.is_of(each) else None
            for identity, each in lists.items()
        ]
        copies = [
            found.copy if found else each[:] if isinstance(each, list) else tuple(each)
            for found, each in zip(known, lists.values(), strict=True)
        ]
        # Schedulers such as Nova's make new lists for each request: none of them is kept.
        if not any(known) or len(kept.lists) > _MOST_KEPT + 2 * len(lists):
            kept = _Kept({}, {}, {}, {}, {})
        aggregates = by_identity(copies)
        new = {key: each for key, each in aggregates.items() if key not in kept.aggregates}
        names = {key: self._names(each) for key, each in new.items()}
        self._kept: _Kept = kept._replace(
            aggregates={**kept.aggregates, **new}, names={**kept.names, **names}
        )
        self._naming = {key: each for key, each in aggregates.items() if self._kept.names[key]}
        of_lists = {
            identity: found or self._list(each, copied)
            for (identity, each), found, copied in zip(lists.items(), known, copies, strict=True)
        }
        if not all(known) or not kept.lists:
            self._kept = self._kept._replace(lists={**kept.lists, **of_lists})
        self._here = list(of_lists.values())
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

    @property
    def naming(self) -> list[frozenset[int]]:
        """The aggregates that name the domains of each host, by their ``id``."""
        of_lists = {id(each.aggregates): each.naming for each in self._here}
        nothing: frozenset[int] = frozenset()
        return [of_lists.get(id(aggregates), nothing) for aggregates in self._memberships]

    def places_of(self, names: Set[str]) -> list[Place]:
        """Return the places of the named hosts, in any order.

        A host is left out if none of the aggregates that name domains contains it.
        """
        found: dict[str, set[int]] = {}
        for identity, aggregate in self._naming.items() if names else ():
            for name in names & self._hosts(identity, aggregate):
                found.setdefault(name, set()).add(identity)
        return [self._place(frozenset(identities)) for identities in found.values()]

    def _has_same_names(self) -> bool:
        names = self._kept.names
        return all(self._names(each) == names[key] for key, each in self._kept.aggregates.items())

    def _hosts(self, identity: int, aggregate: object) -> Set[str]:
        """Return the names of the aggregate's hosts; sets of those in tuples are kept."""
        hosts = read(aggregate, "hosts") or ()
        if not isinstance(hosts, tuple):
            return set(hosts)
        kept, names = self._kept.hosts.get(identity, (None, frozenset()))
        if kept is not hosts:
            names = frozenset(hosts)
            self._kept.hosts[identity] = hosts, names
        return names

    def _names(self, aggregate: object) -> list[tuple[int, str]]:
        """Return the names that the aggregate gives, each with the index of its level."""
        metadata = read_mapping(aggregate, "metadata")
        stated = (metadata.get(key) for key in self._far_to_near)
        names = ("" if name is None else str(name).strip() for name in stated)
        return [(level, name) for level, name in enumerate(names) if name]

    def _list(self, aggregates: Iterable[object], copied: Sequence[object]) -> _List:
        naming = frozenset(filter(self._naming.__contains__, map(id, copied)))
        return _List(aggregates, copied, naming, self._place(naming))

    def _place(self, identities: frozenset[int]) -> Place:
        places = self._kept.places
        if identities not in places:
            places[identities] = self._merged(identities)
        return places[identities]

    def _merged(self, identities: Iterable[int]) -> Place:
        levels: list[set[str]] = [set() for _ in self._far_to_near]
        for identity in identities:
            for level, name in self._kept.names[identity]:
                levels[level].add(name)
        for key, names in zip(self._far_to_near, levels, strict=True):
            if len(names) > 1:
                aggregates = map(self._kept.aggregates.__getitem__, identities)
                called = sorted(str(read(aggregate, "name")) for aggregate in aggregates)
                self._warn(
                    f"Aggregates {', '.join(map(repr, called))} share hosts, but differ in "
                    f"{key!r}: {', '.join(map(repr, sorted(names)))}; {min(names)!r} applies to "
                    f"these hosts: put each host into one of the aggregates only"
                )
        return tuple(min(names, default=None) for names in levels)
