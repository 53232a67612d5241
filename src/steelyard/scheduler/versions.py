"""The states of all hosts, in versions that share what did not change."""

from collections.abc import Sequence
from contextlib import AbstractContextManager

from steelyard.cloud.host_state import HostState


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
