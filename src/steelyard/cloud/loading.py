"""Reading of cloud files; an error names the place of the mistake."""

import contextlib
import os
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import IO, Any, NamedTuple, TypeVar

from steelyard import errors
from steelyard.aggregates import flag
from steelyard.cloud import entries, syntax
from steelyard.cloud.syntax import Mistake, Path
from steelyard.cloud.values import Aggregate, Flavor, Host, Server
from steelyard.groups import Policy, ServerGroup, parse_rules
from steelyard.resources import FIELDS, check_class

# The namespace of UUIDs that are derived from names.
_NAMESPACE = uuid.UUID("5d9e5d2f-93b5-4c1b-9c4f-0b8a7c3c1a51")

_RESOURCES = tuple(FIELDS.values())

_OF_HOSTS = (
    "traits",
    "uuid",
    "reserved",
    "used",
    "allocation_ratios",
    "resources",
    "out_of_service",
)

ValueT = TypeVar("ValueT")


class Described(NamedTuple):
    """The content of a cloud file, by name; the server groups have no members yet."""

    hosts: dict[str, Host]
    aggregates: dict[str, Aggregate]
    flavors: dict[str, Flavor]
    server_groups: dict[str, ServerGroup]
    servers: list[Server]


def load(path: str | os.PathLike[str]) -> Described:
    """Return the content of the cloud file; raise InvalidCloud if it is invalid."""
    return loaded(path, read)


def load_content(path: str | os.PathLike[str]) -> Any:
    """Return the plain content of a YAML or JSON file: mappings, lists, texts and None."""
    return loaded(path, syntax.parsed_with_nulls)


def loaded(path: str | os.PathLike[str], parse: Callable[[IO[str], str], ValueT]) -> ValueT:
    """Return the content of the file as the function parses it; raise InvalidCloud on failure."""
    try:
        with open(path, encoding="utf-8") as file:
            return parse(file, os.fspath(path))
    except OSError as error:
        raise errors.InvalidCloud(str(error.strerror), os.fspath(path)) from error


def read(file: IO[str], name: str) -> Described:
    """Return the content of the open cloud file.

    ``name`` is the name of the file in errors. A name that ends in ``.json`` means JSON, any other
    YAML.
    """
    content = syntax.parsed(file, name)
    with syntax.placing_mistakes(file, name):
        return described(content)


def described(data: Any) -> Described:
    """Return the cloud that the content of a file describes; raise Mistake if it is invalid."""
    if data is None:
        raise Mistake("the file is empty: expected at least the mapping 'hosts'")
    sections = entries.fields(
        data,
        (),
        required=("hosts",),
        optional=("aggregates", "flavors", "server_groups", "servers"),
    )
    hosts = {
        name: _host(name, value, ("hosts", name))
        for name, value in _section(sections, "hosts").items()
    }
    aggregates = {
        name: _aggregate(name, value, ("aggregates", name), hosts)
        for name, value in _section(sections, "aggregates").items()
    }
    flavors = {
        name: _flavor(name, value, ("flavors", name))
        for name, value in _section(sections, "flavors").items()
    }
    groups = {
        name: _server_group(name, value, ("server_groups", name))
        for name, value in _section(sections, "server_groups").items()
    }
    found = Described(hosts, aggregates, flavors, groups, [])
    uuids = set()
    for name, value in _section(sections, "servers").items():
        server = _server(name, value, ("servers", name), found)
        if server.uuid in uuids:
            raise Mistake(
                f"duplicate UUID {server.uuid!r}: another server has it too",
                ("servers", name, "uuid"),
                text=server.uuid,
            )
        uuids.add(server.uuid)
        found.servers.append(server)
    return found


def _resources(fields: Mapping[str, Any], path: Path) -> tuple[int, int, int]:
    vcpus, ram_mb, disk_gb = (entries.number(fields[key], (*path, key)) for key in _RESOURCES)
    return vcpus, ram_mb, disk_gb


def _host(name: str, value: Any, path: Path) -> Host:
    fields = entries.fields(value, path, required=_RESOURCES, optional=_OF_HOSTS)
    resources = _classes(fields.get("resources", {}), (*path, "resources"))
    return Host(
        name,
        *_resources(fields, path),
        traits=frozenset(entries.texts(fields.get("traits", []), (*path, "traits"))),
        uuid=entries.text(fields.get("uuid", ""), (*path, "uuid")),
        reserved=_by_resource(fields, path, "reserved", entries.number),
        used=_by_resource(fields, path, "used", entries.number, (*_RESOURCES, *resources)),
        allocation_ratios=_by_resource(fields, path, "allocation_ratios", entries.ratio),
        resources=resources,
        out_of_service=_reason(fields.get("out_of_service", ""), (*path, "out_of_service")),
    )


