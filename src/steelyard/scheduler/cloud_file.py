"""Cloud descriptions in files: YAML or JSON in, a Cloud or one clear error out.

Every scalar is read as text, so that ``~``, ``true`` and ``1`` in metadata mean what Nova's API
would make of them; numbers are converted here, where they are expected.
"""

import contextlib
import json
import os
import re
import uuid
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import IO, Any, TypeVar

from steelyard import errors, extras
from steelyard.aggregates import flag
from steelyard.groups import Policy, ServerGroup, parse_rules
from steelyard.scheduler.cloud import Aggregate, Cloud, Flavor, Host, Server
from steelyard.string_sets import finite_number
from steelyard.traits.requests import check_class

# What is described without a UUID gets one that follows from its name.
_NAMESPACE = uuid.UUID("5d9e5d2f-93b5-4c1b-9c4f-0b8a7c3c1a51")

# The tags of values that are written without one.
_PLAIN_TAGS = {f"tag:yaml.org,2002:{kind}" for kind in ("map", "seq", "str")}

_TEXT = "tag:yaml.org,2002:str"
# Plain text that YAML 1.2 takes for a number, or 1.1 for a truth value, and PyYAML for text.
_NO_TEXT = re.compile(r"[yYnN]|0o[0-7]+|[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")

# Far more than any host has, and no trouble to compute with.
_GREATEST = 10**15 - 1

_RESOURCES = ("vcpus", "ram_mb", "disk_gb")

# What a resource class is called that every host and flavor has.
_CLASSES = dict(zip(("VCPU", "MEMORY_MB", "DISK_GB"), _RESOURCES, strict=True))

_OF_HOSTS = (
    "traits",
    "uuid",
    "reserved",
    "used",
    "allocation_ratios",
    "resources",
    "out_of_service",
)

Path = tuple[str, ...]
ValueT = TypeVar("ValueT")


def load(path: str | os.PathLike[str]) -> Cloud:
    """The cloud described in the file."""
    return _load(path, read)


def load_content(path: str | os.PathLike[str]) -> Any:
    """What a file says that is written as cloud files are: mappings and lists of texts."""
    return _load(path, _content)


def _load(path: str | os.PathLike[str], parse: Callable[[IO[str], str], ValueT]) -> ValueT:
    try:
        with open(path, encoding="utf-8") as file:
            return parse(file, os.fspath(path))
    except OSError as error:
        raise errors.InvalidCloud(f"{os.fspath(path)}: {error.strerror}") from error


def read(file: IO[str], name: str) -> Cloud:
    """The cloud described in the open file; ``name`` is what errors call it."""
    content = _content(file, name)
    with _placing_mistakes(file, name):
        return _cloud(content)


def _content(file: IO[str], name: str) -> Any:
    with _placing_mistakes(file, name):
        return _parse_json(file) if name.lower().endswith(".json") else _parse_yaml(file)


@contextlib.contextmanager
def _placing_mistakes(file: IO[str], name: str) -> Iterator[None]:
    """Says where in the file something is wrong."""
    try:
        yield
    except _Mistake as mistake:
        line = _line(file, mistake.path) if mistake.line is None else mistake.line
        place = f"{name}:{line}" if line else name
        where = f" {'.'.join(mistake.path)}:" if mistake.path else ""
        raise errors.InvalidCloud(f"{place}:{where} {mistake}") from mistake
    except RecursionError as error:
        raise errors.InvalidCloud(f"{name}: is nested too deeply") from error
    except UnicodeDecodeError as error:
        raise errors.InvalidCloud(f"{name}: is not UTF-8 text: {error}") from error


def as_yaml(description: Mapping[str, Any]) -> str:
    """The description as text that ``read`` understands."""
    yaml = _yaml()
    # A dumper that takes every plain scalar for text, as the reader does, in C where there is C.
    dumper = getattr(yaml, "CBaseDumper", yaml.BaseDumper)
    node = _node(yaml, description, yaml.resolver.Resolver().resolve)
    return str(yaml.serialize(node, Dumper=dumper, width=100, allow_unicode=True))


