"""The room for additional servers in each aggregate, or for each value of a metadata key."""

import collections
from collections.abc import Iterable
from typing import Self

from steelyard.analysis.capacity import FlavorRooms, RoomCount
from steelyard.cloud import Aggregate, Cloud
from steelyard.failure_domains import values_of


def metadata_keys(cloud: Cloud) -> list[str]:
    """Return the metadata keys of the cloud's aggregates, in text order."""
    return sorted({key for each in cloud.aggregates.values() for key in each.metadata})


class Breakdown:
    """The hosts of a cloud in named sets, for which room is counted.

    ``several_values`` is the number of hosts whose aggregates have several values of the key; 0 for
    a breakdown by aggregate.
    """

    def __init__(
        self,
        cloud: Cloud,
        sets: Iterable[tuple[str | None, Iterable[str]]],
        several_values: int = 0,
    ) -> None:
        """Name sets of hosts; hosts in no set form the last one, named None, if there are any."""
        index = {name: number for number, name in enumerate(cloud.hosts)}
        self._sets = [
            (name, sorted({index[host] for host in hosts if host in index})) for name, hosts in sets
        ]
        others = sorted({*index.values()}.difference(*(hosts for _, hosts in self._sets)))
        if others:
            self._sets.append((None, others))
        self.several_values = several_values

    @classmethod
    def by_aggregate(cls, cloud: Cloud) -> Self:
        """Return the hosts of each aggregate, in the order of the aggregates.

        A host is in the set of each of its aggregates, so the sets may have hosts in common. Hosts
        in no aggregate are in the set None.
        """
        return cls(cloud, ((each.name, each.hosts) for each in cloud.aggregates.values()))

    @classmethod
    def by_key(cls, cloud: Cloud, key: str) -> Self:
        """Return the hosts with each value of the metadata key, in text order of the values.

        Each host is in one set. If its aggregates have several values, the first in text order
        counts, as for failure domains. Hosts without a value are in the set None.
        """
        aggregates: dict[str, list[Aggregate]] = collections.defaultdict(list)
        for aggregate in cloud.aggregates.values():
            if key in aggregate.metadata:
                for host in aggregate.hosts:
                    aggregates[host].append(aggregate)
        found = {host: values_of(key, there) for host, there in aggregates.items()}
        sets: dict[str, list[str]] = collections.defaultdict(list)
        for host, values in found.items():
            if values:
                sets[values[0]].append(host)
        return cls(cloud, sorted(sets.items()), sum(len(each) > 1 for each in found.values()))

    def count(self, found: FlavorRooms) -> list[tuple[str | None, RoomCount]]:
        """Return the room of each set, with the name of the set.

        The rooms are those of the same cloud.
        """
        return [(name, found.count(hosts)) for name, hosts in self._sets]
