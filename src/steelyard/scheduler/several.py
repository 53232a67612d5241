"""The selection of hosts for the servers of several requests, and of several lost hosts."""

import dataclasses
import itertools
from collections.abc import Collection, Mapping, Sequence

from steelyard.cloud import Cloud, Server, model
from steelyard.cloud.files.request_file import WantedServers
from steelyard.scheduler.decision import Decision
from steelyard.scheduler.pipeline import FilterScheduler, NoValidHost, Selection
from steelyard.text.wording import counted


def select_all(scheduler: FilterScheduler, requests: Sequence[WantedServers]) -> Selection:
    """Select hosts for the servers of all requests, each as if the ones before it were placed.

    Nothing changes until ``commit``. Raises the errors of ``FilterScheduler.select``; a note of
    NoValidHost names the request.
    """
    with scheduler.alone():
        cloud = scheduler.cloud
        taken = {server.name for server in cloud.servers.values()}
        taken.update(name for wanted in requests for name in wanted.own_names())
        decisions: list[Decision] = []
        try:
            for number, wanted in enumerate(requests, 1):
                request = scheduler.request(wanted.flavor, wanted.group)
                try:
                    selection = scheduler.select(request, wanted.count)
                except NoValidHost as error:
                    error.add_note(
                        f"request {number} of {len(requests)}, {_described(wanted)}, has no valid "
                        f"host: no server of any request was placed"
                    )
                    raise
                named = _named(selection, wanted, taken)
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

    The largest servers come first: by RAM, vCPUs and disk. None of these hosts is a candidate.
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
    """Return the cloud without these hosts. Their servers stay until they are moved."""
    return dataclasses.replace(
        cloud,
        hosts={name: host for name, host in cloud.hosts.items() if name not in hosts},
        aggregates={
            name: dataclasses.replace(
                each, hosts=tuple(host for host in each.hosts if host not in hosts)
            )
            for name, each in cloud.aggregates.items()
        },
    )


def _named(selection: Selection, wanted: WantedServers, taken: set[str]) -> Selection:
    """Return the selection with the names of the request, or else with names not taken."""
    numbered = (f"{wanted.flavor}-{number}" for number in itertools.count(1))
    names = wanted.own_names() or list(
        itertools.islice((name for name in numbered if name not in taken), wanted.count)
    )
    taken.update(names)
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
