"""The kinds of hosts, while servers are placed and hosts change from one kind to another."""

import bisect
from collections.abc import Hashable, Iterable

from steelyard.cloud.host_state import HostState


class Kinds:
    """The hosts by kind. Kinds have numbers, which are never used again; hosts have indices."""

    def __init__(self, states: Iterable[HostState]) -> None:
        self._numbers: dict[Hashable, int] = {}
        self.samples: list[HostState] = []
        """The state of one host of each kind."""
        self.hosts: list[list[int]] = []
        """The hosts of each kind, in ascending order. A kind that hosts have left has none."""
        self.of_host: list[int] = []
        """The kind of each host."""
        self.mostly_differ = False
        """Whether most kinds had only one host at first, so that there is little to share."""
        self.changes: list[tuple[int, int, int]] = []
        """The changes of hosts so far, each with the host, its old kind and its new kind."""
        for index, state in enumerate(states):
            kind = self._number(state)
            self.hosts[kind].append(index)
            self.of_host.append(kind)
        self.mostly_differ = 2 * len(self.samples) > len(self.of_host)

    def change(self, index: int, state: HostState) -> None:
        """Set the state of the host, which may be of another kind now."""
        before, after = self.of_host[index], self._number(state)
        self.changes.append((index, before, after))
        if before != after:
            there = self.hosts[before]
            del there[bisect.bisect_left(there, index)]
            bisect.insort(self.hosts[after], index)
            self.of_host[index] = after

    def _number(self, state: HostState) -> int:
        found = self._numbers.setdefault(state.kind, len(self.samples))
        if found == len(self.samples):
            self.samples.append(state)
            self.hosts.append([])
        return found
