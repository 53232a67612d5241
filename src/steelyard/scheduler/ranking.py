"""The hosts that pass the filters for one flavor, with their weights, kept between servers.

After a server is placed, only the hosts that have changed are examined again. The answers of a
plugin are kept if they depend only on the kind of a host, or, for requests without a server group,
if the plugin is host-local. The other plugins are asked about every host for each server.
"""

import collections
import dataclasses
import heapq
import itertools
import random
from array import array
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from steelyard import plugins
from steelyard.cloud.host_state import HostState, Request
from steelyard.filters.base import FILTERS, Filter, answers
from steelyard.scheduler import arithmetic
from steelyard.scheduler.decision import Weighed, Weight
from steelyard.scheduler.examination import raw_weights
from steelyard.scheduler.hosts import Hosts
from steelyard.weighers.base import Weigher

DrawnT = TypeVar("DrawnT")

# The least number of rankings that are kept. As many more are kept as have this many units.
_RANKINGS_KEPT, _UNITS_KEPT = 64, 2_500_000

# The answers to whether a unit passes; 0 stands for a unit that has not been examined.
_REJECTED, _PASSES = 1, 2


@dataclasses.dataclass(frozen=True)
class PluginSet:
    """Filters and weighers that are asked about the same hosts."""

    filters: dict[str, Filter]
    weighers: dict[str, Weigher]

    def __bool__(self) -> bool:
        return bool(self.filters or self.weighers)

    def answers(
        self, states: Sequence[HostState], request: Request, rejecting: set[str]
    ) -> tuple[list[int], dict[str, list[float]]]:
        """Return the positions of the hosts that pass, and the raw weights of these hosts.

        The names of the filters that reject a host are added to ``rejecting``.
        """
        passing = passing_positions(self.filters, states, request, rejecting)
        weighed = [Weighed(states[each]) for each in passing]
        return passing, {
            name: raw_weights(name, weigher, weighed, request)
            for name, weigher in self.weighers.items()
        }


def passing_positions(
    filters: Mapping[str, Filter],
    states: Sequence[HostState],
    request: Request,
    rejecting: set[str],
) -> list[int]:
    """Return the positions of the hosts that pass the filters.

    The names of the filters that reject a host are added to ``rejecting``.
    """
    passing = list(range(len(states)))
    for name, filter_ in filters.items():
        with plugins.blamed(FILTERS, name):
            found = answers(filter_, [states[each] for each in passing], request)
        if not all(found):
            rejecting.add(name)
            passing = list(itertools.compress(passing, found))
    return passing


class Draw(NamedTuple):
    """The random choice of one of the best hosts; it is the best one if the size is 1."""

    size: int
    numbers: random.Random

    def one_of(self, best: Sequence[DrawnT]) -> DrawnT:
        """Return one of the hosts."""
        return best[0] if len(best) == 1 else self.numbers.choice(best)


class Ranked(NamedTuple):
    """The host that was chosen for a server, with its weights."""

    host: int
    weights: tuple[Weight, ...]
    fitting: int
    """The number of hosts that fit."""
    rejected: frozenset[int]
    """The hosts that only plugins that were asked about every host have rejected."""


class _Fitting(NamedTuple):
    """The units that fit, as flags and as indices."""

    numbers: arithmetic.Arithmetic
    flags: bytearray
    units: Sequence[int]

    @classmethod
    def of(cls, flags: bytearray) -> "_Fitting":
        """Return the units whose flags are set."""
        numbers = arithmetic.for_size(len(flags))
        return cls(numbers, flags, numbers.indices(flags))

    def column(self, values: "array[float]") -> Any:
        """Return the values of the units as a column."""
        return self.numbers.selected(values, self.units)

    def zeros(self) -> Any:
        """Return a column of zeros."""
        return self.numbers.zeros(len(self.units))


class _Score(NamedTuple):
    """The weights that one weigher gives the hosts that fit, as columns."""

    weigher: str
    raw: Any
    normalised: Any
    multipliers: Any

    def weight(self, position: int) -> Weight:
        """Return the weight at one position."""
        columns = (self.raw, self.normalised, self.multipliers)
        return Weight(self.weigher, *(float(column[position]) for column in columns))


