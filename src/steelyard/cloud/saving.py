"""Saving of cloud files, which are replaced atomically."""

import io
import json
import os
from collections.abc import Callable
from typing import Any

from steelyard import errors
from steelyard.cloud import loading, model, syntax
from steelyard.cloud.model import Cloud
from steelyard.cloud.values import Aggregate, Flavor, Host, Server
from steelyard.groups import ServerGroup
from steelyard.resources import FIELDS
from steelyard.text import whole_files


class SavedCloud:
    """A cloud file and the cloud in it."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._before = self._content()
        try:
            text = self._before.decode("utf-8")
        except UnicodeDecodeError as error:
            raise errors.InvalidCloud(f"invalid UTF-8: {error}", self.path) from error
        self.cloud = model.read(io.StringIO(text), self.path)
        self.unkept = [] if _is_json(self.path) else syntax.unkept(text)
        """The kinds of text that saving loses: comments, anchors."""

    def save(self, cloud: Cloud) -> None:
        """Replace the file's content with this cloud; the parts in ``unkept`` are lost.

        Raises Conflict if the file has changed since it was read or last saved.
        """
        content = as_text(cloud, self.path).encode("utf-8")
        _write(self.path, content, self._require_unchanged)
        self._before = content

    def _content(self) -> bytes:
        try:
            with open(self.path, "rb") as file:
                return file.read()
        except OSError as error:
            raise errors.InvalidCloud(str(error.strerror), self.path) from error

    def _require_unchanged(self) -> None:
        if self._content() != self._before:
            raise errors.Conflict(
                f"cannot save {self.path!r}: it changed after it was read; try again"
            )


def create(path: str, cloud: Cloud, *, replace: bool = False) -> None:
    """Write the cloud to a new file atomically.

    Raises Conflict if the file exists, unless ``replace`` is true.
    """

    def check() -> None:
        if os.path.exists(path) and not replace:
            raise errors.Conflict(f"{path!r} already exists")

    _write(path, as_text(cloud, path).encode("utf-8"), check)


def _write(path: str, content: bytes, check: Callable[[], None]) -> None:
    try:
        whole_files.write(path, content, check)
    except OSError as error:
        raise errors.InvalidCloud(f"cannot save the file: {error.strerror}", path) from error


def as_text(cloud: Cloud, path: str) -> str:
    """Return the cloud as YAML or, if the path ends in ``.json``, as JSON.

    Raises InvalidCloud if the text could not be read again.
    """
    description = describe(cloud)
    if _is_json(path):
        text = json.dumps(description, indent=2, ensure_ascii=False) + "\n"
    else:
        text = syntax.as_yaml(description)
    model.read(io.StringIO(text), path)
    return text


def _is_json(path: str) -> bool:
    return path.lower().endswith(".json")


def describe(cloud: Cloud) -> dict[str, Any]:
    """Return the content of a cloud file for this cloud, without default values.

    Raises Conflict if two servers have the same name.
    """
    described: dict[str, dict[str, Any]] = {
        "hosts": {name: _host(host) for name, host in cloud.hosts.items()},
        "aggregates": {name: _aggregate(each) for name, each in cloud.aggregates.items()},
        "flavors": {name: _flavor(flavor) for name, flavor in cloud.flavors.items()},
        "server_groups": {name: _group(group) for name, group in cloud.server_groups.items()},
        "servers": {},
    }
    for server in cloud.servers.values():
        if server.name in described["servers"]:
            raise errors.Conflict(
                f"duplicate server name {server.name!r}: names in a cloud file are unique",
                server.name,
            )
        described["servers"][server.name] = _server(server)
    return {name: section for name, section in described.items() if section or name == "hosts"}


def _host(host: Host) -> dict[str, Any]:
    return {
        **{field: getattr(host, field) for field in FIELDS.values()},
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
    """Return the UUID as a field, unless it is the one derived from the name."""
    return {} if uuid in ("", loading.uuid_of(name)) else {"uuid": uuid}
