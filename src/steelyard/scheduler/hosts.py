"""The hosts of a cloud while servers are placed on them."""

import contextlib
import itertools
from array import array
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager

from steelyard.cloud import Cloud, Server
from steelyard.cloud.host_state import HostState, host_states
from steelyard.scheduler.decision import Weighed
from steelyard.scheduler.examination import multipliers
from steelyard.scheduler.kinds import Kinds
from steelyard.weighers.base import Weigher

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


class Hosts:
    """The states and the kinds of all hosts; hosts are known by their index in the cloud."""

    def __init__(self, cloud: Cloud, lock: AbstractContextManager[object]) -> None:
        states = host_states(cloud)
        self.index = {state.host: index for index, state in enumerate(states)}
        self.version = Version(states, lock)
        self.kinds = Kinds(states)
        self._weighed = list(map(Weighed, states))
        self._multipliers: dict[str, tuple[float, array[float]]] = {}
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

    def _set(self, index: int, state: HostState) -> None:
        self.version = self.version.changed(index, state)
        self.kinds.change(index, state)
        self._weighed[index] = Weighed(state)
