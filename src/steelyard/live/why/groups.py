"""The server group of a request, and the hosts of the servers that the request refers to."""

import contextlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from steelyard import errors
from steelyard.clients.compute import Compute
from steelyard.groups import Policy, ServerGroup, parse_rules
from steelyard.live.answers import SeenGroup, SeenServer
from steelyard.live.at_once import each_answered
from steelyard.live.why.parts import Reading
from steelyard.text import spelling, uuids
from steelyard.text.wording import counted

HOSTS_OF_SERVERS = "os_compute_api:os-extended-server-attributes"
"""The policy rule that shows the hosts of servers."""


class GroupAndServers(NamedTuple):
    """The group of a request, and the hosts of the servers that the request refers to."""

    requested: str
    """The name or the UUID of the group; empty if no group is known to be requested."""
    group: SeenGroup | None
    """None if it cannot be read, too."""
    hosts: Mapping[str, str]
    """The compute services by UUID, as the facts have them."""


def named(compute: Compute, wanted: str) -> SeenGroup:
    """Return the group of this UUID or name.

    Raises NotFound if there is none, and BadRequest if several have the name.
    """
    uuid = uuids.canonical(wanted)
    if uuid is not None:
        try:
            return of_uuid(compute, uuid)
        except errors.NotFound:
            raise errors.NotFound(
                f"no server group {wanted!r} that these credentials show; it may be deleted", wanted
            ) from None
    groups = _groups(compute)
    found = [each for each in groups if each.name == wanted]
    if not found:
        names = [each.name for each in groups]
        raise errors.NotFound(f"no server group {wanted!r}{spelling.near(wanted, names)}", wanted)
    if len(found) > 1:
        listing = ", ".join(f"{each.uuid} ({each.policy})" for each in found)
        raise errors.BadRequest(
            f"{len(found)} server groups are named {wanted!r}: {listing}; name one by its UUID",
            wanted,
        )
    return found[0]


def _groups(compute: Compute) -> list[SeenGroup]:
    path, key = "/os-server-groups", "server_groups"
    with contextlib.suppress(errors.Forbidden):
        return list(compute.by_offset(path, key, SeenGroup.of, all_projects="True"))
    return list(compute.by_offset(path, key, SeenGroup.of))


def of_uuid(compute: Compute, uuid: str) -> SeenGroup:
    """Return the group of this UUID; raise NotFound if there is none."""
    return compute.one(f"/os-server-groups/{uuid}", "server_group", SeenGroup.of)


def group_of(seen: SeenGroup, without: Iterable[str]) -> ServerGroup:
    """Return the group without these servers; raise InvalidServerGroup if it is malformed."""
    policy = Policy.parse(seen.policy)
    members = frozenset(seen.members).difference(without)
    return ServerGroup(seen.name, policy, parse_rules(policy, seen.rules), members, uuid=seen.uuid)


def hosts_of(
    compute: Compute, servers: Iterable[str], microversion: str
) -> Reading[dict[str, str]]:
    """Return the compute services of the servers, by UUID.

    The name is empty for a server on no host, and missing if it cannot be read.
    """
    wanted = sorted(set(servers))

    def ask(uuid: str) -> str | errors.SteelyardError | None:
        """Return the host, None if Nova hides it, or the error."""
        try:
            seen = compute.one(f"/servers/{uuid}", "server", SeenServer.of, microversion)
        except errors.NotFound:
            return ""  # it was deleted, so it is on no host any more
        except errors.SteelyardError as error:
            return error
        return "" if seen.host is None else seen.host or None

    with contextlib.closing(each_answered(ask, wanted)) as answered:
        found = dict(zip(wanted, answered, strict=True))
    failed = [each for each in found.values() if isinstance(each, errors.SteelyardError)]
    not_known = []
    if failed:
        count = counted(len(failed), "server")
        not_known.append(f"hosts of {count} of the group or the hints: {failed[0]}")
    if None in found.values():
        not_known.append(
            f"hosts of the servers of the group or the hints: reading them needs the policy rule "
            f"{HOSTS_OF_SERVERS}"
        )
    hosts = {uuid: each for uuid, each in found.items() if isinstance(each, str)}
    return Reading(hosts, tuple(not_known))