class Ranking:
    """The kept answers for requests with one flavor, and the choice of hosts with them.

    The answers are in arrays, one entry for each unit, so that they can be added up together. A
    unit is a kind of hosts or, if some plugins need it, a single host.
    """

    def __init__(
        self, hosts: Hosts, by_kind: PluginSet, by_host: PluginSet, *, of_hosts: bool
    ) -> None:
        self._hosts = hosts
        self._by_kind = by_kind
        self._by_host = by_host
        self._of_hosts = of_hosts
        self.rejecting: set[str] = set()
        """The names of the filters that have rejected a host."""
        self._changes_seen = 0
        self._answers = bytearray()
        self._passing = bytearray()
        self._sizes = array("d")
        self._weighers = {**by_kind.weighers, **by_host.weighers}
        self._raw = {name: array("d") for name in self._weighers}
        # The multipliers of single hosts are kept with the hosts.
        self._multipliers = {} if of_hosts else {name: array("d") for name in self._weighers}

    def refresh(self, request: Request) -> None:
        """Examine the units that are new or have changed."""
        kinds, known = self._hosts.kinds, len(self._passing)
        units = set(range(known, len(kinds.of_host if self._of_hosts else kinds.samples)))
        for host, *of_host in kinds.changes[self._changes_seen :]:
            units.update((host,) if self._of_hosts else of_host)
        # If a plugin fails, the same units are examined again for the next request.
        asked = sorted(units if self._of_hosts else filter(self._is_new_kind, units))
        passing, weights = self._examined(asked, request)
        self._changes_seen = len(kinds.changes)
        more = max(units, default=-1) + 1 - known
        if more > 0:
            self._answers.extend(bytes(more))
            self._passing.extend(bytes(more))
            for column in (self._sizes, *self._raw.values(), *self._multipliers.values()):
                column.extend(itertools.repeat(0.0, more))
        for unit in asked:
            self._answers[unit] = _REJECTED
        for unit in passing:
            self._answers[unit] = _PASSES
        for name, raw in weights.items():
            _fill(self._raw[name], passing, raw)
            if not self._of_hosts:
                _fill(self._multipliers[name], passing, self._multipliers_of_kinds(name, passing))
        for unit in units:
            self._sizes[unit] = 1 if self._of_hosts else len(kinds.hosts[unit])
            self._passing[unit] = self._answers[unit] == _PASSES and self._sizes[unit] > 0

    def choose(
        self,
        asked: PluginSet,
        weighers: Mapping[str, Weigher],
        request: Request,
        excluded: Collection[int],
        draw: Draw,
    ) -> Ranked | None:
        """Return the host for the next server; None if no host fits.

        ``asked`` are the plugins that are asked about every host, which is possible only if single
        hosts are ranked. The answers of the other ``weighers`` are kept.
        """
        fitting = _Fitting.of(self._without(excluded))
        filters = asked.filters
        rejected = self._rejected(fitting.flags, filters, request) if filters else frozenset()
        if rejected:
            for unit in rejected:
                fitting.flags[unit] = False
            fitting = _Fitting.of(fitting.flags)
        if not len(fitting.units):
            return None
        numbers, total = fitting.numbers, fitting.zeros()
        scores = [
            self._score(fitting, name, weigher, request, is_asked=name in asked.weighers)
            for name, weigher in weighers.items()
        ]
        for each in scores:
            total = numbers.sum(total, numbers.product(each.normalised, each.multipliers))
        best: list[tuple[int, int]] = []
        for positions in numbers.groups(total):
            best += self._first_hosts(fitting, positions, excluded, draw.size - len(best))
            if len(best) == draw.size:
                break
        host, position = draw.one_of(best)
        hosts = int(numbers.total(fitting.column(self._sizes)))
        if not self._of_hosts:
            hosts -= sum(fitting.flags[self._hosts.kinds.of_host[each]] for each in excluded)
        return Ranked(host, tuple(each.weight(position) for each in scores), hosts, rejected)

    def _is_new_kind(self, kind: int) -> bool:
        """Return whether the kind has hosts and must be examined."""
        is_known = kind < len(self._answers) and self._answers[kind]
        return not is_known and bool(self._hosts.kinds.hosts[kind])

    def _examined(
        self, asked: Sequence[int], request: Request
    ) -> tuple[list[int], dict[str, list[float]]]:
        """Return the units that pass, and their raw weights."""
        kinds = self._hosts.kinds
        of_units = [kinds.of_host[unit] for unit in asked] if self._of_hosts else asked
        distinct = sorted(set(of_units))
        samples = [kinds.samples[kind] for kind in distinct]
        positions, weights = self._by_kind.answers(samples, request, self.rejecting)
        if not self._of_hosts:
            return [distinct[each] for each in positions], weights
        of_kinds = {distinct[position]: number for number, position in enumerate(positions)}
        passing = [unit for unit, kind in zip(asked, of_units, strict=True) if kind in of_kinds]
        numbers = [of_kinds[kind] for kind in of_units if kind in of_kinds]
        weights = {name: list(map(raw.__getitem__, numbers)) for name, raw in weights.items()}
        if not self._by_host:
            return passing, weights
        states = [self._hosts.version[unit] for unit in passing]
        positions, more = self._by_host.answers(states, request, self.rejecting)
        left = {name: list(map(raw.__getitem__, positions)) for name, raw in weights.items()}
        return [passing[each] for each in positions], {**left, **more}

    def _multipliers_of_kinds(self, name: str, kinds: Iterable[int]) -> list[float]:
        of_hosts = self._hosts.multipliers(name, self._weighers[name])
        samples, index = self._hosts.kinds.samples, self._hosts.index
        return [of_hosts[index[samples[kind].host]] for kind in kinds]

    def _without(self, excluded: Collection[int]) -> bytearray:
        """Return which units pass and have other hosts than the excluded ones."""
        passing = bytearray(self._passing)
        if self._of_hosts:
            for host in excluded:
                passing[host] = False
        else:
            kinds = self._hosts.kinds
            for kind in {kinds.of_host[host] for host in excluded}:
                if all(host in excluded for host in kinds.hosts[kind]):
                    passing[kind] = False
        return passing

    def _rejected(
        self, passing: bytearray, asked: Mapping[str, Filter], request: Request
    ) -> frozenset[int]:
        """Return the hosts that pass so far and that the asked filters reject."""
        hosts = list(itertools.compress(itertools.count(), passing))
        states = [each.obj for each in self._hosts.weighed(passing)]
        kept = passing_positions(asked, states, request, set())
        return frozenset(hosts).difference(map(hosts.__getitem__, kept))

    def _score(
        self, fitting: _Fitting, name: str, weigher: Weigher, request: Request, *, is_asked: bool
    ) -> _Score:
        numbers = fitting.numbers
        if not is_asked:
            raw = fitting.column(self._raw[name])
            multipliers = self._multipliers.get(name) or self._hosts.multipliers(name, weigher)
            multiplied = fitting.column(multipliers)
        else:
            raw = self._asked_weights(fitting, name, weigher, request)
            multiplied = fitting.column(self._hosts.multipliers(name, weigher))
        least, most = numbers.ends(raw)
        low = least if weigher.minval is None else weigher.minval
        high = most if weigher.maxval is None else weigher.maxval
        normalised = fitting.zeros() if low == high else numbers.normalised(raw, low, high)
        return _Score(name, raw, normalised, multiplied)

    def _asked_weights(
        self, fitting: _Fitting, name: str, weigher: Weigher, request: Request
    ) -> Any:
        """Return the raw weights of the hosts that fit, with as few questions as possible."""
        keys, numbers = self._hosts.keys(name, weigher), fitting.numbers
        if keys is None:
            hosts = self._hosts.weighed(fitting.flags)
            return numbers.column(raw_weights(name, weigher, hosts, request))
        # Each host with servers of the group gets a number of its own.
        there = () if request.instance_group is None else request.instance_group.hosts
        with_members = [self._hosts.index[each] for each in there if each in self._hosts.index]
        of_hosts = array("q", keys.of_hosts)
        for number, host in enumerate(with_members, keys.number):
            of_hosts[host] = number
        positions, entries = numbers.distinct(
            numbers.numbers(of_hosts, fitting.units), keys.number + len(with_members)
        )
        hosts = self._hosts.weighed_at(fitting.units[each] for each in positions)
        return numbers.taken(numbers.column(raw_weights(name, weigher, hosts, request)), entries)

    def _first_hosts(
        self, fitting: _Fitting, positions: Sequence[int], excluded: Collection[int], most: int
    ) -> list[tuple[int, int]]:
        """Return the first hosts of the units at these positions, each with its position."""
        if self._of_hosts:
            return [(int(fitting.units[position]), position) for position in positions[:most]]
        of_kind = self._hosts.kinds.hosts
        return heapq.nsmallest(
            most,
            (
                (host, position)
                for position in positions
                for host in itertools.islice(
                    (host for host in of_kind[fitting.units[position]] if host not in excluded),
                    most,
                )
            ),
        )


