"""Reading everything that an answer is based on, apart from Placement."""

import functools
from collections.abc import Callable, Sequence
from typing import TypeVar

from steelyard import errors, microversions
from steelyard.analysis.why.facts import Facts, GivenRequest, ServerEvent
from steelyard.clients.cloud_clients import CloudClients
from steelyard.clients.compute import Compute
from steelyard.live.answers import SeenFlavor, SeenGroup
from steelyard.live.fetching import DETAILS_OF_SERVERS, Progress
from steelyard.live.why import actions, groups, images, servers, surroundings
from steelyard.live.why.assembling import Seen, facts_of
from steelyard.live.why.images import SeenImage
from steelyard.live.why.parts import Reading, at_once, readable
from steelyard.live.why.servers import RequestedServer
from steelyard.text import spelling

ClientT = TypeVar("ClientT")

_NEWEST = next(iter(DETAILS_OF_SERVERS))
"""The newest microversion whose data is read."""

_MISTAKES = (errors.NotFound, errors.BadRequest)
"""The errors for an option that names nothing, or several things."""

_HINTED = ("same_host", "different_host")
"""The hints whose values are UUIDs of servers."""


def look(
    clients: CloudClients, server: str | None, options: GivenRequest, watch: Progress
) -> Facts:
    """Return the facts about the server, and about the cloud around it.

    ``server`` is a name or a UUID; without one, ``options`` describe a request that was not made.
    Raises NotFound and BadRequest if a name or an option names nothing or several things, and other
    errors if the server, or the flavor of a request without a server, cannot be read. Other data
    that cannot be read is left out, with a message in ``not_known``.
    """
    if server is None and not options.flavor:
        raise errors.BadRequest("no request: name a server, or a flavor with --flavor")
    if options.boot_from_volume and not options.flavor:
        raise errors.BadRequest(
            "--boot-from-volume needs --flavor: Nova shows whether the server boots from a volume"
        )
    compute = clients.compute
    supported = compute.supported()
    microversion = min(supported, _NEWEST, key=microversions.number)
    requested = None if server is None else servers.find(compute, server, microversion)
    if requested is None or options.flavor:
        from_volume = options.boot_from_volume or (
            requested is not None and requested.seen.from_volume
        )
        flavor = _flavor(compute, options.flavor, root_on_volume=from_volume)
    else:
        flavor = requested.seen.flavor
    # The other parts are small. The progress is made here, since it depends on the context.
    hypervisors = watch(surroundings.hypervisors(compute), "hosts")
    parts = at_once(
        {
            "hypervisors": lambda: surroundings.listed_hosts(hypervisors),
            "aggregates": lambda: surroundings.aggregates(compute),
            "zones": lambda: _zones(compute, options),
            "image": lambda: _image(clients, requested, options),
            "group": lambda: _group(compute, requested, options, microversion),
            "events": lambda: _events(compute, requested, microversion),
            "siblings": lambda: _siblings(compute, requested, microversion),
        }
    )
    seen = Seen(
        supported=supported,
        requested=requested,
        flavor=flavor,
        not_known=[each for part in parts.values() for each in part.not_known],
        **{name: part.value for name, part in parts.items()},
    )
    return facts_of(seen, options)


def _flavor(compute: Compute, wanted: str, *, root_on_volume: bool) -> SeenFlavor:
    """Return the flavor of this name or id; raise NotFound if there is none."""
    parse = functools.partial(SeenFlavor.of, root_on_volume=root_on_volume)
    flavors = list(compute.by_marker("/flavors/detail", "flavors", parse, is_public="None"))
    for found in (
        [each for each in flavors if each.name == wanted],
        [each for each in flavors if each.uuid == wanted],
    ):
        if found:
            return found[0]
    names = [each.name for each in flavors]
    raise errors.NotFound(f"no flavor {wanted!r}{spelling.near(wanted, names)}", wanted)


def _zones(compute: Compute, options: GivenRequest) -> Reading[list[str] | None]:
    return surroundings.zones(compute) if options.availability_zone else Reading(None)


