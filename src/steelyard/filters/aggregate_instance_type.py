"""A filter that matches flavor extra specs with aggregate metadata."""

import functools
import glob
import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from oslo_config import cfg
from oslo_log import log as logging

from steelyard import conf as options
from steelyard._once import Once
from steelyard.aggregates import Content, Judge, content
from steelyard.attributes import by_identity, read, read_all
from steelyard.filters import base
from steelyard.verdict import Verdict

__all__ = ["AggregateInstanceTypeFilter"]

LOG = logging.getLogger(__name__)

# The number of flavors whose last answers are kept.
_FLAVORS_KEPT = 8

# The number of hosts that are sampled to see whether hosts share their lists of aggregates.
_SAMPLE = 256


class AggregateInstanceTypeFilter(base.Filter):
    """A filter that matches flavor extra specs with aggregate metadata, in both directions.

    The values are expressions of :mod:`steelyard.expressions`.
    """

    run_filter_once_per_request = True
    host_local = True

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        super().__init__(conf)
        self.ignored_keys = ignored_keys(conf)
        """The patterns of keys that forced aggregates do not require."""
        self._first_time = Once()
        self._sweep_of = functools.lru_cache(maxsize=_FLAVORS_KEPT)(self._new_sweep)
        # Flavors share it, and it is replaced as a whole, because threads may share the filter.
        self._layout = _Layout([])

    def by_kind(self, request: object) -> bool:
        return True

    def judge(self, request: object) -> base.Rejections:
        return self._sweep(request).rejections()

    def passing(self, hosts: Sequence[object], request: object) -> Sequence[bool]:
        """Return whether each host passes; hosts with the same aggregates are judged once."""
        sweep = self._sweep(request)
        found = read_all(hosts, "aggregates")
        for layout in (sweep.layout, self._layout):
            if layout.is_valid_for(found):
                break
        else:
            layout = _Layout(found)
        if layout.can_be_kept:
            self._layout = layout
        return sweep.verdicts(layout)

    def _sweep(self, request: object) -> "_Sweep":
        return self._sweep_of(content(read(read(request, "flavor"), "extra_specs") or {}))

    def _new_sweep(self, extra_specs: Content) -> "_Sweep":
        return _Sweep(Judge(extra_specs, self.ignored_keys, self._warn))

    def _warn(self, message: str) -> None:
        if self._first_time(message):
            LOG.warning("%s", message)


def ignored_keys(conf: cfg.ConfigOpts | None = None) -> tuple[str, ...]:
    """Return the patterns of keys that forced aggregates do not require of flavors.

    They include the keys of failure domains, which describe hosts and not flavors. If the option
    ``force_check_ignored_keys`` is empty, no key is ignored.
    """
    group = options.register(conf)
    patterns = set(group.force_check_ignored_keys)
    if patterns:
        patterns.update(map(glob.escape, group.failure_domains))
    return tuple(sorted(patterns))


class _Read(NamedTuple):
    """An aggregate with its metadata. The reference keeps its ``id`` from being reused."""

    aggregate: object
    metadata: Mapping[str, Any]
    matters: bool


class _Sweep:
    """The check of one flavor against many hosts."""

    def __init__(self, judge: Judge) -> None:
        self._judge = judge
        # Replaced as a whole, because threads may share a sweep.
        self._last: tuple[_Layout, list[bool]] = _Layout([]), []

    @property
    def layout(self) -> "_Layout":
        """The layout of the last verdicts."""
        return self._last[0]

    def rejections(self) -> base.Rejections:
        """Return a function that returns the rejections of a host; none if it passes.

        The function is for the hosts of one request: aggregates whose metadata matters to the
        flavor are read once, and hosts in the same ones of these are judged once.
        """
        read_before: dict[int, _Read] = {}
        judged: dict[tuple[int, ...], Sequence[Verdict]] = {}

        def rejections(host: object) -> Sequence[Verdict]:
            mattering = []
            for aggregate in read(host, "aggregates") or ():
                found = read_before.get(id(aggregate))
                if found is None:
                    metadata = read(aggregate, "metadata") or {}
                    matters = self._judge.is_concerned(metadata)
                    found = read_before[id(aggregate)] = _Read(aggregate, metadata, matters)
                if found.matters:
                    mattering.append(found)
            key = tuple(id(each.aggregate) for each in mattering)
            if key not in judged:
                judged[key] = self._rejections(mattering)
            return judged[key]

        return rejections

    def _rejections(self, found: Sequence["_Read"]) -> Sequence[Verdict]:
        bits = 0
        for each in found:
            bits |= self._judge.bits(each.metadata, each.aggregate)
        if self._judge.passes(bits):
            return ()
        named = [(str(read(each.aggregate, "name")), each.metadata) for each in found]
        return tuple(self._judge.rejections(named))

    def verdicts(self, layout: "_Layout") -> list[bool]:
        """Return whether each host of the layout passes."""
        last, verdicts = self._last
        if last is not layout:
            verdicts = layout.verdicts(self._judge)
            if layout.can_be_kept:
                self._last = layout, verdicts
        return verdicts


