"""The embedded filter scheduler: it filters and weighs hosts and chooses one for each server."""

import collections
import dataclasses
import random
import threading
import uuid
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from oslo_config import cfg

from steelyard import conf as options
from steelyard import errors, plugins
from steelyard.cloud import Cloud, Server
from steelyard.cloud.host_state import Request
from steelyard.consumers import base
from steelyard.consumers.base import ConsumerModel
from steelyard.filters.base import FILTERS, Filter
from steelyard.filters.trial import TrialMode
from steelyard.groups import ServerGroup, check_supported
from steelyard.scheduler.choosing import Choosing, FullChoosing, KeptAnswersChoosing
from steelyard.scheduler.decision import Decision
from steelyard.scheduler.examination import Examiner
from steelyard.scheduler.ranking import Draw
from steelyard.scheduler.working_cloud import WorkingCloud
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

    version: object
    """The version of the scheduler's cloud."""
    decisions: tuple[Decision, ...]

    @property
    def servers(self) -> tuple[Server, ...]:
        return tuple(decision.server for decision in self.decisions if decision.server)


class FilterScheduler:
    """A scheduler that places servers in a cloud, with the enabled filters and weighers.

    Answers of plugins are kept between requests, see :mod:`steelyard.scheduler.ranking`.
    """

    def __init__(
        self,
        cloud: Cloud,
        conf: cfg.ConfigOpts | None = None,
        *,
        are_all_filters_enforced: bool = False,
    ) -> None:
        """Load the plugins. If all filters are enforced, none is on trial."""
        group = options.register(conf)
        self.conf = conf
        """The configuration of the plugins; None is the global one."""
        self._trial_mode = TrialMode(conf, are_all_enforced=are_all_filters_enforced)
        self.filters: dict[str, Filter] = plugins.load(FILTERS, group.enabled_filters, conf)
        self.weighers: dict[str, Weigher] = plugins.load(WEIGHERS, group.enabled_weighers, conf)
        self._query_builder = group.query_builder
        self._query_builders = plugins.load_classes(QUERY_BUILDERS, [self._query_builder])
        self._consumer_model = group.consumer_model
        self.failure_domains: tuple[str, ...] = tuple(group.failure_domains)
        """The aggregate metadata keys that name failure domains, from near to far."""
        self._random = random.Random(group.seed)
        self._draw = Draw(group.host_subset_size, self._random)
        self._lock = threading.RLock()
        self.cloud = cloud
        options.warn_of_unknown(conf)

    @property
    def cloud(self) -> Cloud:
        """The cloud with all servers that were committed."""
        with self._lock:
            return self._working.cloud

    @cloud.setter
    def cloud(self, cloud: Cloud) -> None:
        with self._lock:
            self._working = WorkingCloud(cloud, self._lock)

    @property
    def _examiner(self) -> Examiner:
        return Examiner(self.filters, self.weighers, self._trial_mode)

    def alone(self) -> AbstractContextManager[object]:
        """Return a context in which no other thread selects hosts or changes the cloud."""
        return self._lock

    @property
    def version(self) -> object:
        """The version of the cloud, an object that another one replaces when the cloud changes."""
        return self._working.version

    def request(self, flavor: str, group: str | None = None) -> Request:
        """Return a request for servers of the named flavor, in the named server group if given.

        Raises NotFound if the cloud has no such flavor or group.
        """
        return Request(
            self._working.flavor(flavor),
            None if group is None else self._working.server_group(group),
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
        with self._lock, self._working.hosts.undone():
            request = self._refreshed(request)
            choosing = self._choosing(request)
            decisions: list[Decision] = []
            for name in self._working.free_names(request.flavor.name, count):
                request = dataclasses.replace(request, instance_uuid=self._new_uuid())
                new = Server(request.instance_uuid, name, request.flavor, "", _group_name(request))
                decisions.append(_decide(choosing, request, new))
                server = decisions[-1].server
                if server is None:
                    raise NoValidHost(decisions, count)
                self._working.hosts.place(server)
                request = _with_member(request, server)
            return Selection(self._working.version, tuple(decisions))

    def select_move(self, server: str) -> Selection:
        """Select another host for an existing server, as for a migration or an evacuation.

        Raises the errors of ``select``.
        """
        with self._lock:
            moving = self._working.server(server)
            request = self._request_of(moving, frozenset({moving.host}))
            return self._select_for(moving, request, self._choosing(request))

    def select_rebuild(self, server: str) -> Selection:
        """Select the host of an existing server for a rebuild there, if it fits.

        Only filters that run on rebuilds are applied, because an existing server need not pass the
        filters for new ones. Raises the errors of ``select``.
        """
        with self._lock:
            staying = self._working.server(server)
            hosts = self._working.hosts
            filters = {name: each for name, each in self.filters.items() if each.RUN_ON_REBUILD}
            choosing = FullChoosing(
                dataclasses.replace(self._examiner, filters=filters),
                hosts,
                [hosts.index[staying.host]],
                self._draw,
            )
            return self._select_for(staying, self._request_of(staying), choosing)

    def commit(self, selection: Selection) -> None:
        """Place the servers on their selected hosts.

        Raises Conflict if the cloud has changed since the selection or a UUID occurs twice, and
        NotFound if a host or a group is missing. Nothing changes then.
        """
        with self._lock:
            if selection.version is not self._working.version:
                raise errors.Conflict(
                    "the cloud has changed since these hosts were selected; select again"
                )
            self._working.check_new(selection.servers)
            for server in selection.servers:
                self._working.place(server)

    def check_supported(self, group: ServerGroup) -> None:
        """Raise PolicyNotSupported if the group's policy needs a plugin that is not enabled."""
        multipliers = {name: weigher.multiplier() for name, weigher in self.weighers.items()}
        check_supported(group, self.filters, self.weighers, multipliers)

    def _refreshed(self, request: Request) -> Request:
        """Return the request with the present state of its group, which servers may have joined."""
        if request.instance_group is None:
            return request
        group = self._working.server_group(request.instance_group.name)
        self.check_supported(group)
        return dataclasses.replace(request, instance_group=group)

    def _request_of(self, server: Server, ignore_hosts: frozenset[str] = frozenset()) -> Request:
        """Return the request for an existing server, which is left out of its own group."""
        group = self._working.others_of(server)
        if group is not None:
            self.check_supported(group)
        return Request(server.flavor, group, server.uuid, ignore_hosts)

    def _select_for(
        self,
        server: Server,
        request: Request,
        choosing: Choosing,
    ) -> Selection:
        decision = _decide(choosing, request, server)
        if decision.server is None:
            raise NoValidHost([decision], 1)
        return Selection(self._working.version, (decision,))

    def _choosing(self, request: Request) -> Choosing:
        """Return the choices for a request, with kept answers if that gives the same results."""
        hosts, examiner = self._working.hosts, self._examiner
        excluded = {hosts.index[name] for name in request.ignore_hosts if name in hosts.index}
        is_host_local = all(
            each.host_local or name in examiner.on_trial for name, each in self.filters.items()
        )
        if not is_host_local or examiner.trial_mode.logs_passing(self.filters):
            candidates = [index for index in range(len(hosts)) if index not in excluded]
            return FullChoosing(examiner, hosts, candidates, self._draw)
        self._working.rankings.forget_old()
        return KeptAnswersChoosing(
            examiner, self._working.rankings, frozenset(excluded), self._draw
        )

    def _new_uuid(self) -> str:
        while True:  # an earlier run may have had the same seed
            drawn = str(uuid.UUID(int=self._random.getrandbits(128), version=4))
            if drawn not in self._working.servers:
                return drawn


def _decide(choosing: Choosing, request: Request, server: Server) -> Decision:
    """Return the decision on the server, which gets the chosen host."""
    choice = choosing.choose(request)
    placed = None
    if choice.host is not None:
        placed = dataclasses.replace(server, host=choice.host.obj.host)
    return Decision(
        request,
        tuple(choosing.examiner.filters),
        choosing.considered,
        choice.fitting,
        choice.host,
        placed,
        choosing.examiner.on_trial,
        choice.examine,
    )


def _group_name(request: Request) -> str | None:
    return None if request.instance_group is None else request.instance_group.name


def _with_member(request: Request, server: Server) -> Request:
    """Return the request for the next server, with this one in its group."""
    group = request.instance_group
    if group is None:
        return request
    return dataclasses.replace(
        request, instance_group=group.with_members({server.uuid: server.host})
    )