def _events(
    compute: Compute, requested: RequestedServer | None, microversion: str
) -> Reading[Sequence[ServerEvent] | None]:
    if requested is None:
        return Reading(())
    return actions.read(compute, requested.seen.uuid, microversion)


def _siblings(
    compute: Compute, requested: RequestedServer | None, microversion: str
) -> Reading[Sequence[str]]:
    """Return the UUIDs of the servers that have to be scheduled together with this one.

    Nova schedules servers that are requested together all at once, or none of them. If one is on a
    host, all were scheduled, and each of those that failed later is on its own.
    """
    what = "servers that were requested together with this one"
    if requested is None or not servers.waits_for_host(requested):
        return Reading(())
    if not requested.reservation:
        needs = f"the policy rule {groups.HOSTS_OF_SERVERS}"
        return Reading((), (f"{what}: reading them needs {needs}",))

    def read() -> list[str]:
        reservation = requested.reservation
        listed = servers.matching(compute, microversion, reservation_id=reservation)
        others = [
            each
            for each in listed
            if each.uuid != requested.seen.uuid and each.reservation == reservation
        ]
        if any(each.hidden_host for each in others):
            return []
        return [each.uuid for each in others if servers.waits_for_host(each)]

    return readable(what, read, ())


def _image(
    clients: CloudClients, requested: RequestedServer | None, options: GivenRequest
) -> Reading[SeenImage | None]:
    """Return the image as it is now; None without one, or if it cannot be read."""
    if options.image:
        return _observed(
            f"image {options.image!r}",
            "Glance",
            clients.images,
            lambda glance: images.named(glance, options.image),
            raises=_MISTAKES,
        )
    if requested is not None and requested.image:
        uuid = requested.image
        if images.recorded(requested.seen) is not None:
            return Reading(None)
        return _observed(
            f"traits and disk format of image {uuid}",
            "Glance",
            clients.images,
            lambda glance: glance.one(uuid, SeenImage.of),
        )
    if requested is not None and requested.seen.from_volume:
        volumes = requested.volumes
        return _observed(
            "properties and traits of the image on the boot volume",
            "Cinder",
            clients.volumes,
            lambda cinder: images.of_boot_volume(cinder, volumes),
        )
    return Reading(None)


def _observed(
    what: str,
    name: str,
    client: ClientT | None,
    read: Callable[[ClientT], SeenImage],
    raises: tuple[type[errors.SteelyardError], ...] = (),
) -> Reading[SeenImage | None]:
    if client is None:
        return Reading(
            None, (f"{what}: {name} is not in the service catalog for this region and interface",)
        )
    return readable(what, lambda: read(client), None, raises=raises)


def _group(
    compute: Compute,
    requested: RequestedServer | None,
    options: GivenRequest,
    microversion: str,
) -> Reading[groups.GroupAndServers]:
    """Return the group, and the hosts of the servers of the group and the hints."""
    hints = {} if requested is None else requested.seen.scheduler_hints
    uuid = "" if requested is None else _group_of(requested)
    wanted = options.group or uuid
    what = f"server group {wanted!r}"
    group: Reading[SeenGroup | None] = Reading(None)
    if options.group:
        group = readable(what, lambda: groups.named(compute, options.group), None, raises=_MISTAKES)
    elif uuid:
        group = readable(what, lambda: groups.of_uuid(compute, uuid), None)
    referred = {each for name in _HINTED for each in hints.get(name, ())}
    if group.value is not None:
        referred.update(group.value.members)
    if requested is not None:
        referred.discard(requested.seen.uuid)
    hosts = groups.hosts_of(compute, referred, microversion)
    return Reading(
        groups.GroupAndServers(wanted, group.value, hosts.value), group.not_known + hosts.not_known
    )


def _group_of(requested: RequestedServer) -> str:
    """Return the UUID of the group that the server is in, or was requested in; empty without."""
    found = [*(requested.groups or ()), *requested.seen.scheduler_hints.get("group", ())]
    return found[0] if found else ""
