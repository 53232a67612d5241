"""Conversion of the data read from a live cloud into the facts of an answer."""

import dataclasses
from collections.abc import Callable, Collection, Sequence
from typing import Any, TypeVar

from steelyard import errors, microversions
from steelyard.analysis.why.facts import Facts, GivenRequest, ServerEvent, ServerRecord
from steelyard.cloud import Flavor
from steelyard.cloud.wanted import Source, WantedServer
from steelyard.live.answers import Hypervisor, SeenAggregate, SeenFlavor
from steelyard.live.fetching import DETAILS_OF_SERVERS
from steelyard.live.places import Places
from steelyard.live.why import images, surroundings
from steelyard.live.why.groups import GroupAndServers, group_of
from steelyard.live.why.images import SeenImage
from steelyard.live.why.servers import RequestedServer
from steelyard.text import spelling

_NEVER_SHOWN = (
    "networks of the request, and the bandwidth and packet rates that their ports require (QoS): "
    "Nova does not show them",
    "PCI devices of ports, and the aggregates of routed networks: Nova does not show them",
)
_HOST = "a host that the request named or forced: Nova does not show it; supply it with --host"
_EXTRA_SPECS = "os_compute_api:servers:show:flavor-extra-specs"
_EXTRA_SPECS_OF_FLAVORS = "os_compute_api:os-flavor-extra-specs:index"

_HINTS_SINCE, _PROPERTIES_SINCE, _ZONES_SINCE = DETAILS_OF_SERVERS
_GROUPS_SINCE = "2.71"

