"""Failure domains of hosts, such as racks and rooms, read from aggregate metadata.

A place is a tuple of names from far to near, such as ``("room 1", "rack 7")``; None stands for a
level without a name. Each prefix of a place is a domain, so racks named 7 in two rooms are two
domains.
"""

from collections.abc import Callable, Sequence, Set

from steelyard.attributes import by_identity, read, read_all, read_mapping

Place = tuple[str | None, ...]


class FailureDomains:
    """The places of a request's hosts, read from the aggregates of these hosts.

    ``keys`` are metadata keys from near to far. If aggregates give a host two names at one level,
    the first in text order counts, and ``warn`` is called with a message. ``places`` has the place
    of each host, in the order of the hosts.
    """

    def __init__(
        self,
        hosts: Sequence[object],
        keys: Sequence[str],
        warn: Callable[[str], None] = lambda message: None,
    ) -> None:
        self._far_to_near = tuple(reversed(keys))
        self._warn = warn
        memberships = [aggregates or () for aggregates in read_all(hosts, "aggregates")]
        distinct = by_identity(memberships)
        self._naming = {key: each for key, each in distinct.items() if self._names(each)}
        self._memo: dict[frozenset[int], Place] = {}
        self.places = [
            self._place(frozenset(filter(self._naming.__contains__, map(id, aggregates))))
            for aggregates in memberships
        ]

    def places_of(self, names: Set[str]) -> list[Place]:
        """Return the places of the named hosts, in any order.

        A host is left out if none of the aggregates that name domains contains it.
        """
        found: dict[str, set[int]] = {}
        for identity, aggregate in self._naming.items():
            for name in names & set(read(aggregate, "hosts") or ()):
                found.setdefault(name, set()).add(identity)
        return [self._place(frozenset(identities)) for identities in found.values()]

    def _names(self, aggregate: object) -> list[tuple[int, str]]:
        """Return the names that the aggregate gives, each with the index of its level."""
        metadata = read_mapping(aggregate, "metadata")
        stated = (metadata.get(key) for key in self._far_to_near)
        names = ("" if name is None else str(name).strip() for name in stated)
        return [(level, name) for level, name in enumerate(names) if name]

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
