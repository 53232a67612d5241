"""The names of hosts, which compute services and their nodes share."""

import collections
from collections.abc import Iterable, Sequence

from steelyard.live.answers import Hypervisor, SeenServer


class Places:
    """The names of hosts, found by compute service and node."""

    def __init__(self, hypervisors: Sequence[Hypervisor]) -> None:
        services = collections.Counter(each.host for each in hypervisors)
        self.names = own_names(
            (each.uuid, each.host if services[each.host] == 1 else each.node)
            for each in hypervisors
        )
        self._of_service: dict[str, list[str]] = {}
        self._of_node: dict[tuple[str, str], str] = {}
        for each in hypervisors:
            name = self.names[each.uuid]
            self._of_service.setdefault(each.host, []).append(name)
            self._of_node[each.host, each.node] = name

    def of_service(self, host: str) -> list[str]:
        """Return the names of the service's hosts, one per node."""
        return sorted(self._of_service.get(host, []))

    def of_server(self, server: SeenServer) -> str | None:
        """Return the name of the server's host, or None if it is on no known host."""
        if server.host is None:
            return None
        names = self._of_service.get(server.host, [])
        return names[0] if len(names) == 1 else self._of_node.get((server.host, server.node))


def own_names(wanted: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Return a unique, printable name for each UUID.

    That is the wanted name if it is printable and no other UUID wants it, and otherwise the name
    with the UUID appended, or the UUID alone.
    """
    by_uuid = dict(wanted)
    counts = collections.Counter(by_uuid.values())
    plain = {name for name, count in counts.items() if count == 1 and name and name.isprintable()}
    names = {}
    for uuid, name in by_uuid.items():
        own = name
        if name not in plain:
            own = f"{name} ({uuid})" if name and name.isprintable() else uuid
            while own in plain:
                own += f" ({uuid})"
        names[uuid] = own
    return names
