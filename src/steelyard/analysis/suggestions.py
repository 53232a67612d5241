"""Possible typos that explain rejections.

The checks for possible typos read the flavors and aggregates of the whole cloud once. A finding
belongs to a rejection if it is about the key that decided: the extra spec of the flavor, or the
metadata of an aggregate of the host.
"""

import collections
import functools
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from steelyard.aggregates import SCOPE, Demand
from steelyard.analysis.checks import near_misses
from steelyard.analysis.checks.checked_cloud import CheckedCloud
from steelyard.cloud import Cloud, Flavor
from steelyard.cloud.host_state import HostState
from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter
from steelyard.filters.base import Filter
from steelyard.findings import Check, Finding, SubjectKind
from steelyard.scheduler.decision import RejectedHost
from steelyard.text.wording import counted
from steelyard.verdict import Verdict

KeyT = TypeVar("KeyT")

_CHECKS = (near_misses.keys, near_misses.namespaces, near_misses.values, near_misses.traits)


# The most possible typos that people read about one rejection.
_MOST_TOLD = 3


def told(findings: Sequence[Finding]) -> list[str]:
    """Return the possible typos as text, a line each, and the number of those left out."""
    lines = [
        finding.message
        if finding.subject.kind is SubjectKind.FLAVOR
        else f"{finding.subject}: {finding.message}"
        for finding in findings[:_MOST_TOLD]
    ]
    more = len(findings) - len(lines)
    return [*lines, f"and {counted(more, 'more possible typo')}"] if more else lines


class Suggestions:
    """The possible typos that explain why the filters rejected hosts of the cloud.

    They are searched for when the first rejection by a key is explained.
    """

    def __init__(self, cloud: Cloud, filters: Iterable[Filter]) -> None:
        self._cloud = cloud
        self._ignored_keys = next(
            (
                each.ignored_keys
                for each in filters
                if isinstance(each, AggregateInstanceTypeFilter)
            ),
            (),
        )
        self._of = functools.cache(self._of_key)

    def of(self, flavor: Flavor, verdict: Verdict, host: HostState) -> Sequence[Finding]:
        """Return the possible typos that explain the verdict on the host."""
        if not verdict.key:
            return ()
        of_flavor, of_aggregates = self._of(flavor.name, verdict.key)
        if not of_aggregates:
            return of_flavor
        here = (of_aggregates.get(each.name, ()) for each in host.aggregates)
        return [*of_flavor, *(finding for found in here for finding in found)]

    def by_host(
        self, flavor: Flavor, rejected: Iterable[RejectedHost]
    ) -> Mapping[str, Sequence[Finding]]:
        """Return the possible typos that explain the rejections of each host."""
        return self._by(flavor, ((host.host, host, verdict) for _, host, verdict in rejected))

    def by_cause(
        self, flavor: Flavor, rejected: Iterable[RejectedHost]
    ) -> Mapping[tuple[str, str], Sequence[Finding]]:
        """Return the possible typos that explain each cause, by filter and cause."""
        found = (((name, verdict.cause), host, verdict) for name, host, verdict in rejected)
        return self._by(flavor, found)

    def by_reason(
        self, flavor: Flavor, rejected: Iterable[RejectedHost]
    ) -> Mapping[tuple[str, str], Sequence[Finding]]:
        """Return the possible typos that explain each reason, by filter and reason."""
        found = (((name, verdict.reason), host, verdict) for name, host, verdict in rejected)
        return self._by(flavor, found)

    def _by(
        self, flavor: Flavor, rejected: Iterable[tuple[KeyT, HostState, Verdict]]
    ) -> Mapping[KeyT, Sequence[Finding]]:
        """Return the possible typos that explain the verdicts with each key."""
        found: dict[KeyT, dict[Finding, None]] = collections.defaultdict(dict)
        for key, host, verdict in rejected:
            for finding in self.of(flavor, verdict, host):
                found[key][finding] = None
        return {key: list(findings) for key, findings in found.items()}

    def _of_key(self, name: str, key: str) -> "_OfKey":
        """Return the possible typos that explain why a key decided against a flavor."""
        flavor = self._cloud.flavors.get(name)
        specs = {} if flavor is None else flavor.extra_specs
        demands = list(itertools.starmap(Demand.parse, specs.items()))
        has_key = any(demand.key == key for demand in demands)
        found = self._findings.get(key, ())
        of_flavor = [
            finding
            for finding in found
            if finding.subject.kind is SubjectKind.FLAVOR
            and finding.subject.name == name
            and (not has_key or _key(finding) == key)
        ]
        # Words of aggregates that these resemble need no second line.
        named = {word for finding in of_flavor for word in finding.details["suggestions"]}
        of_aggregates: dict[str, list[Finding]] = collections.defaultdict(list)
        for finding in found:
            if (
                finding.subject.kind is SubjectKind.AGGREGATE
                and finding.details["found"] not in named
                and _would_match(finding, demands)
            ):
                of_aggregates[finding.subject.name].append(finding)
        return _OfKey(of_flavor, of_aggregates)

    @functools.cached_property
    def _findings(self) -> Mapping[str, Sequence[Finding]]:
        """The possible typos in the cloud by the keys that they are about."""
        checked = CheckedCloud(self._cloud, self._ignored_keys)
        found: dict[str, list[Finding]] = collections.defaultdict(list)
        for check in _CHECKS:
            for finding in check(checked):
                for key in dict.fromkeys(_concerned(finding)):
                    found[key].append(finding)
        return found


class _OfKey(NamedTuple):
    """The possible typos about a key in a flavor, and in the aggregates by name."""

    of_flavor: Sequence[Finding]
    of_aggregates: Mapping[str, Sequence[Finding]]


def _key(finding: Finding) -> str:
    return str(finding.subject.key).removeprefix(SCOPE)


def _concerned(finding: Finding) -> Iterator[str]:
    """Yield the keys of rejections that the finding may explain."""
    yield _key(finding)
    if finding.check is Check.NEAR_MISS_KEY:
        yield from finding.details["suggestions"]
        yield _key(finding).partition(":")[2]  # the namespace is a possible typo


def _would_match(finding: Finding, demands: Sequence[Demand]) -> bool:
    """Return whether an aggregate without the possible typo would have what a demand wants."""
    meant = finding.details["suggestions"]
    if finding.check is Check.NEAR_MISS_KEY:
        return any(demand.key in meant for demand in demands)
    return any(
        demand.key == _key(finding) and any(map(demand.expression.admits, meant))
        for demand in demands
    )