SeenT = TypeVar("SeenT")
ValueT = TypeVar("ValueT")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Data of a live cloud; a part is None if it is not readable, or not part of the request."""

    supported: str
    """The newest microversion of the Nova."""
    requested: RequestedServer | None
    flavor: SeenFlavor
    hypervisors: Sequence[Hypervisor] | None
    aggregates: Sequence[SeenAggregate] | None
    zones: Collection[str] | None
    image: SeenImage | None
    group: GroupAndServers
    events: Sequence[ServerEvent] | None
    siblings: Sequence[str]
    """The UUIDs of the other servers that were requested together and are not placed."""
    not_known: Sequence[str]


@dataclasses.dataclass(frozen=True, slots=True)
class _Known:
    """One field of the request, with its source, or with the reason why it is not known."""

    value: Any
    source: Source | None = None
    not_known: tuple[str, ...] = ()


def facts_of(seen: Seen, options: GivenRequest) -> Facts:
    """Return the facts; raise NotFound if an option names a host or a zone that does not exist."""
    places = Places(seen.hypervisors or ())
    known = {
        "flavor": _flavor(seen, options),
        "image_properties": _image_properties(seen, options),
        "disk_format": _disk_format(seen, options),
        "from_volume": _from_volume(seen, options),
        "project": _project(seen, options),
        "availability_zone": _zone(seen, options),
        "host": _host(seen, options, places),
        "scheduler_hints": _hints(seen),
        "group": _group(seen, options),
        "count": _count(seen),
    }
    sources = {name: each.source for name, each in known.items() if each.source}
    if seen.image is not None:
        sources["image traits"] = Source.NOW
    elif _recorded(seen, options) is not None:
        sources["image traits"] = Source.RECORD
    values = {name: each.value for name, each in known.items()}
    return Facts(
        wanted=WantedServer(**values, sources=sources),
        record=_record(seen),
        hosts=_optional(seen.hypervisors, surroundings.known_hosts, places),
        aggregates=_optional(seen.aggregates, surroundings.known_aggregates, places),
        server_hosts=seen.group.hosts,
        group_known=not (seen.group.requested or known["group"].not_known)
        or known["group"].value is not None,
        nova_microversion=seen.supported,
        not_known=[
            *seen.not_known,
            *(message for each in known.values() for message in each.not_known),
            *_never_shown(seen, options),
        ],
    )


def _never_shown(seen: Seen, options: GivenRequest) -> Sequence[str]:
    if seen.requested is None:
        return ()
    return _NEVER_SHOWN if options.host else (_HOST, *_NEVER_SHOWN)


def _optional(
    seen: SeenT | None, known: Callable[[SeenT, Places], ValueT], places: Places
) -> ValueT | None:
    return None if seen is None else known(seen, places)


def _record(seen: Seen) -> ServerRecord | None:
    requested = seen.requested
    if requested is None:
        return None
    failed = [each.at for each in seen.events or () if each.result == "Error"]
    actions = [each.action for each in seen.events or () if not each.event]
    return ServerRecord(
        uuid=requested.seen.uuid,
        name=requested.seen.name,
        status=requested.status,
        host=requested.seen.host or requested.hidden_host,
        fault=requested.fault,
        failed_at=requested.failed_at or max(failed, default=""),
        last_action=next(reversed(actions), ""),
        events=tuple(seen.events or ()),
    )


def _flavor(seen: Seen, options: GivenRequest) -> _Known:
    specs = seen.flavor.extra_specs
    policy = _EXTRA_SPECS_OF_FLAVORS if options.flavor else _EXTRA_SPECS
    hidden = f"extra specs of the flavor: reading them needs the policy rule {policy}"
    return _Known(
        Flavor(
            seen.flavor.name,
            seen.flavor.vcpus,
            seen.flavor.ram_mb,
            seen.flavor.disk_gb,
            dict(specs or {}),
        ),
        Source.NOW if options.flavor else Source.RECORD,
        (hidden,) if specs is None else (),
    )


def _image_properties(seen: Seen, options: GivenRequest) -> _Known:
    """Return the properties of the image, with those that require traits.

    Most releases show the properties as they were, but without those that require traits.
    """
    image, requested = seen.image, seen.requested
    recorded = _recorded(seen, options)
    if recorded is not None:
        return _Known(recorded.properties, Source.RECORD)
    of_record = requested is not None and bool(requested.image) and not options.image
    if requested is not None and of_record and _shows(seen, _PROPERTIES_SINCE):
        traits = {} if image is None else image.traits
        return _Known({**requested.seen.image_properties, **traits}, Source.RECORD)
    if image is not None:
        return _Known(image.properties, Source.NOW)
    if of_record:
        return _Known({}, None, (_needs("image properties", _PROPERTIES_SINCE, seen),))
    return _Known({})


def _recorded(seen: Seen, options: GivenRequest) -> SeenImage | None:
    if seen.requested is None or options.image:
        return None
    return images.recorded(seen.requested.seen)


def _disk_format(seen: Seen, options: GivenRequest) -> _Known:
    recorded = _recorded(seen, options)
    if recorded is not None:
        return _Known(recorded.disk_format, Source.RECORD)
    if seen.image is None:
        return _Known("")
    return _Known(seen.image.disk_format, Source.NOW)


def _from_volume(seen: Seen, options: GivenRequest) -> _Known:
    if options.boot_from_volume:
        return _Known(True, Source.OPTION)
    if seen.requested is None:
        return _Known(False)
    return _Known(seen.requested.seen.from_volume, Source.RECORD)


def _project(seen: Seen, options: GivenRequest) -> _Known:
    if options.project:
        return _Known(options.project, Source.OPTION)
    if seen.requested is None:
        return _Known("", None, ("project of the request: supply it with --project",))
    return _Known(seen.requested.seen.project, Source.RECORD)


def _zone(seen: Seen, options: GivenRequest) -> _Known:
    wanted = options.availability_zone
    if wanted:
        if seen.zones is not None and wanted not in seen.zones:
            raise errors.NotFound(
                f"no availability zone {wanted!r}{spelling.near(wanted, seen.zones)}", wanted
            )
        return _Known(wanted, Source.OPTION)
    if seen.requested is None:
        return _Known("")
    if seen.requested.zone is None:
        needs = _needs("requested availability zone", _ZONES_SINCE, seen)
        return _Known("", None, (f"{needs}; supply it with --availability-zone",))
    return _Known(seen.requested.zone, Source.RECORD)


def _host(seen: Seen, options: GivenRequest, places: Places) -> _Known:
    wanted = options.host
    if wanted:
        names = {*places.names.values(), *(each.host for each in seen.hypervisors or ())}
        if seen.hypervisors is not None and wanted not in names:
            raise errors.NotFound(
                f"no host {wanted!r}{spelling.near(wanted, sorted(names))}", wanted
            )
        return _Known(wanted, Source.OPTION)
    return _Known("")


def _hints(seen: Seen) -> _Known:
    if seen.requested is None:
        return _Known({})
    if not _shows(seen, _HINTS_SINCE):
        return _Known({}, None, (_needs("scheduler hints", _HINTS_SINCE, seen),))
    return _Known(seen.requested.seen.scheduler_hints, Source.RECORD)


def _group(seen: Seen, options: GivenRequest) -> _Known:
    """Return the group without the servers of the request, and with the hosts of the others."""
    requested, group = seen.requested, seen.group.group
    if group is None:
        if requested is None or options.group or requested.groups is not None:
            return _Known(None)
        needs = _needs("server group", _GROUPS_SINCE, seen)
        return _Known(None, None, (f"{needs}; supply it with --group",))
    own = set() if requested is None else {requested.seen.uuid, *seen.siblings}
    try:
        known = group_of(group, own)
    except errors.InvalidServerGroup as error:
        return _Known(None, None, (f"server group {group.name!r}: {error}",))
    hosts = {seen.group.hosts.get(uuid, "") for uuid in known.members} - {""}
    return _Known(dataclasses.replace(known, hosts=frozenset(hosts)), Source.NOW)


def _count(seen: Seen) -> _Known:
    return _Known(1 + len(seen.siblings), Source.RECORD if seen.requested else None)


def _shows(seen: Seen, since: str) -> bool:
    return microversions.reaches(seen.supported, since)


def _needs(what: str, since: str, seen: Seen) -> str:
    """Return the message about something that only a newer Nova shows."""
    return f"{what}: needs microversion {since}, and this Nova supports up to {seen.supported}"
