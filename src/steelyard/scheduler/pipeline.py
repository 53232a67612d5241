"""The embedded filter scheduler: it filters and weighs hosts and chooses one for each server."""

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
from steelyard.cloud import Cloud, Server
from steelyard.cloud.host_state import HostState, Request, host_states
from steelyard.consumers import base
from steelyard.consumers.base import ConsumerModel
from steelyard.filters.base import FILTERS, Filter
from steelyard.filters.trial import TrialMode
from steelyard.groups import ServerGroup, check_supported
from steelyard.scheduler.decision import Decision, Rejected, Weighed, Weight
from steelyard.traits import CandidatesRequest
from steelyard.traits.requests import QUERY_BUILDERS
from steelyard.weighers.base import WEIGHERS, Weigher

_CAUSES_SHOWN = 10


class NoValidHost(errors.SteelyardError):
    """A server that no host fits.

    ``decisions`` has the decisions on the servers before it, and last the one on this server.
    ``count`` is the number of requested servers.
    """

    def __init__(self, decisions: Sequence[Decision], count: int) -> None:
        self.decisions = tuple(decisions)
        self.count = count
        super().__init__(self._message())

    @property
    def decision(self) -> Decision:
        """The decision on the server that no host fits."""
        return self.decisions[-1]

    def _message(self) -> str:
        failed = self.decision
        of = f" for server {len(self.decisions)} of {self.count}" if self.count > 1 else ""
        left = ", ".join(map(repr, sorted(failed.request.ignore_hosts)))
        ignored = f", not counting {left}" if left else ""
        lines = [
            f"no valid host{of}: 0 of {failed.considered} hosts fit "
            f"flavor {failed.request.flavor.name!r}{ignored}"
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
    """The hosts for the servers of one request; ``commit`` of the scheduler places the servers."""

    cloud: Cloud
    decisions: tuple[Decision, ...]

    @property
    def servers(self) -> tuple[Server, ...]:
        return tuple(decision.server for decision in self.decisions if decision.server)


class FilterScheduler:
    """A scheduler that places servers in a cloud, with the enabled filters and weighers."""

    def __init__(self, cloud: Cloud, conf: cfg.ConfigOpts | None = None) -> None:
        group = options.register(conf)
        self.cloud = cloud
        self._trial_mode = TrialMode(conf)
        self.filters: dict[str, Filter] = plugins.load(FILTERS, group.enabled_filters, conf)
        self.weighers: dict[str, Weigher] = plugins.load(WEIGHERS, group.enabled_weighers, conf)
        self._query_builder = group.query_builder
        self._query_builders = plugins.load_classes(QUERY_BUILDERS, [self._query_builder])
        self._consumer_model = group.consumer_model
        self.failure_domains: tuple[str, ...] = tuple(group.failure_domains)
        """The aggregate metadata keys that name failure domains, from near to far."""
        self._host_subset_size = group.host_subset_size
        self._random = random.Random(group.seed)
        options.warn_of_unknown(conf)

    def request(self, flavor: str, group: str | None = None) -> Request:
        """Return a request for servers of the named flavor, in the named server group if given.

        Raises NotFound if the cloud has no such flavor or group.
        """
        return Request(
            self.cloud.flavor(flavor), None if group is None else self.cloud.server_group(group)
        )

    def query(self, flavor: str, image: object = None) -> CandidatesRequest:
        """Return the request to Placement for hosts for a server of the named flavor.

        The enabled query builder writes it. ``image`` is the image of the server, if it matters.
        Raises PluginError if the builder fails.
        """
        found = [self.cloud.flavor(flavor)] + ([] if image is None else [image])
        with plugins.blamed(QUERY_BUILDERS, self._query_builder):
            query = self._query_builders[self._query_builder].from_flavor(*found).query_string()
        return CandidatesRequest.parse(query)

    def resources(self, flavor: str) -> dict[str, int]:
        """Return the amount of each resource class that a server of the named flavor uses."""
        used: collections.Counter[str] = collections.Counter()
        for group in self.query(flavor).groups.values():
            used.update(group.resources)
        return dict(used)

    def consumers(self, where: Any) -> ConsumerModel:
        """Return the configured consumer model for ``where``, such as a database or a session."""
        return base.load_model(self._consumer_model, where)

    def select(self, request: Request, count: int = 1) -> Selection:
        """Select hosts for ``count`` servers, each as if the ones before it were placed.

        Nothing changes until ``commit``. Raises BadRequest if ``count`` is less than 1, NoValidHost
        if no host fits one of the servers, and PolicyNotSupported if the group's policy needs a
        plugin that is not enabled.
        """
        if count < 1:
            raise errors.BadRequest(f"invalid number of servers {count}: expected at least 1")
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
        """Select another host for an existing server, as for a migration or an evacuation.

        Raises the errors of ``select``.
        """
        moving = self.cloud.server(server)
        request = self._request_of(moving, frozenset({moving.host}))
        states = host_states(self.cloud)
        candidates = [state for state in states if state.host not in request.ignore_hosts]
        return self._select_for(moving, candidates, request, self.filters)

    def select_rebuild(self, server: str) -> Selection:
        """Select the host of an existing server for a rebuild there, if it fits.

        Only filters that run on rebuilds are applied, because an existing server need not pass the
        filters for new ones. Raises the errors of ``select``.
        """
        staying = self.cloud.server(server)
        filters = {name: each for name, each in self.filters.items() if each.RUN_ON_REBUILD}
        candidates = [state for state in host_states(self.cloud) if state.host == staying.host]
        return self._select_for(staying, candidates, self._request_of(staying), filters)

    def commit(self, selection: Selection) -> None:
        """Place the servers on their selected hosts.

        Raises Conflict if the cloud has changed since the selection.
        """
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
        """Return the request with the present state of its group, which servers may have joined."""
        if request.instance_group is None:
            return request
        group = self.cloud.server_group(request.instance_group.name)
        self._check_supported(group)
        return dataclasses.replace(request, instance_group=group)

    def _request_of(self, server: Server, ignore_hosts: frozenset[str] = frozenset()) -> Request:
        """Return the request for an existing server, which is left out of its own group."""
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
        """The filters that are applied again for each further server of a request."""
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
        """Return the hosts that pass, and append those that a filter rejects to ``rejected``.

        A host that a filter on trial would reject is in both. If a filter on trial is applied
        again, its earlier answer is dropped.
        """
        rejected[:] = [each for each in rejected if not (each.on_trial and each.name in filters)]
        for name, filter_ in filters.items():
            with plugins.blamed(FILTERS, name):
                found = self._trial_mode.apply(name, filter_, hosts, request)
            states = tuple(found.rejected())
            if states:
                rejected.append(Rejected(name, filter_, states, request, found.on_trial))
            hosts = list(found.passed())
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
        return Decision(
            request,
            tuple(filters),
            weighed,
            tuple(each for each in rejected if not each.on_trial),
            server,
            tuple(each for each in rejected if each.on_trial),
        )

    def _weigh(self, hosts: list[HostState], request: Request) -> list[Weighed]:
        """Return the hosts with their weights, best first; hosts of equal weight keep order."""
        plain = [Weighed(state) for state in hosts]
        columns = []
        for name, weigher in self.weighers.items():
            with plugins.blamed(WEIGHERS, name):
                raw = weigher.weigh_objects(plain, request)
                normalised = normalise(raw, weigher.minval, weigher.maxval)
                multipliers = [weigher.weight_multiplier(state) for state in hosts]
                if not all(map(math.isfinite, raw)):
                    raise ValueError("expected finite numbers as weights")
            columns.append(map(Weight, itertools.repeat(name), raw, normalised, multipliers))
        rows = zip(*columns, strict=True) if columns else itertools.repeat(())
        weighed = [Weighed(state, weights) for state, weights in zip(hosts, rows, strict=False)]
        return sorted(weighed, key=lambda each: each.weight, reverse=True)

    def _new_names(self, flavor: str, count: int) -> Iterator[str]:
        taken = {server.name for server in self.cloud.servers.values()}
        names = (f"{flavor}-{number}" for number in itertools.count(1))
        return itertools.islice((name for name in names if name not in taken), count)

    def _new_uuid(self) -> str:
        while True:  # an earlier run may have had the same seed
            drawn = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
            if drawn not in self.cloud.servers:
                return drawn


def normalise(
    weights: Sequence[float], least: float | None = None, most: float | None = None
) -> list[float]:
    """Return the weights scaled to the range from 0 to 1; all 0 if they are all equal.

    ``least`` and ``most`` are scaled to 0 and 1 if they are given, instead of the lowest and the
    highest weight. Weights beyond them are not limited to the range.
    """
    if not weights:
        return []
    low = min(weights) if least is None else least
    high = max(weights) if most is None else most
    if low == high:
        return [0.0] * len(weights)
    return [(weight - low) / (high - low) for weight in weights]


def _with_member(request: Request, server: Server) -> Request:
    """Return the request for the next server, with this one in its group."""
    group = request.instance_group
    if group is None:
        return request
    return dataclasses.replace(
        request, instance_group=group.with_members({server.uuid: server.host})
    )
