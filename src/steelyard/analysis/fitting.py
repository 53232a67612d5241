"""The hosts that fit a flavor, as they are or empty, and the reasons of the others."""

import dataclasses
import itertools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from oslo_config import cfg

from steelyard import plugins
from steelyard.analysis.kinds import HostKinds
from steelyard.cloud import Cloud
from steelyard.cloud.host_state import HostState, Request, host_states
from steelyard.filters.base import FILTERS, Filter, Rejections
from steelyard.filters.capacity import CapacityFilter, FreeCapacity, ResourceDemand
from steelyard.resources import flavor_amounts
from steelyard.scheduler import FilterScheduler
from steelyard.verdict import Verdict

# The number of hosts that are examined first if any host that fits will do.
_SAMPLE = 64


class RejectedHost(NamedTuple):
    """A host that does not fit a flavor. Sorts before all that are surely further away."""

    least: int
    """A number of reasons: the host has at least so many."""
    share: float
    """As in ``Missing``."""
    position: int
    """The position among the candidates, which is different for each."""
    flavor: str
    host: HostState


class Fitting:
    """The hosts of a cloud, filtered by the enabled filters for its flavors."""

    def __init__(self, cloud: Cloud, conf: cfg.ConfigOpts | None = None) -> None:
        self._scheduler = FilterScheduler(cloud, conf)
        self._capacity = FreeCapacity(conf)
        self._filters_capacity = CapacityFilter in map(type, self._scheduler.filters.values())
        self._examinations: dict[str, _Examination] = {}
        self.present = HostKinds(host_states(cloud))
        self.emptied = HostKinds(host_states(_emptied(cloud)))
        """All hosts, as if empty and in service."""

    def of(self, flavor: str, kinds: HostKinds, hosts: Sequence[HostState]) -> list[HostState]:
        """Return those of the hosts that fit the flavor; ``kinds`` are those of the hosts."""
        request = self._scheduler.request(flavor)
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
    ) -> list[RejectedHost]:
        """Return the hosts as candidates for the nearest host.

        ``kinds`` are those of the hosts, and ``first`` is the position of the first host.
        """
        request = self._scheduler.request(flavor)
        least = [0] * len(hosts)
        for name, filter_ in self._scheduler.filters.items():
            passing = kinds.passing(name, filter_, hosts, request)
            least = [count + (not passes) for count, passes in zip(least, passing, strict=True)]
        shares = [
            [share for share in map(_missing_share, demands) if share]
            for demands in self._capacity.demands(hosts, flavor_amounts(request.flavor))
        ]
        if self._filters_capacity:  # it has a reason for each resource
            least = [
                count + max(len(each) - 1, 0) for count, each in zip(least, shares, strict=True)
            ]
        return list(
            map(
                RejectedHost,
                least,
                map(sum, shares),
                itertools.count(first),
                itertools.repeat(flavor),
                hosts,
            )
        )

    def nearest(self, candidates: Iterable[RejectedHost]) -> "Missing":
        """Return the missing parts of the nearest candidate; there must be one.

        Of candidates that are equally near, the first counts. Only those that may be the nearest
        are examined for all reasons.
        """
        first, *others = sorted(candidates, key=operator.itemgetter(0, 1, 2))
        best = self.missing(first.flavor, first.host)
        position = first.position
        for each in others:
            if (each.least, each.share, each.position) > (best.count, best.share, position):
                break
            found = self.missing(each.flavor, each.host)
            best, position = min((best, position), (found, each.position))
        return best

    def missing(self, flavor: str, host: HostState) -> "Missing":
        """Return every reason why the host does not fit the flavor."""
        if flavor not in self._examinations:
            request = self._scheduler.request(flavor)
            self._examinations[flavor] = _Examination(request, self._scheduler.filters)
        examination = self._examinations[flavor]
        (demands,) = self._capacity.demands([host], examination.wanted)
        verdicts = tuple(examination.rejections(host))
        share = sum(map(_missing_share, demands))
        return Missing(len(verdicts), share, host.host, flavor, verdicts)


class _Examination:
    """A request that each filter has read once, to be compared with many hosts."""

    def __init__(self, request: Request, filters: Mapping[str, Filter]) -> None:
        self.wanted = flavor_amounts(request.flavor)
        self._rejections: dict[str, Rejections] = {}
        for name, filter_ in filters.items():
            with plugins.blamed(FILTERS, name):
                self._rejections[name] = filter_.judge(request)

    def rejections(self, host: HostState) -> Iterator[Verdict]:
        """Yield the rejections of the host by all filters."""
        for name, rejections in self._rejections.items():
            with plugins.blamed(FILTERS, name):
                found = [verdict for verdict in rejections(host) if not verdict.passed]
            yield from found


@dataclasses.dataclass(frozen=True, order=True)
class Missing:
    """The reasons why a host does not fit a flavor. Sorts by distance: the nearest first."""

    count: int
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


def _missing_share(demand: ResourceDemand) -> float:
    """Return the missing part of a resource, as a share of the amount wanted; 0 if none is."""
    _, amount, _, left = demand
    return 1 - max(left, 0) / amount if amount > left else 0.0


def _emptied(cloud: Cloud) -> Cloud:
    hosts = {
        name: dataclasses.replace(host, used={}, out_of_service="")
        for name, host in cloud.hosts.items()
    }
    return Cloud(hosts, cloud.aggregates, cloud.flavors)
