"""Clouds in files that change: read as a whole, and replaced as a whole or not at all."""

import io
import json
import os
from collections.abc import Callable
from typing import Any

from steelyard import errors, whole_files
from steelyard.groups import ServerGroup
from steelyard.scheduler import cloud_file
from steelyard.scheduler.cloud import Aggregate, Cloud, Flavor, Host, Server


class SavedCloud:
    """The cloud that a file describes, and the file to save it to when it has changed."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._before = self._content()
        try:
            text = self._before.decode("utf-8")
        except UnicodeDecodeError as error:
            raise errors.InvalidCloud(f"{self.path}: is not UTF-8 text: {error}") from error
        self.cloud = cloud_file.read(io.StringIO(text), self.path)
        self.unkept = [] if _is_json(self.path) else cloud_file.unkept(text)
        """What saving does not keep: comments, anchors."""

    def save(self, cloud: Cloud) -> None:
        """Replaces the file by a description of the cloud, without what is ``unkept``.

        Raises Conflict when the file is no longer what was read or saved last.
        """
        content = as_text(cloud, self.path).encode("utf-8")
        _write(self.path, content, self._require_unchanged)
        self._before = content

    def _content(self) -> bytes:
        try:
            with open(self.path, "rb") as file:
                return file.read()
        except OSError as error:
            raise errors.InvalidCloud(f"{self.path}: {error.strerror}") from error

    def _require_unchanged(self) -> None:
        if self._content() != self._before:
            raise errors.Conflict(f"{self.path} has changed since it was read; try again")


def create(path: str, cloud: Cloud, *, replace: bool = False) -> None:
    """Writes a description of the cloud to a file, as a whole or not at all.

    Raises Conflict when the file is there already and not to be replaced.
    """

    def check() -> None:
        if os.path.exists(path) and not replace:
            raise errors.Conflict(f"{path} is there already")

    _write(path, as_text(cloud, path).encode("utf-8"), check)


def _write(path: str, content: bytes, check: Callable[[], None]) -> None:
    try:
        whole_files.write(path, content, check)
    except OSError as error:
        raise errors.InvalidCloud(f"{path}: cannot be saved: {error.strerror}") from error


def as_text(cloud: Cloud, path: str) -> str:
    """A description of the cloud in the form that the name of the file calls for.

    Raises InvalidCloud rather than return what could not be read again.
    """
    description = describe(cloud)
    if _is_json(path):
        text = json.dumps(description, indent=2, ensure_ascii=False) + "\n"
    else:
        text = cloud_file.as_yaml(description)
    cloud_file.read(io.StringIO(text), path)
    return text


def _is_json(path: str) -> bool:
    return path.lower().endswith(".json")


def describe(cloud: Cloud) -> dict[str, Any]:
    """What a file says that describes this cloud, without what follows by itself."""
    described: dict[str, dict[str, Any]] = {
        "hosts": {name: _host(host) for name, host in cloud.hosts.items()},
        "aggregates": {name: _aggregate(each) for name, each in cloud.aggregates.items()},
        "flavors": {name: _flavor(flavor) for name, flavor in cloud.flavors.items()},
        "server_groups": {name: _group(group) for name, group in cloud.server_groups.items()},
        "servers": {},
    }
    for server in cloud.servers.values():
        if server.name in described["servers"]:
            raise errors.Conflict(f"two servers are called {server.name!r}; in a file, one can be")
        described["servers"][server.name] = _server(server)
    return {name: section for name, section in described.items() if section or name == "hosts"}


def _host(host: Host) -> dict[str, Any]:
    resources = {"vcpus": host.vcpus, "ram_mb": host.ram_mb, "disk_gb": host.disk_gb}
    return {
        **resources,
        **_given(
            traits=sorted(host.traits),
            uuid=host.uuid,
            reserved=dict(host.reserved),
            used=dict(host.used),
            allocation_ratios=dict(host.allocation_ratios),
            resources=dict(host.resources),
            out_of_service=host.out_of_service,
        ),
    }


def _aggregate(aggregate: Aggregate) -> dict[str, Any]:
    return {"hosts": list(aggregate.hosts), **_given(metadata=dict(aggregate.metadata))}


def _flavor(flavor: Flavor) -> dict[str, Any]:
    return {
        "vcpus": flavor.vcpus,
        "ram_mb": flavor.memory_mb,
        "disk_gb": flavor.root_gb,
        **_given(extra_specs=dict(flavor.extra_specs)),
    }


def _group(group: ServerGroup) -> dict[str, Any]:
    return {
        "policy": group.policy.value,
        **_given(rules=dict(group.rules)),
        **_uuid(group.name, group.uuid),
    }


def _server(server: Server) -> dict[str, Any]:
    return {
        "host": server.host,
        "flavor": server.flavor.name,
        **_given(group=server.group),
        **_uuid(server.name, server.uuid),
    }


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}


def _uuid(name: str, uuid: str) -> dict[str, str]:
    """Nothing where reading the file would give this UUID anyway."""
    return {} if uuid in ("", cloud_file.uuid_of(name)) else {"uuid": uuid}