def _fill(column: "array[float]", units: Sequence[int], values: Sequence[float]) -> None:
    if len(units) == len(column):
        column[:] = array("d", values)
    else:
        for unit, value in zip(units, values, strict=True):
            column[unit] = value


class Rankings:
    """The rankings of the flavors that were requested last."""

    def __init__(self, hosts: Hosts) -> None:
        self.hosts = hosts
        self._rankings: collections.OrderedDict[object, tuple[object, Ranking]] = (
            collections.OrderedDict()
        )

    def of(
        self,
        request: Request,
        by_kind: PluginSet,
        by_host: PluginSet,
        multipliers: Sequence[float],
        *,
        of_hosts: bool,
    ) -> Ranking:
        """Return the ranking for the request, with the answers so far.

        ``multipliers`` are the multipliers of all weighers for hosts that do not override them.
        """
        kept = (by_kind.filters, by_kind.weighers, by_host.filters, by_host.weighers)
        plugins_kept = tuple(tuple(map(id, each.values())) for each in kept)
        key = (id(request.flavor), of_hosts, plugins_kept, *multipliers)
        if key not in self._rankings:
            # With references to the flavor and the plugins, no id is used for another one.
            ranking = Ranking(self.hosts, by_kind, by_host, of_hosts=of_hosts)
            self._rankings[key] = request.flavor, ranking
        self._rankings.move_to_end(key)
        if len(self._rankings) > max(_RANKINGS_KEPT, _UNITS_KEPT // (len(self.hosts) or 1)):
            self._rankings.popitem(last=False)
        return self._rankings[key][1]

    def forget_old(self) -> None:
        """Forget all rankings if the hosts forget their old kinds."""
        if self.hosts.forget():
            self._rankings.clear()