def _classes(value: Any, path: Path) -> dict[str, int]:
    """Return the amount of each resource class, by its name in Placement."""
    for name in entries.mapping(value, path):
        try:
            check_class(name)
        except errors.InvalidQuery as error:
            raise Mistake(error.message, (*path, name), text=name) from error
        if name in FIELDS:
            raise Mistake(
                f"invalid resource class {name!r}: write it as {FIELDS[name]!r} of the host",
                (*path, name),
                text=name,
            )
    return {name: entries.number(amount, (*path, name)) for name, amount in value.items()}


def _reason(value: Any, path: Path) -> str:
    """Return the reason why a host is out of service.

    Words such as ``true`` or ``no`` are mistakes, because they give no reason.
    """
    text = entries.text(value, path)
    if text and (not text.strip() or flag(text) is not None):
        raise Mistake(
            f"invalid reason {text!r}: expected words such as 'disk failure'; delete the key "
            f"for a host in service",
            path,
            text=text,
        )
    return text


def _by_resource(
    fields: Mapping[str, Any],
    path: Path,
    field: str,
    parse: Callable[[Any, Path], ValueT],
    names: Collection[str] = _RESOURCES,
) -> dict[str, ValueT]:
    """Return the field's values by resource; the file may leave out any of them."""
    values = entries.fields(fields.get(field, {}), (*path, field), optional=names)
    return {name: parse(value, (*path, field, name)) for name, value in values.items()}


def _aggregate(name: str, value: Any, path: Path, hosts: Mapping[str, Host]) -> Aggregate:
    fields = entries.fields(value, path, required=("hosts",), optional=("metadata",))
    members = entries.texts(fields["hosts"], (*path, "hosts"))
    for index, member in enumerate(members):
        entries.known("host", member, hosts, (*path, "hosts", str(index)))
    return Aggregate(
        name, entries.text_mapping(fields.get("metadata", {}), (*path, "metadata")), tuple(members)
    )


def _flavor(name: str, value: Any, path: Path) -> Flavor:
    fields = entries.fields(value, path, required=_RESOURCES, optional=("extra_specs",))
    return Flavor(
        name,
        *_resources(fields, path),
        entries.text_mapping(fields.get("extra_specs", {}), (*path, "extra_specs")),
    )


def _server_group(name: str, value: Any, path: Path) -> ServerGroup:
    fields = entries.fields(value, path, required=("policy",), optional=("rules", "uuid"))
    with _at((*path, "policy")):
        policy = Policy.parse(entries.text(fields["policy"], (*path, "policy")))
    with _at((*path, "rules")):
        rules = parse_rules(policy, fields.get("rules", {}))
    return ServerGroup(name, policy, rules, uuid=_uuid(name, fields, path))


@contextlib.contextmanager
def _at(path: Path) -> Iterator[None]:
    """Convert an InvalidServerGroup in the block into a Mistake at the path."""
    try:
        yield
    except errors.InvalidServerGroup as error:
        raise Mistake(error.message, path, text=error.text) from error


def _uuid(name: str, fields: Mapping[str, Any], path: Path) -> str:
    """Return the UUID in the file, or one derived from the name."""
    if "uuid" in fields:
        return entries.text(fields["uuid"], (*path, "uuid"))
    return uuid_of(name)


def uuid_of(name: str) -> str:
    """Return the UUID of a host, group or server that has none in the file.

    It depends only on the name, so it does not change between loads of the file.
    """
    return str(uuid.uuid5(_NAMESPACE, name))


def _server(name: str, value: Any, path: Path, described: Described) -> Server:
    fields = entries.fields(value, path, required=("host", "flavor"), optional=("group", "uuid"))
    group = fields.get("group")
    return Server(
        _uuid(name, fields, path),
        name,
        described.flavors[
            entries.known("flavor", fields["flavor"], described.flavors, (*path, "flavor"))
        ],
        entries.known("host", fields["host"], described.hosts, (*path, "host")),
        None
        if group is None
        else entries.known("server group", group, described.server_groups, (*path, "group")),
    )


def _section(sections: Mapping[str, Any], section: str) -> dict[str, Any]:
    """Return the content of the section by name; an absent section is empty."""
    described = entries.mapping(sections.get(section, {}), (section,))
    for name in described:
        if not name or not name.isprintable():
            raise Mistake(
                f"invalid name {name!r}: expected at least one character, all printable",
                (section, name),
                text=name,
            )
    return described
