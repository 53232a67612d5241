"""The hosts of a cloud while servers are placed on them."""

import contextlib
import itertools
from array import array
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from steelyard import plugins
from steelyard.cloud import Cloud, Server
from steelyard.cloud.host_state import HostState, host_states
from steelyard.scheduler.decision import Weighed
from steelyard.scheduler.examination import multipliers
from steelyard.scheduler.kinds import Kinds
from steelyard.weighers.base import WEIGHERS, Weigher

# Old kinds and changes are forgotten when there are so many of them, and so many for each host.
_KEPT, _KEPT_FOR_EACH_HOST = 10_000, 20


class Version:
    """The states of all hosts at one time, in the order of the cloud's hosts.

    Only the newest version has a list of states. An older one has the state that the next change
    replaced, so that keeping a version costs the memory of one change. The lock prevents changes
    while a version is read.
    """

    __slots__ = ("_list", "_lock", "_newer", "_replaced")

    def __init__(self, states: list[HostState], lock: AbstractContextManager[object]) -> None:
        self._list = states
        self._lock = lock
        self._newer: Version | None = None
        self._replaced: tuple[int, HostState] | None = None

    def changed(self, index: int, state: HostState) -> "Version":
        """Return the next version, in which one host has another state; only for the newest one."""
        newer = Version(self._list, self._lock)
        self._newer, self._replaced = newer, (index, self._list[index])
        self._list[index] = state
        return newer

    def __getitem__(self, index: int) -> HostState:
        """Return the state of one host; only for the newest version."""
        return self._list[index]

    def states(self) -> Sequence[HostState]:
        """Return a copy of the states in this version."""
        with self._lock:
            replaced = []
            version = self
            while version._newer is not None and version._replaced is not None:
                replaced.append(version._replaced)
                version = version._newer
            states = list(self._list)
        for index, state in reversed(replaced):
            states[index] = state
        return states


class Keys(NamedTuple):
    """The keys that a weigher has given the hosts, as numbers from 0."""

    of_hosts: "array[int]"
    number: int
    """The number of different keys."""


class Hosts:
    """The states and the kinds of all hosts; hosts are known by their index in the cloud."""

    def __init__(self, cloud: Cloud, lock: AbstractContextManager[object]) -> None:
        states = host_states(cloud)
        self.index = {state.host: index for index, state in enumerate(states)}
        self.version = Version(states, lock)
        self.kinds = Kinds(states)
        self._weighed = list(map(Weighed, states))
        self._multipliers: dict[str, tuple[float, array[float]]] = {}
        self._keys: dict[int, tuple[Weigher, Keys | None]] = {}
        self._undo: list[tuple[int, HostState]] | None = None

    def __len__(self) -> int:
        return len(self.index)

    def change(self, index: int, state: HostState) -> None:
        """Give the host another state."""
        if self._undo is not None:
            self._undo.append((index, self.version[index]))
        self._set(index, state)

    def place(self, server: Server) -> None:
        """Add the server to its host."""
        index = self.index[server.host]
        self.change(index, self.version[index].with_servers(server))

    @contextlib.contextmanager
    def undone(self) -> Iterator[None]:
        """Undo the changes in the block when it ends."""
        self._undo = []
        try:
            yield
        finally:
            for index, state in reversed(self._undo):
                self._set(index, state)
            self._undo = None

    def weighed(self, flags: Sequence[int]) -> list[Weighed]:
        """Return the hosts whose flags are set, as weighers get them, without weights."""
        return list(itertools.compress(self._weighed, flags))

    def weighed_at(self, indices: Iterable[int]) -> list[Weighed]:
        """Return the hosts with these indices, as weighers get them, without weights."""
        return list(map(self._weighed.__getitem__, indices))

    def keys(self, name: str, weigher: Weigher) -> Keys | None:
        """Return the weigher's keys of hosts without members; None if it gives none.

        They are kept, because they depend only on what does not change.
        """
        if id(weigher) not in self._keys:
            # With a reference to the weigher, no id is used for another one.
            self._keys[id(weigher)] = weigher, self._numbered_keys(name, weigher)
        return self._keys[id(weigher)][1]

    def multipliers(self, name: str, weigher: Weigher) -> "array[float]":
        """Return the weigher's multiplier for every host.

        They are kept, because hosts stay in their aggregates, unless the weigher computes them in a
        way of its own or its multiplier for all hosts has changed.
        """
        own = type(weigher).weight_multiplier is not Weigher.weight_multiplier
        default, found = self._multipliers.get(name, (None, array("d")))
        if own or default != weigher.multiplier():
            default = weigher.multiplier()
            states = [each.obj for each in self._weighed]
            weigher.keep_multipliers(states)
            found = array("d", multipliers(name, weigher, states))
            self._multipliers[name] = default, found
        return found

    def forget(self) -> bool:
        """Forget kinds without hosts and old changes if there are many; return whether it did."""
        if len(self.kinds.changes) < max(_KEPT, _KEPT_FOR_EACH_HOST * len(self)):
            return False
        self.kinds = Kinds(self.version.states())
        return True

    def _numbered_keys(self, name: str, weigher: Weigher) -> Keys | None:
        with plugins.blamed(WEIGHERS, name):
            keys = weigher.keys_without_members([each.obj for each in self._weighed])
            if keys is None:
                return None
            if len(keys) != len(self):
                raise ValueError(f"expected {len(self)} keys, got {len(keys)}")
            number_of: dict[Hashable, int] = {}
            numbers = array("q", (number_of.setdefault(key, len(number_of)) for key in keys))
        return Keys(numbers, len(number_of))

    def _set(self, index: int, state: HostState) -> None:
        self.version = self.version.changed(index, state)
        self.kinds.change(index, state)
        self._weighed[index] = Weighed(state)
