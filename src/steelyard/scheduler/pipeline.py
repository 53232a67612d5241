"""The embedded filter scheduler: filter, weigh, pick, once for each server."""

import collections
import dataclasses
import itertools
import math
import random
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from oslo_config import cfg

from steelyard import conf as options
from steelyard import errors, plugins
from steelyard.filters.base import Filter
from steelyard.groups import ServerGroup, check_supported
from steelyard.scheduler.cloud import Cloud, Server
from steelyard.scheduler.decision import Decision, Rejected, Weighed, Weight
from steelyard.scheduler.host_state import HostState, Request, host_states
from steelyard.traits import CandidatesRequest
from steelyard.weighers.base import Weigher

_CAUSES_SHOWN = 10


class NoValidHost(errors.SteelyardError):
    """No host fits. ``decisions`` are those for the servers that had one, and for the one not."""

    def __init__(self, decisions: Sequence[Decision], count: int) -> None:
        self.decisions = tuple(decisions)
        self.count = count
        super().__init__(self._message())

    @property
    def decision(self) -> Decision:
        """The one that failed."""
        return self.decisions[-1]

    def _message(self) -> str:
        failed = self.decision
        of = f" for server {len(self.decisions)} of {self.count}" if self.count > 1 else ""
        left = ", ".join(map(repr, sorted(failed.request.ignore_hosts)))
        besides = f" besides {left}, which it leaves," if left else ""
        lines = [
            f"no valid host{of}: of {failed.considered} hosts{besides} none fits "
            f"flavor {failed.request.flavor.name!r}"
        ]
        shown, more = failed.causes[:_CAUSES_SHOWN], failed.causes[_CAUSES_SHOWN:]
        lines += [
            f"{cause.count:7} {cause.filter}: {' '.join(cause.cause.split())}" for cause in shown
        ]
        if more:
            lines.append(f"{sum(cause.count for cause in more):7} for {len(more)} other causes")
        return "\n".join(lines)


@dataclasses.dataclass(frozen=True)
class Selection:
    """Where the servers of one request go. Nothing has happened until it is committed."""

    cloud: Cloud
    decisions: tuple[Decision, ...]

    @property
    def servers(self) -> tuple[Server, ...]:
        return tuple(decision.server for decision in self.decisions if decision.server)


