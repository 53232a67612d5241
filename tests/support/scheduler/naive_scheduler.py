"""A scheduler that asks every plugin about every host for each server, as a reference."""

import collections
import dataclasses
import random
import uuid
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from steelyard.cloud import Cloud, Server
from steelyard.cloud.host_state import HostState, host_states
from steelyard.scheduler import FilterScheduler, Request
from steelyard.scheduler.decision import Weighed


@dataclasses.dataclass
class NaiveChoice:
    """The choice for one server, with the weight of each host that fits, best first."""

    server: Server | None
    weights: list[tuple[str, float]]
    rejections: dict[str, tuple[str, str]]
    """The filter that rejected each other host, and its reason."""
    trials: dict[str, dict[str, str]]
    """The hosts that each filter on trial would have rejected, with the reasons."""


class NaiveScheduler:
    """The reference for the choices of a FilterScheduler with the same plugins.

    It begins with the random numbers of the seed, draws them in the same order, and examines all
    hosts again for each server.
    """

    def __init__(
        self,
        scheduler: FilterScheduler,
        seed: int,
        size: int,
        trial_filters: Collection[str] = (),
    ) -> None:
        self.cloud: Cloud = scheduler.cloud
        self._filters = scheduler.filters
        self._weighers = scheduler.weighers
        self._random = random.Random(seed)
        self._size = size
        self._on_trial = trial_filters

    def select(self, flavor: str, group: str | None, count: int) -> list[NaiveChoice]:
        """Return the choices for the servers of a request; the last one may have no server."""
        hosts = host_states(self.cloud)
        found = self.cloud.server_groups[group] if group else None
        request = Request(self.cloud.flavors[flavor], found)
        taken = {server.name for server in self.cloud.servers.values()}
        number, choices, rejections = 1, [], dict[str, tuple[str, str]]()
        trials: dict[str, dict[str, str]] = {}
        for index in range(count):
            while f"{flavor}-{number}" in taken:
                number += 1
            taken.add(f"{flavor}-{number}")
            drawn = uuid.UUID(int=self._random.getrandbits(128), version=4)
            request = dataclasses.replace(request, instance_uuid=str(drawn))
            filters = {
                name: each
                for name, each in self._filters.items()
                if index == 0 or not each.run_filter_once_per_request
            }
            hosts = self._filtered(filters, hosts, request, rejections, trials)
            weighed = self._weighed(hosts, request)
            choice = NaiveChoice(None, weighed, dict(rejections), dict(trials))
            choices.append(choice)
            if not weighed:
                return choices
            best = weighed[: self._size]
            host = best[0][0] if len(best) == 1 else self._random.choice(best)[0]
            choice.server = server = Server(
                request.instance_uuid, f"{flavor}-{number}", request.flavor, host, group
            )
            hosts = [state.with_servers(server) if state.host == host else state for state in hosts]
            if found is not None and request.instance_group is not None:
                grown = request.instance_group.with_members({server.uuid: host})
                request = dataclasses.replace(request, instance_group=grown)
        return choices

    def select_move(self, server: Server) -> NaiveChoice:
        """Return the choice of another host for the server."""
        request = Request(
            server.flavor, self.cloud.others_of(server), server.uuid, frozenset({server.host})
        )
        hosts = [state for state in host_states(self.cloud) if state.host != server.host]
        rejections = dict[str, tuple[str, str]]()
        trials: dict[str, dict[str, str]] = {}
        hosts = self._filtered(self._filters, hosts, request, rejections, trials)
        choice = NaiveChoice(None, self._weighed(hosts, request), rejections, trials)
        best = choice.weights[: self._size]
        if best:
            host = best[0][0] if len(best) == 1 else self._random.choice(best)[0]
            choice.server = dataclasses.replace(server, host=host)
        return choice

    def commit(self, choices: Iterable[NaiveChoice]) -> None:
        """Place the servers."""
        for choice in choices:
            server = choice.server
            if server is not None and server.uuid in self.cloud.servers:
                self.cloud = self.cloud.with_moved(self.cloud.servers[server.uuid], server.host)
            elif server is not None:
                self.cloud = self.cloud.with_servers([server])

    def _weighed(self, hosts: list[HostState], request: Request) -> list[tuple[str, float]]:
        totals = collections.defaultdict[str, float](float)
        for weigher in self._weighers.values():
            raw = list(weigher.weigh_objects([Weighed(state) for state in hosts], request))
            low = min(raw, default=0.0) if weigher.minval is None else weigher.minval
            high = max(raw, default=0.0) if weigher.maxval is None else weigher.maxval
            for state, weight in zip(hosts, raw, strict=True):
                normalised = (weight - low) / (high - low) if high != low else 0.0
                totals[state.host] += normalised * weigher.weight_multiplier(state)
        order = sorted(hosts, key=lambda state: totals[state.host], reverse=True)
        return [(state.host, totals[state.host]) for state in order]

    def _filtered(
        self,
        filters: Mapping[str, Any],
        hosts: list[HostState],
        request: Request,
        rejections: dict[str, tuple[str, str]],
        trials: dict[str, dict[str, str]],
    ) -> list[HostState]:
        for name, filter_ in filters.items():
            verdicts = [(state, filter_.examine(state, request)) for state in hosts]
            rejected = {
                state.host: verdict.reason for state, verdict in verdicts if not verdict.passed
            }
            if name in self._on_trial:
                trials[name] = rejected
            else:
                rejections.update((host, (name, reason)) for host, reason in rejected.items())
                hosts = [state for state in hosts if state.host not in rejected]
        return hosts
