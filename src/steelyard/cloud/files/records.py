"""Sections of cloud files: named records with the same fields, read as columns.

A column has the value of one field for every record. ``read`` converts equal values of a column
once, so they are shared, but only says whether there is a mistake. ``read_each`` converts one
record after another and finds the mistake.
"""

import operator
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from steelyard.cloud.files import entries
from steelyard.cloud.files.syntax import Path


class _Absent:
    """The value of a field that a record leaves out."""


_ABSENT = _Absent()


class Field(NamedTuple):
    """A field of the records of a section."""

    parse: Callable[..., Any]
    """The conversion of a value at a path and, if ``beside`` is given, of the value beside it."""

    default: Any = _ABSENT
    """The converted value of records without the field. Without it, the field is required."""

    beside: str | None = None
    """Another field of the record, whose unconverted value ``parse`` needs; None if absent."""


RecordFields = Mapping[str, Field]
Columns = Sequence[Sequence[Any]]
Reader = Callable[[str, Mapping[str, Any], RecordFields], Columns]


def read(section: str, records: Mapping[str, Any], fields: RecordFields) -> Columns:
    """Return a column for each field.

    Raises a Mistake if ``read_each`` would, but without the place and the mistake's own message.
    """
    values = list(records.values())
    for value in values if set(map(type, values)) - {dict} else ():
        entries.mapping(value, (section,))
    shapes = set(map(tuple, values))
    for shape in shapes:
        _check(dict.fromkeys(shape), (section,), fields)
    return [_column(name, field, values, shapes) for name, field in fields.items()]


def read_each(section: str, records: Mapping[str, Any], fields: RecordFields) -> Columns:
    """Return a column for each field; raise a Mistake with its place if a record is invalid."""
    columns: list[list[Any]] = [[] for _ in fields]
    for record_name, record in records.items():
        path = (section, record_name)
        found = _check(record, path, fields)
        for column, (name, field) in zip(columns, fields.items(), strict=True):
            beside = () if field.beside is None else (found.get(field.beside),)
            column.append(
                field.parse(found[name], (*path, name), *beside) if name in found else field.default
            )
    return columns


def _check(record: Any, path: Path, fields: RecordFields) -> dict[str, Any]:
    required = [name for name, field in fields.items() if field.default is _ABSENT]
    optional = [name for name, field in fields.items() if field.default is not _ABSENT]
    return entries.fields(record, path, required, optional)


def _column(
    name: str, field: Field, values: Sequence[Mapping[str, Any]], shapes: Collection[Sequence[str]]
) -> Sequence[Any]:
    given = {name in shape for shape in shapes}
    if True not in given:
        return [field.default] * len(values)
    if False in given:
        found = [value.get(name, _ABSENT) for value in values]
    else:
        found = list(map(operator.itemgetter(name), values))
    kinds = set(map(type, found))
    if kinds == {str} and field.parse is entries.text:
        return found
    if field.beside is not None:
        beside = [value.get(field.beside) for value in values]
        pairs = list(zip(found, beside, strict=True))
        return _each_once(map(repr, pairs), pairs, lambda pair: _parsed(field, *pair))
    # Lists and mappings have no hash. Values of the same representation are equal.
    keys = found if kinds <= {str, _Absent} else map(repr, found)
    return _each_once(keys, found, lambda value: _parsed(field, value))


def _parsed(field: Field, value: Any, *beside: Any) -> Any:
    return field.default if value is _ABSENT else field.parse(value, (), *beside)


def _each_once(
    keys: Iterable[str], values: Iterable[Any], parse: Callable[[Any], Any]
) -> Sequence[Any]:
    """Return the values parsed, those with the same key once."""
    keys = list(keys)
    parsed = {key: parse(value) for key, value in dict(zip(keys, values, strict=True)).items()}
    return list(map(parsed.__getitem__, keys))
