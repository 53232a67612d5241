"""Hosts by what flavors ask of aggregates, and aggregates of flavors."""

import collections
import functools
import glob
import itertools
import operator
from collections.abc import Iterable, Iterator
from operator import attrgetter
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging

from steelyard import conf as options
from steelyard.aggregates import Content, Judge, content
from steelyard.attributes import by_identity, read, read_all
from steelyard.filters import base
from steelyard.once import Once
from steelyard.verdict import PASSED, Verdict

LOG = logging.getLogger(__name__)

# For so many flavors, what the last call found is kept.
_FLAVORS_KEPT = 8

# So many hosts are looked at to tell whether hosts share their sets of aggregates.
_SAMPLE = 64

# The most frequent causes that one summary in the log has.
_CAUSES_LOGGED = 5


class AggregateInstanceTypeFilter(base.Filter):
    """Matches flavor extra specs with aggregate metadata, both ways, with sentinels."""

    run_filter_once_per_request = True

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        super().__init__(conf)
        group = options.register(conf)
        self._enforce = options.Latest(group, "enforce")
        self._log_no_host = options.Latest(group, "log_no_host")
        self._ignored_keys = ignored_keys(conf)
        self._first_time = Once()
        self._sweep_of = functools.lru_cache(maxsize=_FLAVORS_KEPT)(self._new_sweep)

    def examine(self, host: object, request: object) -> Verdict:
        return next(self.rejections(host, request), PASSED)

    def rejections(self, host: object, request: object) -> Iterator[Verdict]:
        return self._sweep(request).judge.rejections(
            [
                (str(read(aggregate, "name")), read(aggregate, "metadata") or {})
                for aggregate in read(host, "aggregates") or ()
            ]
        )

    def host_passes(self, host: object, request: object) -> bool:
        return self._sweep(request).admits(host)

    def filter_all(self, hosts: Iterable[base.HostT], request: object) -> Iterator[base.HostT]:
        """The hosts that pass, in their order.

        A list is judged as a whole, which is much faster; of anything else no more is looked at
        than is asked for.
        """
        sweep, enforce = self._sweep(request), self._enforce()
        if not isinstance(hosts, list):
            return filter(sweep.admits, hosts) if enforce else iter(hosts)
        verdicts = sweep.verdicts(hosts)
        if not all(verdicts):
            self._say_why(hosts, verdicts, request, enforce=enforce)
        return itertools.compress(hosts, verdicts) if enforce else iter(hosts)

    def _say_why(
        self, hosts: list[Any], verdicts: list[bool], request: object, *, enforce: bool
    ) -> None:
        """Logs why hosts are rejected: each at debug level, a summary where it is wanted."""
        nothing_left = not any(verdicts) and self._log_no_host() and LOG.isEnabledFor(logging.INFO)
        if enforce and not nothing_left and not LOG.isEnabledFor(logging.DEBUG):
            return
        causes: collections.Counter[str] = collections.Counter()
        rejects = "rejects" if enforce else "would reject"
        for host in itertools.compress(hosts, map(operator.not_, verdicts)):
            verdict = self.examine(host, request)
            causes[verdict.cause] += 1
            LOG.debug(
                "%(filter)s %(rejects)s host %(host)r: %(reason)s",
                {
                    "filter": type(self).__name__,
                    "rejects": rejects,
                    "host": read(host, "host"),
                    "reason": verdict.reason,
                },
            )
        if nothing_left or not enforce:
            ranked = sorted(causes.items(), key=lambda item: (-item[1], item[0]))
            LOG.info(
                "%(filter)s %(rejects)s %(rejected)d of %(all)d hosts for server %(server)s: "
                "%(causes)s",
                {
                    "filter": type(self).__name__,
                    "rejects": rejects,
                    "rejected": causes.total(),
                    "all": len(hosts),
                    "server": read(request, "instance_uuid"),
                    "causes": "; ".join(
                        f"{count} by {cause}" for cause, count in ranked[:_CAUSES_LOGGED]
                    ),
                },
            )

    def _sweep(self, request: object) -> "_Sweep":
        return self._sweep_of(content(read(read(request, "flavor"), "extra_specs") or {}))

    def _new_sweep(self, extra_specs: Content) -> "_Sweep":
        return _Sweep(Judge(extra_specs, self._ignored_keys, self._warn))

    def _warn(self, message: str) -> None:
        if self._first_time(message):
            LOG.warning("%s", message)


def ignored_keys(conf: cfg.ConfigOpts | None = None) -> tuple[str, ...]:
    """Return the patterns of the keys that forced aggregates do not require of flavors.

    The keys of failure domains lay out hosts. An empty option means that no key is ignored.
    """
    group = options.register(conf)
    patterns = set(group.force_check_ignored_keys)
    if patterns:
        patterns.update(map(glob.escape, group.failure_domains))
    return tuple(sorted(patterns))