def _node(yaml: Any, value: Any, resolve: Callable[..., str]) -> Any:
    if isinstance(value, Mapping):
        pairs = [
            (_node(yaml, key, resolve), _node(yaml, item, resolve)) for key, item in value.items()
        ]
        flat = all(isinstance(item, yaml.ScalarNode) for _, item in pairs)
        return yaml.MappingNode("tag:yaml.org,2002:map", pairs, flow_style=flat)
    if isinstance(value, list):
        items = [_node(yaml, item, resolve) for item in value]
        return yaml.SequenceNode("tag:yaml.org,2002:seq", items, flow_style=True)
    text, style = str(value), None
    if not text.isprintable():
        # The other styles make spaces of line breaks, of which Unicode has more than one.
        style = '"'
    elif isinstance(value, str) and (
        resolve(yaml.ScalarNode, text, (True, False)) != _TEXT or _NO_TEXT.fullmatch(text)
    ):
        style = "'"  # other readers of YAML, of version 1.1 or 1.2, take the plain text for no text
    return yaml.ScalarNode(_TEXT, text, style=style)


def unkept(text: str) -> list[str]:
    """What the YAML text has that a description of the cloud does not: comments, anchors."""
    yaml = _yaml()
    found = set()
    end = 0
    for token in yaml.scan(text, Loader=_base_loader(yaml)):
        start = token.start_mark.index
        between = text[end:start]
        if isinstance(token, yaml.ScalarToken) and token.style in ("|", ">"):
            between += text[start:].partition("\n")[0]
        if "#" in between:
            found.add("comments")
        if isinstance(token, yaml.AnchorToken):
            found.add("anchors")
        end = max(end, token.end_mark.index)
    if "#" in text[end:]:
        found.add("comments")
    return sorted(found, reverse=True)


class _Mistake(Exception):
    """What is wrong in the file, and where."""

    def __init__(self, message: str, path: Path = (), line: int | None = None) -> None:
        super().__init__(message)
        self.path = path
        self.line = line


