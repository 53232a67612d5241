"""The hosts that fit a flavor, as they are or empty, and the reasons of the others."""

import dataclasses
import itertools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from oslo_config import cfg

from steelyard import plugins
from steelyard.aggregates import Judge, content
from steelyard.analysis.kinds import HostKinds
from steelyard.cloud import Aggregate, Cloud, Flavor
from steelyard.cloud.host_state import HostState, Request, host_states
from steelyard.cloud.model import known
from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter, ignored_keys
from steelyard.filters.base import FILTERS, SILENT, Filter, Rejections
from steelyard.filters.capacity import CapacityFilter, FreeCapacity, ResourceDemand, keep_amounts
from steelyard.resources import FIELDS, HOST_CLASSES, flavor_amounts
from steelyard.scheduler import FilterScheduler
from steelyard.verdict import Verdict

_NOTHING_USED: dict[str, Any] = {f"{field}_used": 0 for field in FIELDS.values()}
# The beginning of the keys that Nova's AggregateMultiTenancyIsolation reads.
_TENANTS = "filter_tenant_id"
# The number of hosts that are examined first if any host that fits will do.
_SAMPLE = 64
# The number of different amounts for which the missing parts on all hosts are kept.
_KEPT = 16


Distance = tuple[bool, int, float, int]
"""The distance of a host from fitting a flavor: the nearest sorts first.

It says whether the host is dedicated to other flavors or to tenants, and has a number of demands of
the flavor, of which the host leaves at least as many unmet; the missing share of resources, as in
``Missing``; and the position among the candidates, which is different for each.
"""


