"""Reading of request files: lists of servers to place in a cloud."""

import dataclasses
import os
from collections.abc import Iterator, Sequence
from typing import IO, Any

from steelyard.cloud.files import entries, loading, syntax
from steelyard.cloud.files.syntax import Mistake
from steelyard.cloud.model import Cloud

MOST_SERVERS = 100_000
"""The most servers of one request."""


@dataclasses.dataclass(frozen=True, slots=True)
class WantedServers:
    """One request: servers of the same flavor, in the same server group."""

    flavor: str
    count: int = 1
    group: str | None = None
    name: str | None = None

    def own_names(self) -> list[str]:
        """Return the names of the servers, as in Nova; empty if the request gives no name."""
        if self.name is None:
            return []
        if self.count == 1:
            return [self.name]
        return [f"{self.name}-{number}" for number in range(1, self.count + 1)]


def load(path: str | os.PathLike[str], cloud: Cloud) -> list[WantedServers]:
    """Return the requests in a YAML or JSON file, for servers in this cloud.

    Raises InvalidCloud if the file is invalid, or if it names a flavor or server group that the
    cloud does not have, or a server that it has.
    """

    def read(file: IO[str], name: str) -> list[WantedServers]:
        content = syntax.parsed(file, name)
        with syntax.placing_mistakes(file, name, entries.numbered("request")):
            return list(_requests(content, cloud))

    return loading.loaded(path, read)


def _requests(content: Any, cloud: Cloud) -> Iterator[WantedServers]:
    if not isinstance(content, list) or not content:
        raise Mistake(f"expected a list of at least one request, got {entries.shown(content)}")
    taken = {server.name for server in cloud.servers.values()}
    for index, value in enumerate(content):
        path = (str(index),)
        fields = entries.fields(
            value, path, required=("flavor",), optional=("count", "group", "name")
        )
        wanted = WantedServers(
            entries.known("flavor", fields["flavor"], cloud.flavors, (*path, "flavor")),
            entries.number(fields.get("count", "1"), (*path, "count"), least=1, most=MOST_SERVERS),
            entries.known("server group", fields["group"], cloud.server_groups, (*path, "group"))
            if "group" in fields
            else None,
            entries.name(fields["name"], (*path, "name")) if "name" in fields else None,
        )
        _take(wanted.own_names(), taken, (*path, "name"))
        yield wanted


def _take(names: Sequence[str], taken: set[str], path: syntax.Path) -> None:
    """Add the names of a request to those that are taken."""
    for name in names:
        if name in taken:
            raise Mistake(
                f"server {name!r} already exists in the cloud or in the file; choose another name",
                path,
                text=name,
            )
        taken.add(name)