class _Layout:
    """The aggregates of each host and their metadata, copied when the layout was made.

    A layout is valid for other hosts if each of them is in the same aggregate objects and the
    metadata of these is equal. Metadata may be changed in place, so it is compared at each call;
    that is much cheaper than judging again. Only the copies are judged: another thread may change
    the originals meanwhile.
    """

    def __init__(self, found: Sequence[Any]) -> None:
        if set(map(type, found)) - {list}:  # None counts as empty; iterators are read only once
            found = [each if type(each) is list else tuple(each or ()) for each in found]
        try:
            kinds, self._kind_of = _kinds(found)
            each_once: dict[Any, Any] = dict.fromkeys(itertools.chain.from_iterable(kinds))
            identical = all(map(_compares_by_identity, set(map(type, each_once))))
            distinct = dict(zip(each_once, each_once, strict=True))
        except TypeError:  # an aggregate is not hashable
            identical = False
        if not identical:  # Equal aggregates may still have different metadata.
            kinds, self._kind_of = list(map(list, found)), None
            distinct = by_identity(kinds)
            kinds = [list(map(id, aggregates)) for aggregates in kinds]
        self._kinds = kinds
        self._aggregates = distinct
        self._metadata = [dict(read(each, "metadata") or {}) for each in distinct.values()]
        values = itertools.chain.from_iterable(map(dict.values, self._metadata))
        # Equal values of other types may differ as text, such as 1 and True.
        self.can_be_kept = identical and set(map(type, values)) <= {str, type(None)}
        self._hosts = self._of_each_host(kinds)

    def is_valid_for(self, found: list[Any]) -> bool:
        """Return whether the layout is valid for hosts with these aggregates."""
        try:
            return (
                found == self._hosts
                and list(map(attrgetter("metadata"), self._aggregates)) == self._metadata
            )
        except Exception:  # noqa: BLE001 - an aggregate's __getattr__ can raise anything
            return False

    def verdicts(self, judge: Judge) -> list[bool]:
        """Return whether each host passes."""
        bits_of = dict(
            zip(
                self._aggregates,
                map(judge.bits, self._metadata, self._aggregates.values()),
                strict=True,
            )
        )
        combined = []
        for aggregates in self._kinds:
            bits = 0
            for aggregate in aggregates:
                bits |= bits_of[aggregate]
            combined.append(bits)
        passing = {bits: judge.passes(bits) for bits in set(combined)}
        return self._of_each_host(list(map(passing.__getitem__, combined)))

    def _of_each_host(self, of_each_kind: list[Any]) -> list[Any]:
        if self._kind_of is None:
            return of_each_kind
        return list(map(of_each_kind.__getitem__, self._kind_of))


def _kinds(found: Sequence[Iterable[Any]]) -> tuple[list[list[Any]], list[int] | None]:
    """Return the distinct lists of aggregates, and the index of each host's list among them.

    Without indices, there is one list for each host.
    """
    sample = list(map(tuple, found[:_SAMPLE]))
    if 5 * len(set(sample)) > 4 * len(sample):
        # Hosts share few lists: a copy for each host costs less than looking the lists up.
        return list(map(list, found)), None
    index: dict[tuple[Any, ...], int] = defaultdict(itertools.count().__next__)
    kind_of = list(map(index.__getitem__, map(tuple, found)))
    return list(map(list, index)), kind_of


def _compares_by_identity(kind: type[Any]) -> bool:
    compare: Any = kind.__eq__
    return compare is object.__eq__
