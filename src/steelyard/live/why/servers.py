"""The server that was not placed, as Nova shows it."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard import errors
from steelyard.analysis.why import stages
from steelyard.clients.compute import Compute
from steelyard.live import fields
from steelyard.live.answers import SeenServer
from steelyard.text import spelling, uuids

_UNPLACED = ("ERROR", "BUILD")
"""The statuses of servers that may be on no host."""

_MOST_NAMES = 500


@dataclasses.dataclass(frozen=True, slots=True)
class RequestedServer:
    """A server with what only the record of a single server shows."""

    seen: SeenServer
    status: str
    fault: str = ""
    hidden_host: str = ""
    """The id that stands for the host of the server; empty if it is on none."""
    failed_at: str = ""
    reservation: str = ""
    image: str = ""
    """The UUID of the image; empty for a server whose root disk is on a volume."""
    volumes: Sequence[str] = ()
    """The UUIDs of the attached volumes."""
    groups: Sequence[str] | None = None
    """The UUIDs of its groups; None if Nova does not show them."""
    zone: str | None = None
    """The requested availability zone; None if Nova does not show it."""

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "RequestedServer":
        fault = record.get("fault") or {}
        image = record.get("image") or {}
        groups = record.get("server_groups")
        attached = record.get("os-extended-volumes:volumes_attached") or []
        return cls(
            SeenServer.of(record),
            fields.read(record, "status", fields.text),
            _fault(record),
            fields.text(record.get("hostId") or ""),
            fields.text(fault.get("created") or ""),
            fields.text(record.get("OS-EXT-SRV-ATTR:reservation_id") or ""),
            fields.text(image.get("id") or ""),
            [fields.read(each, "id", fields.text) for each in attached],
            None if groups is None else fields.list_of_texts(groups),
            _zone(record),
        )


def _fault(record: Mapping[str, Any]) -> str:
    return fields.text((record.get("fault") or {}).get("message") or "").strip()


def _zone(record: Mapping[str, Any]) -> str | None:
    """Return the requested zone; None if it is not shown.

    Before microversion 2.96, Nova shows the requested zone of servers that are on no host, and the
    zone of the host of others.
    """
    if "pinned_availability_zone" in record:
        return fields.text(record["pinned_availability_zone"] or "")
    if record.get("hostId") == "":
        return fields.text(record.get("OS-EXT-AZ:availability_zone") or "")
    return None


@dataclasses.dataclass(frozen=True, slots=True)
class ListedServer:
    """A server as Nova lists it."""

    uuid: str
    name: str
    status: str
    project: str
    reservation: str
    hidden_host: str
    """The id that stands for the host of the server; empty if it is on none."""
    fault: str

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "ListedServer":
        return cls(
            fields.read(record, "id", fields.text),
            fields.text(record.get("name") or ""),
            fields.text(record.get("status") or ""),
            fields.text(record.get("tenant_id") or ""),
            fields.text(record.get("OS-EXT-SRV-ATTR:reservation_id") or ""),
            fields.text(record.get("hostId") or ""),
            _fault(record),
        )


def waits_for_host(server: RequestedServer | ListedServer) -> bool:
    """Return whether the server was never scheduled to a host."""
    if server.status not in _UNPLACED or server.hidden_host:
        return False
    return not server.fault or stages.lacked_hosts(server.fault)


def find(compute: Compute, wanted: str, microversion: str) -> RequestedServer:
    """Return the server of this UUID or name.

    Raises NotFound if there is none, and BadRequest if several have the name.
    """
    uuid = uuids.canonical(wanted) or _uuid_of(compute, wanted, microversion)
    try:
        return compute.one(f"/servers/{uuid}", "server", _reachable, microversion)
    except errors.NotFound:
        raise errors.NotFound(
            f"no server {wanted!r} that these credentials show; it may be deleted, or belong to "
            f"another project",
            wanted,
        ) from None


def _reachable(record: Mapping[str, Any]) -> RequestedServer:
    if record.get("status") == "UNKNOWN" and "name" not in record:
        raise errors.ServiceError(
            f"cannot read server {record.get('id')}: Nova's API cannot reach the cell that has it; "
            f"retry when the cell's database and message queue are reachable"
        )
    return RequestedServer.of(record)


def _uuid_of(compute: Compute, name: str, microversion: str) -> str:
    # Nova compares with a regular expression, and some databases ignore case.
    listed = matching(compute, microversion, name=f"^{re.escape(name)}$")
    found = {each.uuid: each for each in listed if each.name == name}
    if len(found) == 1:
        return next(iter(found))
    if found:
        listing = ", ".join(
            f"{each.uuid} ({each.status} in project {each.project})" for each in found.values()
        )
        raise errors.BadRequest(
            f"{len(found)} servers are named {name!r}: {listing}; name one by its UUID", name
        )
    raise errors.NotFound(
        f"no server {name!r} that these credentials show{_near(compute, name, microversion)}", name
    )


def _near(compute: Compute, name: str, microversion: str) -> str:
    """Return a suggestion from the first servers in ERROR; empty if it cannot be had."""
    try:
        failed = matching(compute, microversion, status="ERROR", limit=_MOST_NAMES)
    except errors.SteelyardError:
        return ""
    return spelling.suggestion(name, [each.name for each in failed])


def matching(compute: Compute, microversion: str, **query: Any) -> list[ListedServer]:
    """Return the servers of all visible projects that match; one page if a limit is given."""

    def listed(**more: Any) -> list[ListedServer]:
        path, key = "/servers/detail", "servers"
        if "limit" in query:
            return compute.listing(path, key, ListedServer.of, microversion, **query, **more)
        return list(compute.by_marker(path, key, ListedServer.of, microversion, **query, **more))

    try:
        return listed(all_tenants="1")
    except errors.Forbidden:
        return listed()
