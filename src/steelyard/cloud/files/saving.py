"""Saving of cloud files, which are replaced atomically."""

import io
import json
import os
from collections.abc import Callable, Mapping
from typing import Any

from steelyard import errors
from steelyard.cloud import garbage, model
from steelyard.cloud.derived_uuids import is_derived
from steelyard.cloud.files import host_details, loading, plain_yaml, server_details, syntax
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
        with io.TextIOWrapper(io.BytesIO(self._before), encoding="utf-8") as file:
            self.cloud = model.read(file, self.path)
        self.unkept = [] if _is_json(self.path) else syntax.unkept(self._before)
        """The kinds of text that saving loses: comments, anchors."""

    def save(self, cloud: Cloud) -> None:
        """Replace the file's content with this cloud; the parts in ``unkept`` are lost.

        Raises Conflict if the file has changed since it was read or last saved.
        """
        content = _content(cloud, self.path)
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

    _write(path, _content(cloud, path), check)


def _write(path: str, content: bytes, check: Callable[[], None]) -> None:
    try:
        whole_files.write(path, content, check)
    except OSError as error:
        raise errors.InvalidCloud(f"cannot save the file: {error.strerror}", path) from error


def _content(cloud: Cloud, path: str) -> bytes:
    try:
        return as_text(cloud, path).encode("utf-8")
    except UnicodeEncodeError as error:
        raise errors.InvalidCloud(f"cannot save the file: invalid text: {error}", path) from error


@garbage.paused()
def as_text(cloud: Cloud, path: str) -> str:
    """Return the cloud as YAML or, if the path ends in ``.json``, as JSON.

    In JSON, every host, aggregate, flavor, server group and server has a line. Raises InvalidCloud
    if the text could not be read again.
    """
    description = describe(cloud)
    try:
        loading.described(description)
    except syntax.Mistake as mistake:
        raise errors.InvalidCloud(
            mistake.message, path, path=mistake.path, text=mistake.text
        ) from mistake
    if _is_json(path):
        return _as_json(description)
    try:
        return syntax.as_yaml(description)
    except plain_yaml.NotPlainError as error:
        raise errors.InvalidCloud(
            "cannot save the file: the YAML could not be read again; name a file that ends in "
            ".json",
            path,
        ) from error


def _as_json(description: Mapping[str, Mapping[str, Any]]) -> str:
    encode = json.JSONEncoder(ensure_ascii=False).encode
    sections = []
    for section, records in description.items():
        # One call for each line, because calls take most of the time: an object without braces.
        lines = [f"    {encode({name: record})[1:-1]}" for name, record in records.items()]
        content = "\n" + ",\n".join(lines) + "\n  " if lines else ""
        sections.append(f"  {encode(section)}: {{{content}}}")
    return "{\n" + ",\n".join(sections) + "\n}\n"


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
            allocation_ratios={name: float(each) for name, each in host.allocation_ratios.items()},
            resources=dict(host.resources),
            out_of_service=host.out_of_service,
            min_units=dict(host.min_units),
            max_units=dict(host.max_units),
            step_sizes=dict(host.step_sizes),
        ),
        **host_details.describe(host),
    }


def _aggregate(aggregate: Aggregate) -> dict[str, Any]:
    return {
        "hosts": list(aggregate.hosts),
        **_given(metadata=dict(aggregate.metadata), uuid=aggregate.uuid),
    }


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
        **({} if is_derived(group.uuid, group.name) else _given(uuid=group.uuid)),
    }


def _server(server: Server) -> dict[str, Any]:
    described = {"host": server.host, "flavor": server.flavor.name}
    if server.group:
        described["group"] = server.group
    if server.uuid and not is_derived(server.uuid, server.name):
        described["uuid"] = server.uuid
    return described | server_details.describe(server)


def _given(**fields: Any) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if value}
