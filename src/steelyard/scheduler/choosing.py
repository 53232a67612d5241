"""The choice of a host for each server of a request."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol

from steelyard import plugins
from steelyard.cloud.host_state import HostState, Request
from steelyard.filters.base import FILTERS, Filter
from steelyard.scheduler.decision import Examined, Rejected, Weighed
from steelyard.scheduler.examination import Examiner
from steelyard.scheduler.hosts import Hosts, Version
from steelyard.scheduler.ranking import Draw, PluginSet, Ranking, Rankings
from steelyard.weighers.base import WEIGHERS, Weigher


@dataclasses.dataclass(frozen=True)
class AnswerPlan:
    """The plugins by how their answers to a request are kept."""

    by_kind: PluginSet
    by_host: PluginSet
    asked: PluginSet

    @property
    def of_hosts(self) -> bool:
        """Whether a plugin must be asked about single hosts."""
        return bool(self.by_host or self.asked)


class Choice(NamedTuple):
    """The choice of a host for one server; ``host`` is None if no host fits."""

    host: Weighed | None
    fitting: int
    """The number of hosts that fit."""
    examine: Callable[[], Examined]
    """A function that returns the answers of all plugins about all hosts."""


class Choosing(Protocol):
    """The choices for the servers of one request, one after another."""

    @property
    def examiner(self) -> Examiner:
        """The plugins that choose."""

    @property
    def considered(self) -> int:
        """The number of hosts that are candidates."""

    def choose(self, request: Request) -> Choice:
        """Return the host for the next server. The hosts have the servers before it."""


class FullChoosing:
    """Choices for which every plugin is asked about every host."""

    def __init__(
        self,
        examiner: Examiner,
        hosts: Hosts,
        candidates: Sequence[int],
        draw: Draw,
    ) -> None:
        self.considered = len(candidates)
        self.examiner = examiner
        self._hosts = hosts
        self._left = candidates
        self._draw = draw
        self._filters: Mapping[str, Filter] = examiner.filters
        self._rejected: list[Rejected] = []

    def choose(self, request: Request) -> Choice:
        states = [self._hosts.version[index] for index in self._left]
        passed = self.examiner.filtered(states, request, self._filters, self._rejected, logs=True)
        self._left = [self._hosts.index[state.host] for state in passed]
        self._filters = self.examiner.filters_of_each_server
        examined = self.examiner.examined(passed, request, self._rejected)
        best = examined.weighed[: self._draw.size]
        host = self._draw.one_of(best) if best else None
        return Choice(host, len(passed), lambda: examined)


class KeptAnswersChoosing:
    """Choices with the kept answers, for filters that are all host-local.

    A host that is rejected for one server is no candidate for the next ones.
    """

    def __init__(
        self,
        examiner: Examiner,
        rankings: Rankings,
        excluded: frozenset[int],
        draw: Draw,
    ) -> None:
        self._hosts = hosts = rankings.hosts
        self.considered = len(hosts) - len(excluded)
        self.examiner = examiner
        self._rankings = rankings
        self._excluded = excluded
        self._draw = draw
        self._enforced = {
            name: each for name, each in examiner.filters.items() if name not in examiner.on_trial
        }
        self._multipliers = [weigher.multiplier() for weigher in examiner.weighers.values()]
        self._first: _Moment | None = None
        self._rejected: dict[int, Request] = {}

    def choose(self, request: Request) -> Choice:
        moment = _Moment(self._hosts.version, request, dict(self._rejected))
        plan = self._plan(request)
        ranking = self._shared(request, plan) or self._ranking(request, plan)
        self._first = first = self._first or moment
        found = ranking.choose(
            plan.asked,
            self.examiner.weighers,
            request,
            self._excluded.union(self._rejected),
            self._draw,
        )
        if found is None:
            examined = self._examined(first, moment, logs=True)
            return Choice(None, 0, lambda: examined)
        self._rejected |= dict.fromkeys(found.rejected, request)
        chosen = Weighed(self._hosts.version[found.host], found.weights)
        return Choice(chosen, found.fitting, lambda: self._examined(first, moment, logs=False))

    def _ranking(self, request: Request, plan: AnswerPlan) -> Ranking:
        """Return the ranking with the kept answers of the plan."""
        of_hosts = plan.of_hosts or self._hosts.kinds.mostly_differ
        ranking = self._rankings.of(
            request, plan.by_kind, plan.by_host, self._multipliers, of_hosts=of_hosts
        )
        ranking.refresh(request)
        return ranking

    def _shared(self, request: Request, plan: AnswerPlan) -> Ranking | None:
        """Return the ranking for the flavor alone if it suits a request with a server group.

        Answers by kind depend on the flavor only. So requests for all groups share one ranking, in
        which more plugins answer by kind, unless it lacks hosts that such a filter rejects.
        """
        if type(request) is not Request or request.instance_group is None:
            return None
        plain = Request(request.flavor)
        of_flavor = self._plan(plain)
        kept = of_flavor.by_kind
        if (
            of_flavor.by_host
            or of_flavor.asked
            or not (
                plan.by_kind.filters.keys() <= kept.filters.keys()
                and plan.by_kind.weighers.keys() <= kept.weighers.keys()
            )
        ):
            return None
        ranking = self._ranking(plain, AnswerPlan(kept, of_flavor.by_host, plan.asked))
        more = kept.filters.keys() - plan.by_kind.filters.keys()
        return ranking if ranking.rejecting.isdisjoint(more) else None

    def _plan(self, request: Request) -> AnswerPlan:
        """Return how the answers to the request are kept.

        A filter that is applied once for each request is asked about the first server only.
        """
        is_plain = (
            type(request) is Request  # a subclass may have more fields, which are read as well
            and request.instance_group is None
            and not request.ignore_hosts
        )
        by_kind, by_host, asked = PluginSet({}, {}), PluginSet({}, {}), PluginSet({}, {})
        for name, filter_ in self._enforced.items():
            once = filter_.run_filter_once_per_request
            with plugins.blamed(FILTERS, name):
                if filter_.by_kind(request):
                    by_kind.filters[name] = filter_
                elif is_plain and not once:
                    by_host.filters[name] = filter_
                elif self._first is None or not once:
                    asked.filters[name] = filter_
        for name, weigher in self.examiner.weighers.items():
            with plugins.blamed(WEIGHERS, name):
                if type(weigher).weight_multiplier is not Weigher.weight_multiplier:
                    asked.weighers[name] = weigher  # its multipliers may change at any time
                elif weigher.by_kind(request):
                    by_kind.weighers[name] = weigher
                elif is_plain and weigher.host_local:
                    by_host.weighers[name] = weigher
                else:
                    asked.weighers[name] = weigher
        return AnswerPlan(by_kind, by_host, asked)

    def _examined(self, first: "_Moment", moment: "_Moment", *, logs: bool) -> Examined:
        """Return the answers of all plugins at this moment of the request.

        All filters are applied to the first server. The hosts that passed then are examined for
        this server.
        """
        examiner, rejected = self.examiner, list[Rejected]()
        states = first.version.states()
        candidates = [state for index, state in enumerate(states) if index not in self._excluded]
        passed = examiner.filtered(
            candidates, first.request, examiner.filters, rejected, logs=logs and moment is first
        )
        if moment is not first:
            states = moment.version.states()
            passed = examiner.filtered(
                [states[self._hosts.index[state.host]] for state in passed],
                moment.request,
                examiner.filters_of_each_server,
                rejected,
                logs=logs,
            )
            passed = self._without_rejected(passed, moment, rejected)
        return examiner.examined(passed, moment.request, rejected)

    def _without_rejected(
        self, passed: list[HostState], moment: "_Moment", rejected: list[Rejected]
    ) -> list[HostState]:
        """Return the hosts without those that were rejected for a server in between.

        They pass now only if a filter contradicts its answer for a smaller group.
        """
        left = []
        for state in passed:
            request = moment.rejected.get(self._hosts.index[state.host])
            again: list[Rejected] = []
            if request is None or self.examiner.filtered(
                [state], request, self.examiner.filters_of_each_server, again, logs=False
            ):
                left.append(state)
            rejected += [each for each in again if not each.on_trial]
        return left


@dataclasses.dataclass(frozen=True)
class _Moment:
    """The time before a server is placed."""

    version: Version
    request: Request
    rejected: Mapping[int, Request]
    """The hosts that were rejected since the first server, with the request at that time."""
