"""Which hosts take a flavor, as they are or with nothing on them, and what keeps others from it."""

import dataclasses
from collections.abc import Sequence

from oslo_config import cfg

from steelyard import plugins
from steelyard.filters.capacity import Capacity
from steelyard.scheduler import Cloud, FilterScheduler, HostState
from steelyard.scheduler.host_state import host_states
from steelyard.traits.flavors import flavor_amounts
from steelyard.verdict import Verdict


class Fitting:
    """A cloud's hosts, to be asked about its flavors; the filters are those that are enabled."""

    def __init__(self, cloud: Cloud, conf: cfg.ConfigOpts | None = None) -> None:
        self._scheduler = FilterScheduler(cloud, conf)
        self._capacity = Capacity(conf)
        self.hosts = host_states(cloud)
        self.emptied_hosts = host_states(_emptied(cloud))
        """The hosts in service, and with nothing on them."""

    def of(self, flavor: str, hosts: Sequence[HostState]) -> list[HostState]:
        """Those of the hosts that take a server of the flavor."""
        request = self._scheduler.request(flavor)
        taking = list(hosts)
        for name, filter_ in self._scheduler.filters.items():
            with plugins.blamed("filter", name):
                taking = list(filter_.filter_all(taking, request))
        return taking

    def missing(self, flavor: str, host: HostState) -> "Missing":
        """Everything that keeps the host from taking a server of the flavor."""
        request = self._scheduler.request(flavor)
        found: list[Verdict] = []
        for name, filter_ in self._scheduler.filters.items():
            with plugins.blamed("filter", name):
                found.extend(filter_.rejections(host, request))
        short = self._capacity.shortages(host, flavor_amounts(request.flavor))
        share = sum(1 - max(each.supply.left, 0) / each.wanted for each in short)
        return Missing(len(found), share, host.host, flavor, tuple(found))


@dataclasses.dataclass(frozen=True, order=True)
class Missing:
    """What a host lacks for a flavor; the less it is, the nearer they come."""

    count: int
    share: float
    """Of what is wanted of each resource, the shares that are not there, added up."""
    host: str = dataclasses.field(compare=False)
    flavor: str = dataclasses.field(compare=False)
    verdicts: tuple[Verdict, ...] = dataclasses.field(compare=False)

    def __str__(self) -> str:
        return "; and ".join(verdict.reason for verdict in self.verdicts)


def _emptied(cloud: Cloud) -> Cloud:
    hosts = {
        name: dataclasses.replace(host, used={}, out_of_service="")
        for name, host in cloud.hosts.items()
    }
    return Cloud(hosts, cloud.aggregates, cloud.flavors)
