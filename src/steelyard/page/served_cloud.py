"""A version of a cloud that the live page shows, with answers that are computed once."""

import dataclasses
import datetime
import itertools
import threading
from collections.abc import Callable
from typing import Any, Generic, TypeVar

from steelyard.analysis.capacity import FlavorRooms, HostRooms, Room
from steelyard.analysis.kinds import HostKinds
from steelyard.analysis.whatif.baseline import Baseline
from steelyard.analysis.whatif.consequences import Consequences, consequences
from steelyard.cloud import Cloud
from steelyard.cloud.host_state import host_states
from steelyard.filters.trial import TrialMode
from steelyard.page import rooms
from steelyard.scheduler import FilterScheduler
from steelyard.verdict import PASSED

AnswerT = TypeVar("AnswerT")

# The number of hosts that are examined first, because one that fits is enough.
_SAMPLE = 64


class ServedCloud:
    """A cloud with its scheduler, and the time when its file was modified.

    Threads may share an object. Each answer has its own lock, so that a thread waits only for the
    answer that it needs itself.
    """

    def __init__(
        self, scheduler: FilterScheduler, modified: datetime.datetime | None = None
    ) -> None:
        self.scheduler = scheduler
        self.modified = modified
        self._host_rooms = _Once(lambda: HostRooms(scheduler))
        self._fitting_nowhere = _Once(self._find_fitting_nowhere)
        self._baseline = _Once(self._prepare_baseline)
        self._rooms = _Once(self._count_rooms)
        self._tables_lock = threading.Lock()
        self._tables: dict[str, dict[str, Any]] = {}

    @property
    def fitting_nowhere(self) -> frozenset[str]:
        """The flavors that no host fits. Raises PluginError if a filter fails."""
        return self._fitting_nowhere()

    def room(self, flavor: str, group: str | None) -> FlavorRooms:
        """Return the room of the hosts for servers of the flavor in the group.

        Raises PluginError if a filter fails.
        """
        return self._host_rooms().of(flavor, group)

    def table(self, by: str) -> dict[str, Any]:
        """Return the room for all flavors by aggregate or metadata key, as ``rooms.table`` does."""
        with self._tables_lock:
            if by not in self._tables:
                self._tables[by] = rooms.table(self.scheduler.cloud, self._rooms(), by)
            return self._tables[by]

    def consequences(self, after: Cloud) -> Consequences:
        """Return the consequences of changes that turn the cloud into the other one.

        Raises PluginError if a filter or a weigher fails.
        """
        return consequences(self._baseline(), after)

    def _prepare_baseline(self) -> Baseline:
        """Return the baseline with its answers computed, because threads may only read them."""
        baseline = Baseline(self.scheduler.cloud, self.scheduler.conf)
        baseline.findings()
        _ = baseline.hosts, baseline.rooms
        return baseline

    def _count_rooms(self) -> list[FlavorRooms]:
        """Return the room for each flavor, with shared entries, because there may be millions."""
        shared: dict[int, Room] = {}
        return [
            dataclasses.replace(
                found,
                rooms=[
                    shared.setdefault(room.more, Room("", room.more, PASSED))
                    for room in found.rooms
                ],
            )
            for found in map(self._host_rooms().of, self.scheduler.cloud.flavors)
        ]

    def _find_fitting_nowhere(self) -> frozenset[str]:
        kinds = HostKinds(host_states(self.scheduler.cloud))
        return frozenset(
            flavor for flavor in self.scheduler.cloud.flavors if not self._fits(flavor, kinds)
        )

    def _fits(self, flavor: str, kinds: HostKinds) -> bool:
        """Return whether any host passes all filters; those on trial let every host pass."""
        request = self.scheduler.request(flavor)
        filters = self.scheduler.filters
        on_trial = TrialMode(self.scheduler.conf).on_trial(filters)
        for hosts in (kinds.hosts[:_SAMPLE], kinds.hosts[_SAMPLE:]):
            left = hosts
            for name, filter_ in filters.items():
                if name not in on_trial:
                    left = list(
                        itertools.compress(left, kinds.passing(name, filter_, left, request))
                    )
            if left:
                return True
        return False


class _Once(Generic[AnswerT]):
    """An answer that is computed by the first thread that needs it, while others wait."""

    def __init__(self, compute: Callable[[], AnswerT]) -> None:
        self._compute = compute
        self._lock = threading.Lock()
        self._found: list[AnswerT] = []

    def __call__(self) -> AnswerT:
        """Return the answer. A failed computation is repeated by the next call."""
        with self._lock:
            if not self._found:
                self._found.append(self._compute())
            return self._found[0]
