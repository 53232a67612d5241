"""Files with changes of a cloud."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import IO, Any

from steelyard import errors
from steelyard.aggregates import FORCE_KEY
from steelyard.cloud.changes import (
    Change,
    KeyedPart,
    SetKey,
    SetMembership,
    TakeIn,
    TakeOut,
    TakeOutAggregate,
    TakeOutByMetadata,
)
from steelyard.cloud.files import entries, loading, syntax
from steelyard.cloud.files.syntax import Mistake, Path
from steelyard.cloud.model import Cloud


def applied(path: str | os.PathLike[str], cloud: Cloud) -> Cloud:
    """Return the cloud after the changes in a YAML or JSON file, in their order.

    Raises InvalidCloud if the file is malformed or a change cannot be applied.
    """

    def read(file: IO[str], name: str) -> Cloud:
        content = syntax.parsed(file, name)
        with syntax.placing_mistakes(file, name, entries.numbered("change")):
            return _applied(list(_changes(content)), cloud)

    return loading.loaded(path, read)


def _applied(changes: Sequence[Change], cloud: Cloud) -> Cloud:
    for index, change in enumerate(changes):
        try:
            cloud = change.applied(cloud)
        except (errors.NotFound, errors.Conflict) as error:
            raise Mistake(error.message, (str(index),), text=error.text) from error
    return cloud


def _changes(content: Any) -> Iterator[Change]:
    if not isinstance(content, list) or not content:
        raise Mistake(f"expected a list of at least one change, got {entries.shown(content)}")
    for index, value in enumerate(content):
        path = (str(index),)
        if not isinstance(value, dict):
            raise Mistake(
                f"expected a mapping such as {{out: {_FORMS['out']}}}, got {entries.shown(value)}",
                path,
            )
        found = entries.fields(value, path, optional=tuple(_READERS))
        if len(found) != 1:
            raise Mistake(
                f"expected one of {', '.join(_READERS)}, got {entries.shown(value)}: write each "
                f"change as an entry of the list",
                path,
            )
        ((kind, fields),) = found.items()
        if kind in _FORMS and not isinstance(fields, dict):
            raise Mistake(
                f"expected a mapping such as {_FORMS[kind]}, got {entries.shown(fields)}",
                (*path, kind),
            )
        yield _READERS[kind](fields, (*path, kind))


def _set(value: Any, path: Path) -> Change:
    part, fields = _part(value, path, ("key", "value"))
    return SetKey(
        part,
        entries.name(fields[part], (*path, part)),
        entries.name(fields["key"], (*path, "key")),
        entries.text(fields["value"], (*path, "value")),
    )


def _unset(value: Any, path: Path) -> Change:
    part, fields = _part(value, path, ("key",))
    return SetKey(
        part,
        entries.name(fields[part], (*path, part)),
        entries.name(fields["key"], (*path, "key")),
        None,
    )


def _force(value: Any, path: Path) -> Change:
    return SetKey(KeyedPart.AGGREGATE, entries.name(value, path), FORCE_KEY, "true")


def _unforce(value: Any, path: Path) -> Change:
    return SetKey(KeyedPart.AGGREGATE, entries.name(value, path), FORCE_KEY, None)


def _add_host(value: Any, path: Path) -> Change:
    return SetMembership(*_member(value, path), joins=True)


def _remove_host(value: Any, path: Path) -> Change:
    return SetMembership(*_member(value, path), joins=False)


def _out(value: Any, path: Path) -> Change:
    fields = entries.fields(value, path, optional=("host", "aggregate", "key", "value"))
    texts = {key: entries.name(each, (*path, key)) for key, each in fields.items()}
    match texts:
        case {"host": host} if len(texts) == 1:
            return TakeOut(host)
        case {"aggregate": aggregate} if len(texts) == 1:
            return TakeOutAggregate(aggregate)
        case {"key": key, "value": of_key} if len(texts) == 2:
            return TakeOutByMetadata(key, of_key)
    raise Mistake(
        f"expected a host, an aggregate, or a key with its value, got {entries.shown(value)}", path
    )


def _in(value: Any, path: Path) -> Change:
    fields = entries.fields(value, path, required=("host",))
    return TakeIn(entries.name(fields["host"], (*path, "host")))


_READERS: Mapping[str, Callable[[Any, Path], Change]] = {
    "set": _set,
    "unset": _unset,
    "force": _force,
    "unforce": _unforce,
    "add-host": _add_host,
    "remove-host": _remove_host,
    "out": _out,
    "in": _in,
}
_FORMS = {
    "set": "{flavor: NAME, key: KEY, value: VALUE}",
    "unset": "{flavor: NAME, key: KEY}",
    "add-host": "{aggregate: NAME, host: NAME}",
    "remove-host": "{aggregate: NAME, host: NAME}",
    "out": "{host: NAME}",
    "in": "{host: NAME}",
}
"""The forms of the changes that are mappings."""


def _part(value: Any, path: Path, others: tuple[str, ...]) -> tuple[KeyedPart, dict[str, Any]]:
    """Return the part of the cloud that the fields name, and the fields."""
    fields = entries.fields(value, path, required=others, optional=tuple(KeyedPart))
    named = [part for part in KeyedPart if part in fields]
    if len(named) != 1:
        raise Mistake(f"expected either a flavor or an aggregate, got {entries.shown(value)}", path)
    return named[0], fields


def _member(value: Any, path: Path) -> tuple[str, str]:
    fields = entries.fields(value, path, required=("aggregate", "host"))
    aggregate, host = (entries.name(fields[key], (*path, key)) for key in ("aggregate", "host"))
    return aggregate, host