class _Sweep:
    """One flavor over many hosts."""

    def __init__(self, judge: Judge) -> None:
        self.judge = judge
        self._last: _Findings | None = None  # replaced as a whole: threads may share a sweep

    def admits(self, host: object) -> bool:
        bits = 0
        for aggregate in read(host, "aggregates") or ():
            bits |= self.judge.bits(read(aggregate, "metadata") or {}, aggregate)
        return self.judge.passes(bits)

    def verdicts(self, hosts: list[Any]) -> list[bool]:
        """Whether each host passes."""
        found = read_all(hosts, "aggregates")
        last = self._last
        if last is not None and last.hold_for(found):
            return last.verdicts
        # Everything is judged from copies: what is kept is then what was judged, whoever else
        # may be changing the originals.
        try:
            layout = list(map(list, found))
        except TypeError:  # some hosts have none
            layout = [list(aggregates or ()) for aggregates in found]
        bits_of = _BitsOf(self.judge)
        try:
            verdicts = self._judge_all(layout, bits_of)
        except TypeError:  # aggregates that cannot be hashed
            return self._judge_all(*self._by_identity(layout))
        if not all(map(_compares_by_identity, set(map(type, bits_of)))):
            # Aggregates that are equal may still say different things.
            return self._judge_all(*self._by_identity(layout))
        if self.judge.only_text:
            self._last = _Findings(layout, list(bits_of), bits_of.metadata, verdicts)
        return verdicts

    def _judge_all(self, layout: list[list[Any]], bits_of: dict[Any, int]) -> list[bool]:
        sample = layout[:_SAMPLE]
        if 2 * len(set(map(tuple, sample))) <= len(sample):
            # Hosts share their sets of aggregates: one look-up of the set for each host.
            verdict_on = _VerdictOn(self.judge, bits_of)
            return list(map(verdict_on.__getitem__, map(tuple, layout)))
        combined = []
        for aggregates in layout:
            bits = 0
            for aggregate in aggregates:
                bits |= bits_of[aggregate]
            combined.append(bits)
        passing = {bits: self.judge.passes(bits) for bits in set(combined)}
        return list(map(passing.__getitem__, combined))

    def _by_identity(self, layout: list[list[Any]]) -> tuple[list[list[int]], dict[int, int]]:
        """The layout with the identities of aggregates in their stead, and the bits of each."""
        distinct = by_identity(layout)
        bits_of = {
            key: self.judge.bits(read(aggregate, "metadata") or {}, aggregate)
            for key, aggregate in distinct.items()
        }
        return [list(map(id, found)) for found in layout], bits_of


def _compares_by_identity(kind: type[Any]) -> bool:
    compare: Any = kind.__eq__
    return compare is object.__eq__


class _BitsOf(dict[Any, int]):
    """The bits of each aggregate, found when first asked for, and the metadata they come from."""

    def __init__(self, judge: Judge) -> None:
        super().__init__()
        self.metadata: list[dict[str, str]] = []
        self._bits = judge.bits

    def __missing__(self, aggregate: object) -> int:
        metadata = dict(read(aggregate, "metadata") or {})
        bits = self[aggregate] = self._bits(metadata, aggregate)
        self.metadata.append(metadata)
        return bits


class _VerdictOn(dict[tuple[Any, ...], bool]):
    """Whether the hosts in these aggregates pass, found when first asked for."""

    def __init__(self, judge: Judge, bits_of: dict[Any, int]) -> None:
        super().__init__()
        self._judge = judge
        self._bits_of = bits_of

    def __missing__(self, aggregates: tuple[Any, ...]) -> bool:
        bits = functools.reduce(operator.or_, map(self._bits_of.__getitem__, aggregates), 0)
        passes = self[aggregates] = self._judge.passes(bits)
        return passes


class _Findings:
    """What one call over many hosts found, and what it rests on.

    It holds for another call when every host is in the same aggregate objects, and these say
    what they said. Metadata may be changed in place, so it is compared, not trusted; that is
    much cheaper than judging again.
    """

    def __init__(
        self,
        layout: list[list[Any]],
        aggregates: list[object],
        metadata: list[dict[str, str]],
        verdicts: list[bool],
    ) -> None:
        self._layout = layout
        self._aggregates = aggregates
        self._metadata = metadata
        self.verdicts = verdicts

    def hold_for(self, layout: list[Any]) -> bool:
        try:
            return (
                layout == self._layout
                and list(map(attrgetter("metadata"), self._aggregates)) == self._metadata
            )
        except Exception:  # noqa: BLE001 - an aggregate has lost its metadata: judge again
            return False
