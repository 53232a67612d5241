"""Reading of provider files: resource providers with the names and the values of Placement."""

import os
from collections.abc import Container, Mapping
from typing import IO, Any

from steelyard import errors
from steelyard.cloud import entries, garbage, loading, syntax
from steelyard.cloud.syntax import Mistake, Path
from steelyard.text import uuids as text_uuids
from steelyard.traits import Inventory, ProviderTrees, ResourceProvider
from steelyard.traits.query import check_name

SECTION = "resource_providers"

_FIELDS = (
    "uuid",
    "name",
    "parent",
    "parent_provider_uuid",
    "inventories",
    "usages",
    "traits",
    "aggregates",
)
# Parts of Placement's answers that do not matter here.
_IGNORED = ("generation", "links", "root_provider_uuid")

_AMOUNTS = {"reserved": 0, "min_unit": 1, "max_unit": 1, "step_size": 1}
"""The optional amounts of an inventory, each with its lowest value."""


def load(path: str | os.PathLike[str]) -> ProviderTrees[ResourceProvider]:
    """Return the resource providers in a YAML or JSON file.

    Raises InvalidCloud if the file is invalid.
    """
    found = loading.loaded(path, read)
    if isinstance(found, ProviderTrees):
        return found
    raise errors.InvalidCloud(
        f"missing key {SECTION!r}: this is a cloud file; expected a provider file", os.fspath(path)
    )


@garbage.paused()
def read(file: IO[str], name: str) -> ProviderTrees[ResourceProvider] | loading.Described:
    """Return the resource providers in the open file, or the cloud if it is a cloud file.

    ``name`` is the name of the file in errors. A name that ends in ``.json`` means JSON, any other
    YAML.
    """
    content = syntax.parsed(file, name)
    with syntax.placing_mistakes(file, name):
        if isinstance(content, dict) and SECTION in content:
            return _trees(content)
        return loading.described(content)


def _trees(content: Mapping[str, Any]) -> ProviderTrees[ResourceProvider]:
    records = entries.fields(content, (), required=(SECTION,))[SECTION]
    if not isinstance(records, list):
        raise Mistake(
            f"expected a list of resource providers, got {entries.shown(records)}", (SECTION,)
        )
    uuids: dict[str, str] = {}
    taken: set[str | None] = set()
    for index, record in enumerate(records):
        path = (SECTION, str(index))
        fields = entries.fields(record, path, optional=(*_FIELDS, *_IGNORED))
        name, uuid = _text(fields, "name", path), _text(fields, "uuid", path)
        if not name and not uuid:
            raise Mistake("missing keys 'name' and 'uuid'; write at least one of them", path)
        if name in uuids:
            raise Mistake(f"duplicate name {name!r}", (*path, "name"), text=name)
        canonical = text_uuids.canonical(uuid) if uuid else loading.uuid_of(name)
        if canonical is not None and canonical in taken:
            raise Mistake(f"duplicate UUID {canonical!r}", (*path, "uuid"), text=uuid)
        taken.add(canonical)
        if name:
            uuids[name] = uuid or loading.uuid_of(name)
    try:
        return ProviderTrees(
            _provider(record, (SECTION, str(index)), uuids, taken)
            for index, record in enumerate(records)
        )
    except errors.InvalidProvider as error:
        raise Mistake(error.message, (SECTION,), text=error.text) from error


def _provider(
    record: Mapping[str, Any], path: Path, uuids: Mapping[str, str], taken: Container[str | None]
) -> ResourceProvider:
    """Return the provider; ``uuids`` are those of names, and ``taken`` those of all providers."""
    name = _text(record, "name", path)
    inventories = entries.mapping(record.get("inventories", {}), (*path, "inventories"))
    used = entries.mapping(record.get("usages", {}), (*path, "usages"))
    for of in used:
        entries.known("inventory of", of, inventories, (*path, "usages", of))
    traits = entries.texts(record.get("traits", []), (*path, "traits"))
    for index, trait in enumerate(traits):
        try:
            check_name(trait)
        except errors.InvalidTrait as error:
            raise Mistake(error.message, (*path, "traits", str(index)), text=trait) from error
    aggregates = entries.texts(record.get("aggregates", []), (*path, "aggregates"))
    try:
        return ResourceProvider(
            _text(record, "uuid", path) or uuids[name],
            name,
            _parent(record, path, uuids, taken),
            {
                of: _inventory(
                    value,
                    (*path, "inventories", of),
                    entries.number(used.get(of, "0"), (*path, "usages", of)),
                )
                for of, value in inventories.items()
            },
            frozenset(traits),
            frozenset(aggregates),
        )
    except errors.InvalidProvider as error:
        raise Mistake(error.message, path, text=error.text) from error


def _inventory(value: Any, path: Path, used: int) -> Inventory:
    fields = entries.fields(
        value, path, required=("total",), optional=(*_AMOUNTS, "allocation_ratio")
    )
    amounts = {
        name: entries.number(fields[name], (*path, name), least)
        for name, least in {"total": 0, **_AMOUNTS}.items()
        if name in fields
    }
    ratio = entries.ratio(fields.get("allocation_ratio", "1"), (*path, "allocation_ratio"))
    return Inventory(used=used, allocation_ratio=ratio, **amounts)


def _parent(
    record: Mapping[str, Any], path: Path, uuids: Mapping[str, str], taken: Container[str | None]
) -> str | None:
    """Return the UUID of the parent, which the file names by its name or by its UUID."""
    if "parent" in record:
        if "parent_provider_uuid" in record:
            raise Mistake("both 'parent' and 'parent_provider_uuid' are given; remove one", path)
        return uuids[entries.known("provider", record["parent"], uuids, (*path, "parent"))]
    path = (*path, "parent_provider_uuid")
    uuid = record.get("parent_provider_uuid")
    if uuid in (None, "null"):  # in YAML, null is read as text
        return None
    uuid = entries.text(uuid, path)
    canonical = text_uuids.canonical(uuid)
    if canonical is not None and canonical not in taken:
        raise Mistake(f"no provider has the UUID {canonical}; add the whole tree", path, text=uuid)
    return uuid


def _text(record: Mapping[str, Any], key: str, path: Path) -> str:
    return entries.text(record.get(key, ""), (*path, key))