def _parse_json(file: IO[str]) -> Any:
    def mapping(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in pairs:
            if key in result:
                raise _Mistake(f"{key!r} is there twice")
            result[key] = value
        return result

    try:
        return json.load(
            file,
            object_pairs_hook=mapping,
            parse_int=str,
            parse_float=str,
            parse_constant=str,
        )
    except json.JSONDecodeError as error:
        raise _Mistake(f"is not JSON: {error.msg}", line=error.lineno) from error


def _parse_yaml(file: IO[str]) -> Any:
    yaml = _yaml()
    try:
        data = yaml.load(file, Loader=_loader(yaml))
    except yaml.MarkedYAMLError as error:
        said = f"{error.context} {error.problem}"
        hint = ""
        if any(word in said for word in ("alias", "anchor", "tag", "block scalar")):
            hint = "; put quotes around a value that begins with *, &, !, > or |"
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise _Mistake(f"is not YAML: {error.problem}{hint}", line=line) from error
    except yaml.YAMLError as error:
        raise _Mistake(f"is not YAML: {' '.join(str(error).split())}") from error
    return data


def _yaml() -> Any:
    with extras.required("cli", "a cloud file in YAML"):
        import yaml  # noqa: PLC0415  (an extra, and only for YAML)
    return yaml


def _base_loader(yaml: Any) -> Any:
    """PyYAML's loader that takes every scalar for text, in C where there is C."""
    return getattr(yaml, "CBaseLoader", yaml.BaseLoader)


def _loader(yaml: Any) -> type[Any]:
    """A loader that makes text of every scalar, and takes nothing amiss quietly."""

    class Loader(_base_loader(yaml)):  # type: ignore[misc]  # known only when PyYAML is there
        def construct_mapping(self, node: Any, deep: bool = False) -> dict[str, Any]:  # noqa: FBT001, FBT002  (PyYAML's)
            mapping = super().construct_mapping(node, deep=deep)
            if len(mapping) != len(node.value):
                seen: set[Any] = set()
                for key, _ in node.value:
                    if key.value in seen:
                        raise _Mistake(
                            f"{key.value!r} is there twice", line=key.start_mark.line + 1
                        )
                    seen.add(key.value)
            return dict(mapping)

        def construct_object(self, node: Any, deep: bool = False) -> Any:  # noqa: FBT001, FBT002
            if node.tag not in _PLAIN_TAGS:
                raise _Mistake(
                    f"{node.tag!r} is a YAML tag; put quotes around a value that begins with !",
                    line=node.start_mark.line + 1,
                )
            return super().construct_object(node, deep=deep)

        def construct_scalar(self, node: Any) -> str:
            if not node.value and not node.style:
                raise _Mistake(
                    "there is no value; write '' for empty text, and put a lone ! in quotes",
                    line=node.start_mark.line + 1,
                )
            return str(node.value)

    return Loader


def _cloud(data: Any) -> Cloud:
    if data is None:
        raise _Mistake("the file is empty; it has at least a mapping 'hosts'")
    sections = _fields(
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
    cloud = Cloud(hosts, aggregates, flavors, groups)
    servers = {}
    for name, value in _section(sections, "servers").items():
        server = _server(name, value, ("servers", name), cloud)
        if server.uuid in servers:
            raise _Mistake(f"{server.uuid!r} is also another server's", ("servers", name, "uuid"))
        servers[server.uuid] = server
    return cloud.with_servers(servers.values())


def _resources(fields: Mapping[str, Any], path: Path) -> tuple[int, int, int]:
    vcpus, ram_mb, disk_gb = (_number(fields[key], (*path, key)) for key in _RESOURCES)
    return vcpus, ram_mb, disk_gb


def _host(name: str, value: Any, path: Path) -> Host:
    fields = _fields(value, path, required=_RESOURCES, optional=_OF_HOSTS)
    resources = _classes(fields.get("resources", {}), (*path, "resources"))
    return Host(
        name,
        *_resources(fields, path),
        traits=frozenset(_texts(fields.get("traits", []), (*path, "traits"))),
        uuid=_text(fields.get("uuid", ""), (*path, "uuid")),
        reserved=_by_resource(fields, path, "reserved", _number),
        used=_by_resource(fields, path, "used", _number, (*_RESOURCES, *resources)),
        allocation_ratios=_by_resource(fields, path, "allocation_ratios", _ratio),
        resources=resources,
        out_of_service=_why(fields.get("out_of_service", ""), (*path, "out_of_service")),
    )


def _classes(value: Any, path: Path) -> dict[str, int]:
    """How much of each resource class, by the name that Placement has for it."""
    for name in _mapping(value, path):
        try:
            check_class(name)
        except errors.InvalidQuery as error:
            raise _Mistake(str(error).partition("\n")[0], (*path, name)) from error
        if name in _CLASSES:
            raise _Mistake(f"{name!r} is described by {_CLASSES[name]!r}", (*path, name))
    return {name: _number(amount, (*path, name)) for name, amount in value.items()}


def _why(value: Any, path: Path) -> str:
    """Why a host is out of service: no text that could be meant to say whether it is."""
    text = _text(value, path)
    if text and (not text.strip() or flag(text) is not None):
        raise _Mistake(f"{text!r} says not why; write why, or leave the key out", path)
    return text


def _by_resource(
    fields: Mapping[str, Any],
    path: Path,
    field: str,
    parse: Callable[[Any, Path], ValueT],
    names: Collection[str] = _RESOURCES,
) -> dict[str, ValueT]:
    """What the field says of some of the resources."""
    said = _fields(fields.get(field, {}), (*path, field), optional=names)
    return {name: parse(value, (*path, field, name)) for name, value in said.items()}


def _aggregate(name: str, value: Any, path: Path, hosts: Mapping[str, Host]) -> Aggregate:
    fields = _fields(value, path, required=("hosts",), optional=("metadata",))
    members = _texts(fields["hosts"], (*path, "hosts"))
    for index, member in enumerate(members):
        _known("host", member, hosts, (*path, "hosts", str(index)))
    return Aggregate(
        name, _text_mapping(fields.get("metadata", {}), (*path, "metadata")), tuple(members)
    )


def _flavor(name: str, value: Any, path: Path) -> Flavor:
    fields = _fields(value, path, required=_RESOURCES, optional=("extra_specs",))
    return Flavor(
        name,
        *_resources(fields, path),
        _text_mapping(fields.get("extra_specs", {}), (*path, "extra_specs")),
    )


def _server_group(name: str, value: Any, path: Path) -> ServerGroup:
    fields = _fields(value, path, required=("policy",), optional=("rules", "uuid"))
    with _at((*path, "policy")):
        policy = Policy.parse(_text(fields["policy"], (*path, "policy")))
    with _at((*path, "rules")):
        rules = parse_rules(policy, fields.get("rules", {}))
    return ServerGroup(name, policy, rules, uuid=_uuid(name, fields, path))


@contextlib.contextmanager
def _at(path: Path) -> Iterator[None]:
    """Says where in the file the description of a server group is malformed."""
    try:
        yield
    except errors.InvalidServerGroup as error:
        raise _Mistake(str(error), path) from error


def _uuid(name: str, fields: Mapping[str, Any], path: Path) -> str:
    """The UUID that is written, or one that follows from the name."""
    if "uuid" in fields:
        return _text(fields["uuid"], (*path, "uuid"))
    return uuid_of(name)


def uuid_of(name: str) -> str:
    """The UUID of a host, a group or a server that is described without one."""
    return str(uuid.uuid5(_NAMESPACE, name))


def _server(name: str, value: Any, path: Path, cloud: Cloud) -> Server:
    fields = _fields(value, path, required=("host", "flavor"), optional=("group", "uuid"))
    group = fields.get("group")
    return Server(
        _uuid(name, fields, path),
        name,
        cloud.flavors[_known("flavor", fields["flavor"], cloud.flavors, (*path, "flavor"))],
        _known("host", fields["host"], cloud.hosts, (*path, "host")),
        None
        if group is None
        else _known("server group", group, cloud.server_groups, (*path, "group")),
    )


def _section(sections: Mapping[str, Any], section: str) -> dict[str, Any]:
    """What the section describes, by name."""
    described = _mapping(sections.get(section, {}), (section,))
    for name in described:
        if not name or not name.isprintable():
            raise _Mistake(
                f"{name!r} is no name: it is empty or cannot be printed", (section, name)
            )
    return described


def _mapping(value: Any, path: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Mistake(f"expected a mapping of names, got {_shown(value)}", path)
    return value


def _fields(
    value: Any, path: Path, required: Collection[str] = (), optional: Collection[str] = ()
) -> dict[str, Any]:
    fields = _mapping(value, path)
    allowed = [*required, *optional]
    for name in fields:
        if name not in allowed:
            raise _Mistake(f"unknown key {name!r}{errors.near(name, allowed)}", (*path, name))
    for name in required:
        if name not in fields:
            raise _Mistake(f"{name!r} is missing; required are {', '.join(required)}", path)
    return fields


def _known(kind: str, value: Any, there: Mapping[str, Any], path: Path) -> str:
    name = _text(value, path)
    if name not in there:
        raise _Mistake(f"there is no {kind} {name!r}{errors.near(name, there)}", path)
    return name


def _number(value: Any, path: Path, least: int = 0) -> int:
    digits = value if isinstance(value, str) and value.isascii() and value.isdecimal() else ""
    if 0 < len(digits) <= len(str(_GREATEST)) and int(digits) >= least:
        return int(digits)
    raise _Mistake(
        f"expected a whole number from {least} to {_GREATEST}, got {_shown(value)}", path
    )


def _ratio(value: Any, path: Path) -> float:
    ratio = finite_number(value) if isinstance(value, str) else None
    if ratio is None or ratio < 0:
        raise _Mistake(f"expected a number from 0 on, got {_shown(value)}", path)
    return ratio


def _text(value: Any, path: Path) -> str:
    if isinstance(value, bool):  # JSON's
        return str(value).lower()
    if not isinstance(value, str):
        raise _Mistake(f"expected text, got {_shown(value)}", path)
    return value


def _texts(value: Any, path: Path) -> list[str]:
    if not isinstance(value, list):
        raise _Mistake(f"expected a list, got {_shown(value)}", path)
    return [_text(item, (*path, str(index))) for index, item in enumerate(value)]


def _text_mapping(value: Any, path: Path) -> dict[str, str]:
    return {key: _text(item, (*path, key)) for key, item in _mapping(value, path).items()}


def _shown(value: Any) -> str:
    """The value as the file may have it, cut where it gets long."""
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."


def _line(file: IO[str], path: Path) -> int | None:
    """The line of the place that the path leads to, or of the last place on its way."""
    if not file.seekable():
        return None
    file.seek(0)
    try:
        yaml = _yaml()
        node = yaml.compose(file, Loader=_base_loader(yaml))
    except errors.MissingExtra:  # it was JSON, which reads without
        return None
    except yaml.YAMLError:  # it was JSON that is not YAML
        return None
    line = None
    for step in path:
        found = _child(yaml, node, step)
        if found is None:
            break
        mark, node = found
        line = mark.line + 1
    return line


def _child(yaml: Any, node: Any, step: str) -> tuple[Any, Any] | None:
    """Where the step from the node is written, and the node that it leads to."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == step:
                return key.start_mark, value
    elif isinstance(node, yaml.SequenceNode):
        item = node.value[int(step)]
        return item.start_mark, item
    return None
