"""Reading of cloud files; an error names the place of the mistake."""

import contextlib
import functools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any, NamedTuple, TypeVar

from steelyard import errors
from steelyard.aggregates import flag
from steelyard.cloud import garbage
from steelyard.cloud.derived_uuids import uuid_of
from steelyard.cloud.files import entries, host_details, records, server_details, syntax
from steelyard.cloud.files.records import Field, RecordFields
from steelyard.cloud.files.syntax import Mistake, Path
from steelyard.cloud.values import Aggregate, Flavor, Host, Server
from steelyard.groups import Policy, ServerGroup, parse_rules
from steelyard.resources import FIELDS, check_class

_RESOURCES = tuple(FIELDS.values())

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


@garbage.paused()
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
    try:
        return _described(sections, records.read)
    except (Mistake, RecursionError):
        return _described(sections, records.read_each)


def _described(sections: Mapping[str, Any], read: records.Reader) -> Described:
    """Return the cloud in these sections, whose records the function reads."""

    def columns(section: str, fields: RecordFields) -> records.Columns:
        """Return the names of the section's records and a column for each field."""
        found = _section(sections, section)
        return [list(found), *read(section, found, fields)]

    hosts = {host.name: host for host in map(Host, *columns("hosts", _HOST))}
    host_details.check_unique(hosts.values())
    host_names = {name: name for name in hosts}
    aggregates = {
        name: Aggregate(name, metadata, members, uuid)
        for name, members, metadata, uuid in zip(
            *columns("aggregates", _aggregate_fields(host_names)), strict=True
        )
    }
    flavors = {flavor.name: flavor for flavor in map(Flavor, *columns("flavors", _FLAVOR))}
    groups = {
        name: ServerGroup(name, policy, rules, uuid=uuid_of(name) if uuid is None else uuid)
        for name, policy, rules, uuid in zip(*columns("server_groups", _GROUP), strict=True)
    }
    fields = _server_fields(host_names, flavors, {name: name for name in groups})
    names, given, *rest = columns("servers", fields)
    uuids = [uuid_of(n) if uuid is None else uuid for n, uuid in zip(names, given, strict=True)]
    if len(set(uuids)) < len(uuids):
        raise _duplicate(names, uuids)
    return Described(hosts, aggregates, flavors, groups, list(map(Server, uuids, names, *rest)))


def _duplicate(names: Sequence[str], uuids: Sequence[str]) -> Mistake:
    """Return the mistake of the first server whose UUID an earlier server has."""
    first: dict[str, int] = {}
    index = next(i for i, uuid in enumerate(uuids) if first.setdefault(uuid, i) < i)
    return Mistake(
        f"duplicate UUID {uuids[index]!r}: another server has it too",
        ("servers", names[index], "uuid"),
        text=uuids[index],
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
    parse: Callable[..., ValueT], value: Any, path: Path, others: Any = None
) -> dict[str, ValueT]:
    """Return values by resource; the file may leave out any of them.

    ``others`` is the content of ``resources`` if the values may be of these resource classes too.
    """
    names = (*_RESOURCES, *(others if isinstance(others, dict) else ()))
    values = entries.fields(value, path, optional=names)
    return {name: parse(each, (*path, name)) for name, each in values.items()}


def _traits(value: Any, path: Path) -> frozenset[str]:
    return frozenset(entries.texts(value, path))


def _members(hosts: Mapping[str, str], value: Any, path: Path) -> tuple[str, ...]:
    """Return the hosts of an aggregate, which must be among these."""
    members = entries.texts(value, path)
    if not hosts.keys() >= set(members):
        for index, member in enumerate(members):
            entries.known("host", member, hosts, (*path, str(index)))
    return tuple(map(hosts.__getitem__, members))


def _policy(value: Any, path: Path) -> Policy:
    with _at(path):
        return Policy.parse(entries.text(value, path))


def _rules(value: Any, path: Path, policy: Any) -> dict[str, int]:
    with _at(path):
        return parse_rules(Policy.parse(policy), value)


def _known(kind: str, there: Mapping[str, ValueT], value: Any, path: Path) -> ValueT:
    """Return the value of this name."""
    return there[entries.known(kind, value, there, path)]


def _group_of(groups: Mapping[str, str], value: Any, path: Path) -> str | None:
    return None if value is None else _known("server group", groups, value, path)


@contextlib.contextmanager
def _at(path: Path) -> Iterator[None]:
    """Convert an InvalidServerGroup in the block into a Mistake at the path."""
    try:
        yield
    except errors.InvalidServerGroup as error:
        raise Mistake(error.message, path, text=error.text) from error


def _section(sections: Mapping[str, Any], section: str) -> dict[str, Any]:
    """Return the content of the section by name; an absent section is empty."""
    described = entries.mapping(sections.get(section, {}), (section,))
    if "" in described or not all(map(str.isprintable, described)):
        for name in described:
            entries.name(name, (section, name))
    return described


_UNITS = Field(
    functools.partial(_by_resource, functools.partial(entries.number, least=1)),
    {},
    beside="resources",
)
_AMOUNTS = {name: Field(entries.number) for name in _RESOURCES}
# Each in the order of the attributes after the name.
_HOST: RecordFields = {
    **_AMOUNTS,
    "traits": Field(_traits, frozenset()),
    "uuid": Field(entries.text, ""),
    "reserved": Field(functools.partial(_by_resource, entries.number), {}),
    "used": Field(functools.partial(_by_resource, entries.number), {}, beside="resources"),
    "allocation_ratios": Field(functools.partial(_by_resource, entries.ratio), {}),
    "resources": Field(_classes, {}),
    "out_of_service": Field(_reason, ""),
    "min_units": _UNITS,
    "max_units": _UNITS,
    "step_sizes": _UNITS,
    **host_details.FIELDS,
}
_FLAVOR: RecordFields = {**_AMOUNTS, "extra_specs": Field(entries.text_mapping, {})}
_GROUP: RecordFields = {
    "policy": Field(_policy),
    "rules": Field(_rules, {}, beside="policy"),
    "uuid": Field(entries.text, None),
}


def _aggregate_fields(hosts: Mapping[str, str]) -> RecordFields:
    return {
        "hosts": Field(functools.partial(_members, hosts)),
        "metadata": Field(entries.text_mapping, {}),
        "uuid": Field(entries.text, ""),
    }


def _server_fields(
    hosts: Mapping[str, str], flavors: Mapping[str, Flavor], groups: Mapping[str, str]
) -> RecordFields:
    return {
        "uuid": Field(entries.text, None),
        "flavor": Field(functools.partial(_known, "flavor", flavors)),
        "host": Field(functools.partial(_known, "host", hosts)),
        "group": Field(functools.partial(_group_of, groups), None),
        **server_details.FIELDS,
    }
