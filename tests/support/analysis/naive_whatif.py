"""The consequences of a change, from two full runs that share nothing, as a reference."""

import collections
import dataclasses
from collections.abc import Collection
from typing import Any

from oslo_config import cfg

from steelyard.analysis.capacity import HostRooms
from steelyard.analysis.checks import check
from steelyard.analysis.fitting import Fitting
from steelyard.analysis.placed_servers import misplaced
from steelyard.cloud import Cloud, Server
from steelyard.findings import Check, Finding, SubjectKind
from steelyard.groups import ServerGroup
from steelyard.scheduler import FilterScheduler
from support.scheduler.naive_scheduler import NaiveScheduler


@dataclasses.dataclass
class NaiveConsequences:
    """The consequences of a change, as plain values."""

    flavors: dict[str, tuple[int | None, int | None, int | None, int | None]]
    """The hosts before and after, and the room before and after; only where they differ."""
    causes: dict[str, dict[str, int]]
    moved: list[tuple[str, str]]
    stranded: set[str]
    misplaced: set[str]
    new: set[Any]
    """The check and the subject of each new or worse finding; of unreachable hosts, each one."""
    resolved: set[Any]
    worse: bool
    worse_if_strict: bool


def naive_consequences(
    before: Cloud, after: Cloud, conf: cfg.ConfigOpts, missing: Collection[str]
) -> NaiveConsequences:
    """Return the consequences, computed for each of the clouds from the start."""
    gone = {
        name
        for name, host in after.hosts.items()
        if name in missing
        or (host.out_of_service and name in before.hosts and not before.hosts[name].out_of_service)
    }
    settled, moved, stranded = _evacuated(after, gone, conf)
    numbers, causes = {}, {}
    for flavor in {**before.flavors, **after.flavors}:
        there, then = (_rooms(cloud, flavor, conf) for cloud in (before, settled))
        numbers[flavor] = (_fitting(there), _fitting(then), _sum(there), _sum(then))
        if there is not None and then is not None:
            fewer = [host for host, (more, _) in there.items() if then[host][0] < more]
            causes[flavor] = dict(collections.Counter(then[host][1] for host in fewer))
    left = settled.without_servers(stranded)
    left = dataclasses.replace(
        left, hosts={name: host for name, host in left.hosts.items() if name not in missing}
    )
    found, later = _findings(before, conf), _findings(left, conf)
    wrong = {each.server.uuid for each in misplaced(Fitting(left, conf))} - {
        each.server.uuid for each in misplaced(Fitting(before, conf))
    }
    new = {key for key, each in later.items() if key not in found or _is_worse(found[key], each)}
    known = [each for each in numbers.values() if None not in each]
    worse = bool(
        stranded
        or wrong - stranded
        or any((a and not b) or (c and not d) for a, b, c, d in known)
        or any(_is_bad(later[each]) for each in new)
    )
    return NaiveConsequences(
        {name: each for name, each in numbers.items() if each[0] != each[1] or each[2] != each[3]},
        causes,
        moved,
        stranded,
        wrong - stranded,
        set(new),
        set(found.keys() - later.keys()),
        worse,
        worse
        or any(a is not None and (b is None or b < a or d < c) for a, b, c, d in numbers.values()),  # type: ignore[operator]
    )


def _findings(cloud: Cloud, conf: cfg.ConfigOpts) -> dict[Any, Finding]:
    """Return the findings by check and subject, those about unreachable hosts by host."""
    found: dict[Any, Finding] = {}
    for each in check(cloud, conf):
        if each.check is Check.UNREACHABLE_HOST:
            found.update(((each.check, host), each) for host in each.details["hosts"])
        else:
            found[each.check, each.subject] = each
    return found


def _is_worse(before: Finding, after: Finding) -> bool:
    """Return whether a finding is about more servers, or about larger amounts."""
    servers = [
        {each["uuid"] for each in side.details.get("servers", ())} for side in (before, after)
    ]
    excesses = [
        {
            each["resource_class"]: each["allocated"] - each["limit"]
            for each in side.details.get("resources", ())
        }
        for side in (before, after)
    ]
    return bool(servers[1] - servers[0]) or any(
        excess > excesses[0].get(name, 0) for name, excess in excesses[1].items()
    )


def _is_bad(finding: Finding) -> bool:
    return finding.subject.kind is SubjectKind.GROUP or finding.severity == "error"


def _evacuated(
    cloud: Cloud, gone: set[str], conf: cfg.ConfigOpts
) -> tuple[Cloud, list[tuple[str, str]], set[str]]:
    """Return the cloud after the moves, the moves in their order, and the servers that cannot."""
    leaving = sorted(
        (server for server in cloud.servers.values() if server.host in gone),
        key=lambda server: (
            -server.flavor.memory_mb,
            -server.flavor.vcpus,
            -server.flavor.root_gb,
            server.uuid,
        ),
    )
    moved, stranded = [], set()
    for server in leaving:
        left = _only_hosts(cloud, set(cloud.hosts) - gone)
        naive = NaiveScheduler(FilterScheduler(left, conf), seed=0, size=1)
        naive.cloud = left
        chosen = naive.select_move(server).server
        if chosen is None:
            stranded.add(server.uuid)
        else:
            moved.append((server.uuid, chosen.host))
            cloud = cloud.with_moved(cloud.servers[server.uuid], chosen.host)
    return cloud, moved, stranded


def _only_hosts(cloud: Cloud, hosts: set[str]) -> Cloud:
    """Return the cloud with these hosts, their servers, and groups that are only on them."""
    return _Left(
        {name: cloud.hosts[name] for name in cloud.hosts if name in hosts},
        {
            name: dataclasses.replace(each, hosts=tuple(h for h in each.hosts if h in hosts))
            for name, each in cloud.aggregates.items()
        },
        cloud.flavors,
        {
            name: dataclasses.replace(
                group,
                hosts=frozenset(
                    server.host
                    for server in cloud.servers.values()
                    if server.group == name and server.host in hosts
                ),
            )
            for name, group in cloud.server_groups.items()
        },
        {uuid: each for uuid, each in cloud.servers.items() if each.host in hosts},
    )


class _Left(Cloud):
    """A cloud whose groups still have the servers that have to move."""

    def others_of(self, server: Server) -> ServerGroup | None:
        if server.group is None:
            return None
        group = self.server_group(server.group)
        return dataclasses.replace(group, members=group.members - {server.uuid})


def _rooms(cloud: Cloud, flavor: str, conf: cfg.ConfigOpts) -> dict[str, tuple[int, str]] | None:
    if flavor not in cloud.flavors:
        return None
    found = HostRooms(FilterScheduler(cloud, conf)).of(flavor)
    return {room.host: (room.more, room.verdict.cause) for room in found.rooms}


def _fitting(rooms: dict[str, tuple[int, str]] | None) -> int | None:
    return None if rooms is None else sum(more > 0 for more, _ in rooms.values())


def _sum(rooms: dict[str, tuple[int, str]] | None) -> int | None:
    return None if rooms is None else sum(more for more, _ in rooms.values())
