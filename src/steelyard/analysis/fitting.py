"""The hosts that fit a flavor, as they are or empty, and the reasons of the others."""

import dataclasses
from collections.abc import Sequence

from oslo_config import cfg

from steelyard import plugins
from steelyard.cloud import Cloud
from steelyard.cloud.host_state import HostState, host_states
from steelyard.filters.base import FILTERS
from steelyard.filters.capacity import FreeCapacity
from steelyard.resources import flavor_amounts
from steelyard.scheduler import FilterScheduler
from steelyard.verdict import Verdict


class Fitting:
    """The hosts of a cloud, filtered by the enabled filters for its flavors."""

    def __init__(self, cloud: Cloud, conf: cfg.ConfigOpts | None = None) -> None:
        self._scheduler = FilterScheduler(cloud, conf)
        self._capacity = FreeCapacity(conf)
        self.hosts = host_states(cloud)
        self.emptied_hosts = host_states(_emptied(cloud))
        """All hosts, as if empty and in service."""

    def of(self, flavor: str, hosts: Sequence[HostState]) -> list[HostState]:
        """Return those of the hosts that fit the flavor."""
        request = self._scheduler.request(flavor)
        fitting = list(hosts)
        for name, filter_ in self._scheduler.filters.items():
            with plugins.blamed(FILTERS, name):
                fitting = list(filter_.filter_all(fitting, request))
        return fitting

    def missing(self, flavor: str, host: HostState) -> "Missing":
        """Return every reason why the host does not fit the flavor."""
        request = self._scheduler.request(flavor)
        found: list[Verdict] = []
        for name, filter_ in self._scheduler.filters.items():
            with plugins.blamed(FILTERS, name):
                found.extend(filter_.rejections(host, request))
        short = self._capacity.shortages(host, flavor_amounts(request.flavor))
        share = sum(1 - max(each.supply.left, 0) / each.wanted for each in short)
        return Missing(len(found), share, host.host, flavor, tuple(found))


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


def _emptied(cloud: Cloud) -> Cloud:
    hosts = {
        name: dataclasses.replace(host, used={}, out_of_service="")
        for name, host in cloud.hosts.items()
    }
    return Cloud(hosts, cloud.aggregates, cloud.flavors)
