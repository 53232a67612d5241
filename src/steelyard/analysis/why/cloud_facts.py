"""The facts of an answer that is computed from a cloud file."""

import dataclasses
from collections.abc import Mapping

from steelyard import errors
from steelyard.analysis.why.facts import Facts, GivenRequest, ServerRecord
from steelyard.analysis.why.local import known_aggregates, known_hosts
from steelyard.cloud import Aggregate, Cloud, Server, model
from steelyard.cloud.wanted import Source, WantedServer

_ZONE = "availability_zone"
_DEFAULT_ZONE = "nova"
# The fields that a cloud file states of a request by options, and of one for a server.
_DESCRIBED = ("flavor", "group")
_RECORDED = (
    *_DESCRIBED,
    "availability_zone",
    "project",
    "image_properties",
    "scheduler_hints",
)


def without(cloud: Cloud, server: str | None) -> Cloud:
    """Return the cloud without the server, if one is given; raise NotFound if it is missing."""
    return cloud if server is None else cloud.without_servers([cloud.server(server).uuid])


def facts_of(cloud: Cloud, server: str | None, given: GivenRequest) -> Facts:
    """Return the facts about a request in the cloud.

    With a server, it is the request for that server, as if it were created now and had not been
    there. Raises NotFound for an unknown name, and BadRequest for an option that a cloud file
    cannot answer.
    """
    if given.image:
        raise errors.BadRequest(
            f"--image {given.image!r} needs --os-cloud: a cloud file has no images", given.image
        )
    if given.boot_from_volume:
        raise errors.BadRequest(
            "--boot-from-volume needs --os-cloud: a cloud file does not tell the root disk of a "
            "flavor from its other disks; name a flavor without the root disk"
        )
    known = None if server is None else cloud.server(server)
    rest = without(cloud, server)
    wanted = _wanted(rest, known, given)
    return Facts(
        wanted=wanted,
        record=None if known is None else ServerRecord(uuid=known.uuid, name=known.name, status=""),
        hosts=known_hosts(cloud),
        aggregates=known_aggregates(cloud),
        server_hosts=_server_hosts(rest, wanted),
        not_known=["networks, PCI devices and other demands that a cloud file does not describe"],
    )


def _wanted(cloud: Cloud, server: Server | None, given: GivenRequest) -> WantedServer:
    if server is None and not given.flavor:
        raise errors.BadRequest("missing --flavor: name the flavor of the server")
    if given.availability_zone:
        model.known("availability zone", given.availability_zone, _zones(cloud.aggregates))
    if given.host:
        model.known("host", given.host, cloud.hosts)
    if server is None:
        wanted = WantedServer(flavor=cloud.flavor(given.flavor))
    else:
        wanted = WantedServer(
            flavor=cloud.flavor(given.flavor) if given.flavor else server.flavor,
            group=None if server.group is None else cloud.server_group(server.group),
            availability_zone=server.availability_zone,
            project=server.project,
            image_properties=server.image_properties,
            scheduler_hints=server.scheduler_hints,
        )
    options = ("availability_zone", "host", "project")
    return dataclasses.replace(
        wanted,
        group=cloud.server_group(given.group) if given.group else wanted.group,
        availability_zone=given.availability_zone or wanted.availability_zone,
        host=given.host,
        project=given.project or wanted.project,
        sources={
            **dict.fromkeys(_DESCRIBED if server is None else _RECORDED, Source.FILE),
            **{name: Source.OPTION for name in options if getattr(given, name)},
        },
    )


def _zones(aggregates: Mapping[str, Aggregate]) -> dict[str, Aggregate]:
    """Return an aggregate of each zone; that of the hosts in no other zone has none."""
    zones = {each.metadata[_ZONE]: each for each in aggregates.values() if _ZONE in each.metadata}
    return {_DEFAULT_ZONE: Aggregate("", {}, ()), **zones}


def _server_hosts(cloud: Cloud, wanted: WantedServer) -> dict[str, str]:
    """Return the hosts of the servers that the request refers to, by UUID."""
    hinted = [
        uuid
        for hint in ("same_host", "different_host")
        for uuid in wanted.scheduler_hints.get(hint, ())
    ]
    members = () if wanted.group is None else wanted.group.members
    return {uuid: cloud.servers[uuid].host for uuid in (*members, *hinted) if uuid in cloud.servers}
