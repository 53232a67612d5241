"""The consequences of a change: two clouds compared, before and after it.

The servers of hosts that go out of service get other hosts from the scheduler, as in an evacuation.
The cloud after the change is counted and checked with them in their new places.
"""

import collections
import dataclasses
import functools
from collections.abc import Collection, Hashable, Iterable, Iterator, Mapping
from typing import Any

from oslo_config import cfg

from steelyard import errors
from steelyard.analysis.capacity import HostRooms, Room
from steelyard.analysis.checks import check, fits
from steelyard.analysis.progress import Watching, unwatched
from steelyard.cloud import Cloud, Server
from steelyard.cloud.host_state import HostState, host_states
from steelyard.filters.in_service import InServiceFilter
from steelyard.findings import Check, Finding, Severity
from steelyard.scheduler import FilterScheduler, NoValidHost
from steelyard.scheduler.several import select_evacuation
from steelyard.text.wording import counted


@dataclasses.dataclass(frozen=True, slots=True)
class LimitingCause:
    """A cause that limits hosts more than before, and the number of these hosts."""

    cause: str
    hosts: int


@dataclasses.dataclass(frozen=True, slots=True)
class FlavorChange:
    """The hosts that fit a flavor, and how many more servers fit, before and after a change.

    The numbers are None in a cloud without the flavor.
    """

    flavor: str
    hosts_before: int | None
    hosts_after: int | None
    capacity_before: int | None
    capacity_after: int | None
    causes: tuple[LimitingCause, ...] = ()
    """The causes on the hosts with less room than before, the most frequent first."""
    fits_before: bytes = b""
    """1 for each host that fits and otherwise 0, in the order of the hosts after the change."""
    fits_after: bytes = b""

    @property
    def falls_to_0(self) -> bool:
        """Whether a number falls to 0."""
        return any(before and after == 0 for before, after in self._pairs())

    @property
    def decreases(self) -> bool:
        """Whether a number decreases, or the flavor is removed."""
        return any(
            before is not None and (after is None or after < before)
            for before, after in self._pairs()
        )

    @property
    def differs(self) -> bool:
        """Whether a number changes."""
        return any(before != after for before, after in self._pairs())

    def _pairs(self) -> tuple[tuple[int | None, int | None], ...]:
        return (
            (self.hosts_before, self.hosts_after),
            (self.capacity_before, self.capacity_after),
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Displaced:
    """A server of a host that goes out of service, and the host that it would get."""

    server: Server
    to: str


@dataclasses.dataclass(frozen=True, slots=True)
class Stranded:
    """A server of a host that goes out of service and that no other host fits."""

    server: Server
    cause: str
    """The most frequent cause of rejections."""


@dataclasses.dataclass(frozen=True, slots=True)
class NewlyMisplaced:
    """A server whose own host rejects it after the change, and did not before."""

    server: Server
    reason: str


@dataclasses.dataclass(frozen=True, slots=True)
class FindingChanges:
    """The findings that a change adds, and those that it resolves."""

    new: tuple[Finding, ...]
    resolved: tuple[Finding, ...]

    def of(self, *, violations: bool) -> "FindingChanges":
        """Return only the violations of group policies, or only the other findings."""
        return FindingChanges(
            *(
                tuple(each for each in found if _is_violation(each) == violations)
                for found in (self.new, self.resolved)
            )
        )


@dataclasses.dataclass(frozen=True, slots=True)
class Consequences:
    """The differences between a cloud before and after a change."""

    before: Cloud
    after: Cloud
    """The changed cloud, with the displaced servers in their new places."""
    flavors: tuple[FlavorChange, ...]
    """The flavors with different numbers."""
    displaced: tuple[Displaced, ...]
    stranded: tuple[Stranded, ...]
    misplaced: tuple[NewlyMisplaced, ...]
    findings: FindingChanges

    def worse(self, *, strict: bool = False) -> list[str]:
        """Return the deteriorations as text; if strict, any decrease of a number is one."""
        no_host = sum(each.falls_to_0 for each in self.flavors)
        less = sum(each.decreases for each in self.flavors) if strict else 0
        violations = self.findings.of(violations=True).new
        others = self.findings.of(violations=False).new
        error_count = sum(each.severity is Severity.ERROR for each in others)
        return [
            text
            for count, text in (
                (no_host, f"{counted(no_host, 'flavor')} without a host"),
                (less, f"{counted(less, 'flavor')} with fewer hosts or less room"),
                (len(self.stranded), f"{counted(len(self.stranded), 'server')} without a host"),
                (len(self.misplaced), counted(len(self.misplaced), "misplaced server")),
                (len(violations), counted(len(violations), "new violation")),
                (error_count, counted(error_count, "new error")),
            )
            if count
        ]

    def is_worse(self, *, strict: bool = False) -> bool:
        """Return whether something is worse; if strict, any decrease of a number is."""
        return bool(self.worse(strict=strict))


class Baseline:
    """A cloud before changes, with the answers that all of its changes need."""

    def __init__(self, cloud: Cloud, conf: cfg.ConfigOpts | None = None) -> None:
        self.cloud = cloud
        self.conf = conf
        self._findings: list[Finding] | None = None

    def findings(self, watch: Watching = unwatched) -> list[Finding]:
        """Return the findings of the checks, which are run once."""
        if self._findings is None:
            self._findings = check(self.cloud, self.conf, watch)
        return self._findings

    @functools.cached_property
    def hosts(self) -> Mapping[str, HostState]:
        """The states of the hosts, by name."""
        return {state.host: state for state in host_states(self.cloud)}

    @functools.cached_property
    def rooms(self) -> HostRooms:
        """The room of the hosts."""
        return HostRooms(FilterScheduler(self.cloud, self.conf), self.hosts.values())


def consequences(
    baseline: Baseline,
    after: Cloud,
    watch: Watching = unwatched,
    missing: Collection[str] = frozenset(),
) -> Consequences:
    """Return the consequences of a change that turns the cloud of the baseline into the other.

    Both clouds have the same servers on the same hosts, and the second one has all of the hosts of
    the first; those in ``missing`` are only there until their servers have moved. Raises BadRequest
    if hosts go out of service although InServiceFilter is not enabled, and PluginError if a filter
    or a weigher fails.
    """
    before, conf = baseline.cloud, baseline.conf
    displaced, stranded, settled = _settled(before, after, conf, missing)
    # Servers without a host violate no policy, and hosts that no longer exist need no flavor.
    left = settled.without_servers([each.server.uuid for each in stranded])
    checked = dataclasses.replace(
        left, hosts={name: each for name, each in left.hosts.items() if name not in missing}
    )
    findings = _difference(baseline.findings(watch), check(checked, conf, watch))
    return Consequences(
        before,
        settled,
        tuple(each for each in _flavors(baseline, settled, watch) if each.differs),
        displaced,
        stranded,
        tuple(
            NewlyMisplaced(settled.servers[each.details["uuid"]], each.details["reason"])
            for each in findings.new
            if each.check is Check.MISPLACED_SERVER
        ),
        findings,
    )


def _settled(
    before: Cloud, after: Cloud, conf: cfg.ConfigOpts | None, missing: Collection[str]
) -> tuple[tuple[Displaced, ...], tuple[Stranded, ...], Cloud]:
    """Return the servers that must move, those that cannot, and the cloud after the moves."""
    gone = {
        name
        for name, host in before.hosts.items()
        if name in missing or (after.hosts[name].out_of_service and not host.out_of_service)
    }
    if not gone:
        return (), (), after
    scheduler = FilterScheduler(after, conf, are_all_filters_enforced=True)
    if InServiceFilter not in map(type, scheduler.filters.values()):
        raise errors.BadRequest(
            "hosts go out of service, but InServiceFilter is not enabled, so that they would still "
            "get servers: add it to enabled_filters"
        )
    found = select_evacuation(scheduler, gone)
    scheduler.commit(found.selection)
    return (
        tuple(
            Displaced(before.servers[server.uuid], server.host)
            for server in found.selection.servers
        ),
        tuple(
            Stranded(before.servers[uuid], _main_cause(error))
            for uuid, error in found.stranded.items()
        ),
        scheduler.cloud,
    )


def _main_cause(error: NoValidHost) -> str:
    """Return the most frequent cause; of several, the one of the filter that runs last."""
    order = list(error.decision.filters)
    ranked = sorted(
        error.decision.causes, key=lambda each: (each.count, order.index(each.filter)), reverse=True
    )
    return f"{ranked[0].filter}: {ranked[0].cause}" if ranked else "there are no other hosts"


def _flavors(baseline: Baseline, after: Cloud, watch: Watching) -> Iterator[FlavorChange]:
    """Yield the numbers of all flavors of both clouds."""
    before, rooms = baseline.cloud, _RoomsAfter(baseline, after)
    for flavor in watch([*{**before.flavors, **after.flavors}], "flavors"):
        there = _by_host(baseline.rooms, flavor) if flavor in before.flavors else None
        then = rooms.of(flavor, there) if flavor in after.flavors else None
        yield FlavorChange(
            flavor,
            _fitting(there),
            _fitting(then),
            _capacity(there),
            _capacity(then),
            _causes(there, then),
            _hosts_that_fit(after, there),
            _hosts_that_fit(after, then),
        )


class _RoomsAfter:
    """The room on the hosts after a change; only hosts that change are counted."""

    def __init__(self, baseline: Baseline, after: Cloud) -> None:
        self._flavors_before = baseline.cloud.flavors
        self._flavors = after.flavors
        self._scheduler = scheduler = FilterScheduler(after, baseline.conf)
        self._are_kept = all(each.host_local for each in scheduler.filters.values())
        self._hosts = host_states(after)
        before = baseline.hosts
        changed = [
            state
            for state in self._hosts
            if state.host not in before or not _is_same(before[state.host], state)
        ]
        self._rooms_of_changed = HostRooms(scheduler, changed)

    def of(self, flavor: str, before: Mapping[str, Room] | None) -> Mapping[str, Room]:
        """Return the room on each host; ``before`` is the room before the change."""
        is_same = self._flavors_before.get(flavor) == self._flavors[flavor]
        if before is not None and is_same and self._are_kept:
            return {**before, **_by_host(self._rooms_of_changed, flavor)}
        return _by_host(self._rooms, flavor)

    @functools.cached_property
    def _rooms(self) -> HostRooms:
        return HostRooms(self._scheduler, self._hosts)


def _is_same(before: HostState, after: HostState) -> bool:
    """Return whether filters that are host-local answer the same for a host in both states."""
    return (
        before.kind == after.kind
        and before.uuid == after.uuid
        and before.instances == after.instances
    )


def _by_host(rooms: HostRooms, flavor: str) -> dict[str, Room]:
    return {room.host: room for room in rooms.of(flavor).rooms}


def _fitting(rooms: Mapping[str, Room] | None) -> int | None:
    return None if rooms is None else sum(room.more > 0 for room in rooms.values())


def _hosts_that_fit(cloud: Cloud, rooms: Mapping[str, Room] | None) -> bytes:
    """Return 1 for each host that has room, in the order of the cloud's hosts, and otherwise 0."""
    found = {} if rooms is None else rooms
    return bytes(host in found and found[host].more > 0 for host in cloud.hosts)


def _capacity(rooms: Mapping[str, Room] | None) -> int | None:
    return None if rooms is None else sum(room.more for room in rooms.values())


def _causes(
    before: Mapping[str, Room] | None, after: Mapping[str, Room] | None
) -> tuple[LimitingCause, ...]:
    if before is None or after is None:
        return ()
    counts = collections.Counter(
        after[host].verdict.cause for host, room in before.items() if after[host].more < room.more
    )
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple(LimitingCause(cause, hosts) for cause, hosts in ranked)


def _difference(before: Iterable[Finding], after: Iterable[Finding]) -> FindingChanges:
    """Return the findings that are new or worse, and those that are resolved."""
    sides = (list(before), list(after))
    earlier, later = (
        {key: value for each in found for key, value in _parts(each).items()} for found in sides
    )
    identities = {(each.check, each.subject) for each in sides[1]}
    new, resolved = [], []
    for each in sides[1]:
        parts = _parts(each)
        worse = [key for key in parts if key not in earlier or parts[key] > earlier[key]]
        if worse:
            new.append(_of_hosts(each, worse))
    for each in sides[0]:
        gone = [key for key in _parts(each) if key not in later]
        if each.check is Check.UNREACHABLE_HOST and gone:
            resolved.append(_of_hosts(each, gone))
        elif each.check is not Check.UNREACHABLE_HOST and (
            (each.check, each.subject) not in identities
        ):
            resolved.append(each)
    return FindingChanges(tuple(new), tuple(resolved))


def _parts(finding: Finding) -> dict[Hashable, float]:
    """Return the parts of a finding that may be there without the others.

    The number of a part says how bad it is.
    """
    details, identity = finding.details, (finding.check, finding.subject)
    match finding.check:
        case Check.UNREACHABLE_HOST:
            return dict.fromkeys(((finding.check, host) for host in details["hosts"]), 0.0)
        case Check.GROUP_VIOLATION:
            return dict.fromkeys(((*identity, each["uuid"]) for each in details["servers"]), 0.0)
        case Check.OVERCOMMITTED_HOST:
            return {
                (*identity, each["resource_class"]): each["allocated"] - each["limit"]
                for each in details["resources"]
            }
    return {identity: 0.0}


def _of_hosts(finding: Finding, parts: Iterable[Any]) -> Finding:
    """Return the finding about these parts only, if it is about unreachable hosts."""
    if finding.check is not Check.UNREACHABLE_HOST:
        return finding
    hosts = [host for _, host in parts]
    return fits.unreachable(hosts, finding.details["nearest_flavor"], finding.details["reasons"])


def _is_violation(finding: Finding) -> bool:
    return finding.check is Check.GROUP_VIOLATION


def as_dict(found: Consequences, *, strict: bool = False) -> dict[str, Any]:
    """Return the consequences as a dictionary, for output in JSON and YAML."""
    violations = found.findings.of(violations=True)
    others = found.findings.of(violations=False)
    return {
        "summary": {
            "hosts": len(found.after.hosts),
            "flavors": len(found.after.flavors),
            "worse": found.is_worse(strict=strict),
        },
        "flavors": list(map(_numbers, found.flavors)),
        "displaced": [{**_placed(each.server), "to": each.to} for each in found.displaced],
        "stranded": [{**_placed(each.server), "cause": each.cause} for each in found.stranded],
        "misplaced": [
            {**_identity(each.server), "host": each.server.host, "reason": each.reason}
            for each in found.misplaced
        ],
        "violations": _both(violations),
        "findings": _both(others),
    }


def _numbers(change: FlavorChange) -> dict[str, Any]:
    found = dataclasses.asdict(change)
    return {key: value for key, value in found.items() if not isinstance(value, bytes)}


def _placed(server: Server) -> dict[str, Any]:
    return {**_identity(server), "from": server.host}


def _identity(server: Server) -> dict[str, Any]:
    return {"server": server.name, "uuid": server.uuid, "flavor": server.flavor.name}


def _both(difference: FindingChanges) -> dict[str, Any]:
    return {
        "new": [each.as_dict() for each in difference.new],
        "resolved": [each.as_dict() for each in difference.resolved],
    }
