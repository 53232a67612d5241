"""The selection of hosts for the servers of several requests, and of several failed hosts."""

import dataclasses
import itertools
from collections.abc import Collection, Iterator, Mapping, Sequence

from steelyard.cloud import Cloud, Server, model
from steelyard.cloud.files.request_file import WantedServers
from steelyard.scheduler.decision import Decision
from steelyard.scheduler.pipeline import FilterScheduler, NoValidHost, Selection
from steelyard.text.wording import counted


class NoValidHostForRequest(NoValidHost):
    """A server of one of several requests that no host fits, so that none of them is placed."""

    def __init__(self, error: NoValidHost, number: int, requests: Sequence[WantedServers]) -> None:
        """Initialise the error. ``number`` is the number of the request among them, from 1."""
        super().__init__(error.decisions, error.count)
        self.number = number
        self.wanted = requests[number - 1]
        self.add_note(
            f"request {number} of {len(requests)}, {_described(self.wanted)}, has no valid host: "
            f"no server of any request was placed"
        )


def select_all(scheduler: FilterScheduler, requests: Sequence[WantedServers]) -> Selection:
    """Select hosts for the servers of all requests, each as if the ones before it were placed.

    Nothing changes until ``commit``. Raises the errors of ``FilterScheduler.select``, and
    NoValidHostForRequest as NoValidHost.
    """
    with scheduler.alone():
        cloud = scheduler.cloud
        taken = {server.name for server in cloud.servers.values()}
        taken.update(name for wanted in requests for name in wanted.own_names())
        free: dict[str, Iterator[str]] = {}
        decisions: list[Decision] = []
        try:
            for number, wanted in enumerate(requests, 1):
                request = scheduler.request(wanted.flavor, wanted.group)
                try:
                    selection = scheduler.select(request, wanted.count)
                except NoValidHost as error:
                    raise NoValidHostForRequest(error, number, requests) from error
                names = wanted.own_names()
                if not names:
                    unused = free.setdefault(wanted.flavor, _free_names(wanted.flavor, taken))
                    names = list(itertools.islice(unused, wanted.count))
                named = _named(selection, names)
                scheduler.commit(named)
                decisions += named.decisions
        finally:
            scheduler.cloud = cloud
        return Selection(scheduler.version, tuple(decisions))


@dataclasses.dataclass(frozen=True)
class Evacuation:
    """New hosts for servers, in ``selection``, and the errors of those that no host fits."""

    selection: Selection
    stranded: Mapping[str, NoValidHost]
    """The errors by the UUID of the server."""


def select_evacuation(scheduler: FilterScheduler, hosts: Collection[str]) -> Evacuation:
    """Select other hosts for all servers of these hosts, each as if the ones before it had moved.

    The largest servers come first: by RAM, vCPUs and disk. None of these hosts is a candidate, and
    none counts as a host of a server group, so that a group with the policy ``affinity`` can move.
    Nothing changes until ``commit``. Raises NotFound if a host is missing.
    """
    with scheduler.alone():
        cloud = scheduler.cloud
        for host in hosts:
            model.known("host", host, cloud.hosts)
        leaving = [server for server in cloud.servers.values() if server.host in hosts]
        decisions: list[Decision] = []
        stranded: dict[str, NoValidHost] = {}
        scheduler.cloud = _without(cloud, hosts)
        try:
            for server in sorted(leaving, key=_largest_first):
                try:
                    selection = scheduler.select_move(server.uuid)
                except NoValidHost as error:
                    stranded[server.uuid] = error
                else:
                    scheduler.commit(selection)
                    decisions += selection.decisions
        finally:
            scheduler.cloud = cloud
        return Evacuation(Selection(scheduler.version, tuple(decisions)), stranded)


def _largest_first(server: Server) -> tuple[int, int, int, str]:
    flavor = server.flavor
    return -flavor.memory_mb, -flavor.vcpus, -flavor.root_gb, server.uuid


def _without(cloud: Cloud, hosts: Collection[str]) -> Cloud:
    """Return the cloud without these hosts, in which the servers on them have still to be moved."""
    return dataclasses.replace(
        cloud,
        hosts={name: host for name, host in cloud.hosts.items() if name not in hosts},
        aggregates={
            name: dataclasses.replace(
                each, hosts=tuple(host for host in each.hosts if host not in hosts)
            )
            for name, each in cloud.aggregates.items()
        },
        server_groups={
            name: dataclasses.replace(each, hosts=each.hosts.difference(hosts))
            for name, each in cloud.server_groups.items()
        },
    )


def _free_names(flavor: str, taken: Collection[str]) -> Iterator[str]:
    """Yield the names for servers of the flavor that are not taken, each one once."""
    for number in itertools.count(1):
        name = f"{flavor}-{number}"
        if name not in taken:
            yield name


def _named(selection: Selection, names: Sequence[str]) -> Selection:
    """Return the selection with these names of its servers."""
    return Selection(
        selection.version,
        tuple(
            dataclasses.replace(
                decision,
                server=decision.server and dataclasses.replace(decision.server, name=name),
            )
            for decision, name in zip(selection.decisions, names, strict=True)
        ),
    )


def _described(wanted: WantedServers) -> str:
    of = f"{counted(wanted.count, 'server')} of flavor {wanted.flavor!r}"
    group = "" if wanted.group is None else f" in group {wanted.group!r}"
    return f"{'' if wanted.name is None else f'{wanted.name!r}, '}{of}{group}"