class Fitting:
    """The hosts of a cloud, filtered by the enabled filters for its flavors."""

    def __init__(self, cloud: Cloud, conf: cfg.ConfigOpts | None = None) -> None:
        self.cloud = cloud
        self._scheduler = FilterScheduler(cloud, conf)
        self._dedication = _Dedication(self._scheduler.filters, ignored_keys(conf))
        self._flavors = _flavors(cloud)
        self.capacity = FreeCapacity(conf)
        self._filters_capacity = CapacityFilter in map(type, self._scheduler.filters.values())
        self._examinations: dict[str, _Examination] = {}
        self._lacking_hosts: Sequence[HostState] = []
        self._lacks: dict[tuple[tuple[str, int], ...], tuple[Sequence[int], Sequence[float]]] = {}
        self.present = HostKinds(host_states(cloud))
        self.emptied = HostKinds(map(_emptied, self.present.hosts))
        """All hosts, as if empty and in service."""
        states = [*self.present.hosts, *self.emptied.hosts]
        self.capacity.keep(states)
        keep_amounts(self._scheduler.filters.values(), states)

    @property
    def failure_domains(self) -> tuple[str, ...]:
        """The aggregate metadata keys that name failure domains, from near to far."""
        return self._scheduler.failure_domains

    def _request(self, flavor: str) -> Request:
        return Request(known("flavor", flavor, self._flavors))

    def of(self, flavor: str, kinds: HostKinds, hosts: Sequence[HostState]) -> list[HostState]:
        """Return those of the hosts that fit the flavor; ``kinds`` are those of the hosts."""
        request = self._request(flavor)
        fitting = list(hosts)
        for name, filter_ in self._scheduler.filters.items():
            passing = kinds.passing(name, filter_, fitting, request)
            fitting = list(itertools.compress(fitting, passing))
        return fitting

    def any(self, flavor: str, kinds: HostKinds) -> bool:
        """Return whether any host fits the flavor."""
        first, others = kinds.hosts[:_SAMPLE], kinds.hosts[_SAMPLE:]
        return bool(self.of(flavor, kinds, first) or self.of(flavor, kinds, others))

    def candidates(
        self, flavor: str, kinds: HostKinds, hosts: Sequence[HostState], first: int = 0
    ) -> list[Distance]:
        """Return the distance of each of the hosts from fitting the flavor.

        ``kinds`` are those of the hosts, and ``first`` is the position of the first host.
        """
        request = self._request(flavor)
        unmet, dedicated = self._dedication.of(request.flavor, hosts)
        rejected: list[Sequence[int]] = [unmet]
        for name, filter_ in self._scheduler.filters.items():
            if name in self._dedication.filters:
                continue
            passing = kinds.passing(name, filter_, hosts, request)
            if not all(passing):
                rejected.append(list(map(operator.not_, passing)))
        further, shares = self._lack(flavor_amounts(request.flavor), hosts)
        if self._filters_capacity:
            rejected.append(further)
        least = map(sum, zip(*rejected, strict=True))
        return list(zip(dedicated, least, shares, itertools.count(first), strict=False))

    def _lack(
        self, wanted: Mapping[str, int], hosts: Sequence[HostState]
    ) -> tuple[Sequence[int], Sequence[float]]:
        """Return the missing resources of each host after the first, and their total share.

        They are kept for other flavors with the same amounts, while the hosts are the same.
        """
        if self._lacking_hosts != hosts or len(self._lacks) == _KEPT:
            self._lacking_hosts, self._lacks = list(hosts), {}
        key = tuple(wanted.items())
        if key not in self._lacks:
            nothing = [0] * len(hosts)
            shares = list(filter(any, self._missing_shares(wanted, hosts)))
            lacking = map(sum, zip(*(map(bool, each) for each in shares), strict=True))
            further = [count - 1 if count > 1 else 0 for count in lacking]
            total = list(map(sum, zip(*shares, strict=True)))
            self._lacks[key] = (further, total) if shares else (nothing, nothing)
        return self._lacks[key]

    def _missing_shares(
        self, wanted: Mapping[str, int], hosts: Sequence[HostState]
    ) -> Iterable[Sequence[float]]:
        """Return for each resource the missing part on each host, as a share of the amount."""
        if wanted.keys() <= HOST_CLASSES.keys():
            columns = self.capacity.columns(hosts)
            return [
                _lacking(amount, columns[resource_class].left)
                for resource_class, amount in wanted.items()
            ]
        rows = [
            [_missing_share(demand) for demand in demands]
            for demands in self.capacity.demands(hosts, wanted)
        ]
        return itertools.zip_longest(*rows, fillvalue=0.0)

    def nearest(
        self, candidates: Sequence[Distance], at: Callable[[int], tuple[str, HostState]]
    ) -> "Missing":
        """Return the missing parts of the nearest candidate; there must be one.

        ``at`` returns the flavor and the host at a position. Of candidates that are equally near,
        the first counts. Only those that may be the nearest are examined for all reasons.
        """
        first = min(candidates)
        *_, share, position = first
        best = self._missing(*at(position), share)
        reached = (best.dedicated, best.count, share, position)
        for each in sorted(each for each in candidates if first < each <= reached):
            if each > (best.dedicated, best.count, best.share, position):
                break
            *_, share, other = each
            best, position = min((best, position), (self._missing(*at(other), share), other))
        return best

    def missing(self, flavor: str, host: HostState) -> "Missing":
        """Return every reason why the host does not fit the flavor."""
        wanted = flavor_amounts(self._request(flavor).flavor)
        (demands,) = self.capacity.demands([host], wanted)
        return self._missing(flavor, host, sum(map(_missing_share, demands)))

    def first_rejection(self, flavor: str, host: HostState) -> Verdict:
        """Return the first reason why the host does not fit the flavor; it must not fit."""
        return next((verdict for _, verdict in self._rejections(flavor, host)), SILENT)

    def _missing(self, flavor: str, host: HostState, share: float) -> "Missing":
        found = list(self._rejections(flavor, host))
        (unmet,), (dedicated,) = self._dedication.of(self._request(flavor).flavor, [host])
        others = sum(name not in self._dedication.filters for name, _ in found)
        verdicts = tuple(verdict for _, verdict in found)
        return Missing(dedicated, unmet + others, share, host.host, flavor, verdicts)

    def _rejections(self, flavor: str, host: HostState) -> Iterator[tuple[str, Verdict]]:
        if flavor not in self._examinations:
            request = self._request(flavor)
            self._examinations[flavor] = _Examination(request, self._scheduler.filters)
        return self._examinations[flavor].rejections(host)