class FilterScheduler:
    """Places servers in a described cloud, with the filters and weighers that are enabled."""

    def __init__(self, cloud: Cloud, conf: cfg.ConfigOpts | None = None) -> None:
        group = options.register(conf)
        self.cloud = cloud
        self.filters: dict[str, Filter] = plugins.load(plugins.FILTERS, group.enabled_filters, conf)
        self.weighers: dict[str, Weigher] = plugins.load(
            plugins.WEIGHERS, group.enabled_weighers, conf
        )
        builder = group.query_builder
        self._query_builder = plugins.load_classes(plugins.QUERY_BUILDERS, [builder])[builder]
        self._consumer_model = group.consumer_model
        self.failure_domains: tuple[str, ...] = tuple(group.failure_domains)
        """The metadata keys of aggregates that name them, from near to far."""
        self._host_subset_size = group.host_subset_size
        self._random = random.Random(group.seed)

    def request(self, flavor: str, group: str | None = None) -> Request:
        """A request for servers of the named flavor, in the named server group."""
        return Request(
            self.cloud.flavor(flavor), None if group is None else self.cloud.server_group(group)
        )

    def query(self, flavor: str) -> Any:
        """The request that asks Placement for hosts for a server of the named flavor."""
        asked = self.cloud.flavor(flavor)
        with plugins.blamed("query builder", self._query_builder.__name__):
            return self._query_builder.from_flavor(asked)

    def resources(self, flavor: str) -> dict[str, int]:
        """How much of each resource class a server of the named flavor uses."""
        # Of somebody's builder no more is known than what it writes.
        asked = CandidatesRequest.parse(self.query(flavor).query_string())
        used: collections.Counter[str] = collections.Counter()
        for group in asked.groups.values():
            used.update(group.resources)
        return dict(used)

    def consumers(self, where: Any) -> Any:
        """The model of consumers that is configured: of a database, say, or of a session."""
        name = self._consumer_model
        model = plugins.load_classes(plugins.CONSUMER_MODELS, [name])[name]
        return model(where)

    def select(self, request: Request, count: int = 1) -> Selection:
        """Hosts for ``count`` servers, each chosen with the ones before it in place.

        Raises NoValidHost if there is not one for each. Changes nothing: see ``commit``.
        """
        if count < 1:
            raise errors.BadRequest(f"the number of servers is at least 1, not {count}")
        request = self._refreshed(request)
        hosts = host_states(self.cloud)
        rejected: list[Rejected] = []
        decisions: list[Decision] = []
        for index, name in enumerate(self._new_names(request.flavor.name, count)):
            request = dataclasses.replace(request, instance_uuid=self._new_uuid())
            filters = self.filters if index == 0 else self.filters_of_each_server
            hosts = self._filter(hosts, request, filters, rejected)
            decision = self._decide(name, self.filters, hosts, rejected, request)
            decisions.append(decision)
            if decision.server is None:
                raise NoValidHost(decisions, count)
            hosts = [
                state.with_servers(decision.server) if state.host == decision.server.host else state
                for state in hosts
            ]
            request = _with_member(request, decision.server)
        return Selection(self.cloud, tuple(decisions))

    def select_move(self, server: str) -> Selection:
        """Another host for a server that is there, as for a migration or an evacuation."""
        moving = self.cloud.server(server)
        request = self._request_of(moving, frozenset({moving.host}))
        states = host_states(self.cloud)
        candidates = [state for state in states if state.host not in request.ignore_hosts]
        return self._select_for(moving, candidates, request, self.filters)

    def select_rebuild(self, server: str) -> Selection:
        """The host of a server that is rebuilt where it is, if it may be.

        Only filters that run on rebuilds are asked: what holds for new servers need not hold for
        one that is there.
        """
        staying = self.cloud.server(server)
        filters = {name: each for name, each in self.filters.items() if each.RUN_ON_REBUILD}
        candidates = [state for state in host_states(self.cloud) if state.host == staying.host]
        return self._select_for(staying, candidates, self._request_of(staying), filters)

    def commit(self, selection: Selection) -> None:
        """Puts the servers where they were selected to be, if the cloud has not changed since."""
        if selection.cloud is not self.cloud:
            raise errors.Conflict(
                "the cloud has changed since these hosts were selected; select again"
            )
        there = self.cloud.servers
        cloud = self.cloud.with_servers(
            server for server in selection.servers if server.uuid not in there
        )
        for server in selection.servers:
            if server.uuid in there:
                cloud = cloud.with_moved(there[server.uuid], server.host)
        self.cloud = cloud

    def _check_supported(self, group: ServerGroup) -> None:
        multipliers = {name: weigher.multiplier() for name, weigher in self.weighers.items()}
        check_supported(group, self.filters, self.weighers, multipliers)

    def _refreshed(self, request: Request) -> Request:
        """The request with its group as it is now: servers may have joined since it was made."""
        if request.instance_group is None:
            return request
        group = self.cloud.server_group(request.instance_group.name)
        self._check_supported(group)
        return dataclasses.replace(request, instance_group=group)

    def _request_of(self, server: Server, ignore_hosts: frozenset[str] = frozenset()) -> Request:
        """The request for a server that is there, and does not count in its own group."""
        group = self.cloud.others_of(server)
        if group is not None:
            self._check_supported(group)
        return Request(server.flavor, group, server.uuid, ignore_hosts)

    def _select_for(
        self,
        server: Server,
        candidates: list[HostState],
        request: Request,
        filters: Mapping[str, Filter],
    ) -> Selection:
        rejected: list[Rejected] = []
        hosts = self._filter(candidates, request, filters, rejected)
        decision = self._decide(server.name, filters, hosts, rejected, request)
        if decision.server is None:
            raise NoValidHost([decision], 1)
        return Selection(self.cloud, (decision,))

    @property
    def filters_of_each_server(self) -> dict[str, Filter]:
        """The filters that are asked again for each further server of a request."""
        return {
            name: each
            for name, each in self.filters.items()
            if not each.run_filter_once_per_request
        }

    def _filter(
        self,
        hosts: list[HostState],
        request: Request,
        filters: Mapping[str, Filter],
        rejected: list[Rejected],
    ) -> list[HostState]:
        """The hosts that pass; what the others fell to is appended to ``rejected``."""
        for name, filter_ in filters.items():
            with plugins.blamed("filter", name):
                passed = list(filter_.filter_all(hosts, request))
            if len(passed) < len(hosts):
                kept = set(passed)
                fallen = tuple(state for state in hosts if state not in kept)
                rejected.append(Rejected(name, filter_, fallen, request))
            hosts = passed
        return hosts

    def _decide(
        self,
        name: str,
        filters: Iterable[str],
        hosts: list[HostState],
        rejected: list[Rejected],
        request: Request,
    ) -> Decision:
        weighed = self._weigh(hosts, request)
        server = None
        if weighed:
            best = weighed[: self._host_subset_size]
            chosen = best[0] if len(best) == 1 else self._random.choice(best)
            group = request.instance_group
            server = Server(
                request.instance_uuid,
                name,
                request.flavor,
                chosen.obj.host,
                None if group is None else group.name,
            )
        return Decision(request, tuple(filters), weighed, tuple(rejected), server)

    def _weigh(self, hosts: list[HostState], request: Request) -> list[Weighed]:
        """The hosts with their weights, best first; of equal ones, in their order."""
        plain = [Weighed(state) for state in hosts]
        columns = []
        for name, weigher in self.weighers.items():
            with plugins.blamed("weigher", name):
                raw = weigher.weigh_objects(plain, request)
                normalised = normalise(raw, weigher.minval, weigher.maxval)
                multipliers = [weigher.weight_multiplier(state) for state in hosts]
                if not all(map(math.isfinite, raw)):
                    raise ValueError("it gave a weight that is not a finite number")
            columns.append(map(Weight, itertools.repeat(name), raw, normalised, multipliers))
        rows = zip(*columns, strict=True) if columns else itertools.repeat(())
        weighed = [Weighed(state, weights) for state, weights in zip(hosts, rows, strict=False)]
        return sorted(weighed, key=lambda each: each.weight, reverse=True)

    def _new_names(self, flavor: str, count: int) -> Iterator[str]:
        taken = {server.name for server in self.cloud.servers.values()}
        names = (f"{flavor}-{number}" for number in itertools.count(1))
        return itertools.islice((name for name in names if name not in taken), count)

    def _new_uuid(self) -> str:
        while True:  # the servers of an earlier run may have been drawn from the same seed
            drawn = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
            if drawn not in self.cloud.servers:
                return drawn


def normalise(
    weights: Sequence[float], least: float | None = None, most: float | None = None
) -> list[float]:
    """The weights brought into the range from 0 to 1; all 0 where they are all equal."""
    if not weights:
        return []
    low = min(weights) if least is None else least
    high = max(weights) if most is None else most
    if low == high:
        return [0.0] * len(weights)
    return [(weight - low) / (high - low) for weight in weights]


def _with_member(request: Request, server: Server) -> Request:
    """The request for the next server, which sees this one in its group."""
    group = request.instance_group
    if group is None:
        return request
    return dataclasses.replace(
        request, instance_group=group.with_members({server.uuid: server.host})
    )