class _Examination:
    """A request that each filter has read once, to be compared with many hosts."""

    def __init__(self, request: Request, filters: Mapping[str, Filter]) -> None:
        self._rejections: dict[str, Rejections] = {}
        for name, filter_ in filters.items():
            with plugins.blamed(FILTERS, name):
                self._rejections[name] = filter_.judge(request)

    def rejections(self, host: HostState) -> Iterator[tuple[str, Verdict]]:
        """Yield the rejections of the host by all filters, each with the name of the filter."""
        for name, rejections in self._rejections.items():
            with plugins.blamed(FILTERS, name):
                found = [verdict for verdict in rejections(host) if not verdict.passed]
            yield from ((name, verdict) for verdict in found)


class _Dedication:
    """The hosts that aggregates dedicate to other flavors or to tenants.

    A forced aggregate dedicates its hosts to flavors with its keys. Nova's
    ``AggregateMultiTenancyIsolation`` dedicates hosts to the tenants that an aggregate names. All
    other reasons to reject a host are unmet demands of the flavor.
    """

    def __init__(self, filters: Mapping[str, Filter], ignored: tuple[str, ...]) -> None:
        self.filters = {
            name for name, each in filters.items() if type(each) is AggregateInstanceTypeFilter
        }
        """The names of the filters that compare flavors with aggregates."""
        self._ignored = ignored
        self._judges: dict[str, tuple[Judge, dict[Aggregate, int]]] = {}
        self._names_tenants: dict[Aggregate, bool] = {}

    def of(self, flavor: Flavor, hosts: Sequence[HostState]) -> tuple[list[int], list[bool]]:
        """Return the flavor's unmet extra specs on each host, and whether it is dedicated."""
        dedicated = [any(map(self._is_for_tenants, host.aggregates)) for host in hosts]
        if not self.filters:
            return [0] * len(hosts), dedicated
        if flavor.name not in self._judges:
            self._judges[flavor.name] = (Judge(content(flavor.extra_specs), self._ignored), {})
        judge, bits_of = self._judges[flavor.name]
        combined = []
        for host in hosts:
            bits = 0
            for aggregate in host.aggregates:
                if aggregate not in bits_of:
                    bits_of[aggregate] = judge.bits(aggregate.metadata)
                bits |= bits_of[aggregate]
            combined.append(bits)
        requires = map(judge.lacks_required_key, combined)
        return list(map(judge.unmet, combined)), list(map(operator.or_, dedicated, requires))

    def _is_for_tenants(self, aggregate: Aggregate) -> bool:
        if aggregate not in self._names_tenants:
            self._names_tenants[aggregate] = any(
                key.startswith(_TENANTS) for key in aggregate.metadata
            )
        return self._names_tenants[aggregate]


@dataclasses.dataclass(frozen=True, order=True)
class Missing:
    """The reasons why a host does not fit a flavor. Sorts by distance: the nearest first."""

    dedicated: bool
    """Whether the host is dedicated to other flavors or to tenants."""
    count: int
    """The number of the flavor's demands that the host does not meet."""
    share: float
    """The missing part of each resource, as a share of the amount wanted, added up."""
    host: str = dataclasses.field(compare=False)
    flavor: str = dataclasses.field(compare=False)
    verdicts: tuple[Verdict, ...] = dataclasses.field(compare=False)

    @property
    def reasons(self) -> list[str]:
        return [verdict.reason for verdict in self.verdicts]

    def __str__(self) -> str:
        return "; and ".join(self.reasons)


def _flavors(cloud: Cloud) -> Mapping[str, Flavor]:
    """Return the flavors of the cloud by name, with those that only its servers have."""
    return {**{each.flavor.name: each.flavor for each in cloud.servers.values()}, **cloud.flavors}


def _missing_share(demand: ResourceDemand) -> float:
    """Return the missing part of a resource, as a share of the amount wanted; 0 if none is."""
    _, amount, _, left = demand
    return _lacking(amount, [left])[0]


def _lacking(amount: int, free: Iterable[float]) -> list[float]:
    """Return the missing part for each free amount, as a share of the amount wanted."""
    return [(1 - left / amount if left > 0 else 1.0) if amount > left else 0.0 for left in free]


def _emptied(state: HostState) -> HostState:
    """Return the state of the host as if it were empty and in service."""
    return dataclasses.replace(
        state,
        instances={},
        resources_used=dict.fromkeys(state.resources, 0),
        out_of_service="",
        **_NOTHING_USED,
    )
