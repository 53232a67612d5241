"""Records of resource providers in files, with the names and the values of Placement."""

from collections.abc import Container, Mapping, Sequence
from typing import Any

from steelyard import errors
from steelyard.cloud.derived_uuids import is_derived, uuid_of
from steelyard.cloud.files import entries
from steelyard.cloud.files.syntax import Mistake, Path
from steelyard.text import uuids as text_uuids
from steelyard.traits import Inventory, ResourceProvider
from steelyard.traits.query import check_name

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

_INVENTORY = Inventory(0)


def parse(records: Any, path: Path, root: str | None = None) -> list[ResourceProvider]:
    """Return the providers in this list; raise a Mistake if one is malformed.

    ``root`` is the UUID of a provider outside of the list. A provider below it has no parent in the
    result, like one whose record names none.
    """
    if not isinstance(records, list):
        raise Mistake(f"expected a list of resource providers, got {entries.shown(records)}", path)
    uuids: dict[str, str] = {}
    taken: set[str | None] = set()
    for index, record in enumerate(records):
        here = (*path, str(index))
        fields = entries.fields(record, here, optional=(*_FIELDS, *_IGNORED))
        name, uuid = _text(fields, "name", here), _text(fields, "uuid", here)
        if not name and not uuid:
            raise Mistake("missing keys 'name' and 'uuid'; write at least one of them", here)
        if name in uuids:
            raise Mistake(f"duplicate name {name!r}", (*here, "name"), text=name)
        canonical = text_uuids.canonical(uuid) if uuid else uuid_of(name)
        if canonical is not None and canonical in taken:
            raise Mistake(f"duplicate UUID {canonical!r}", (*here, "uuid"), text=uuid)
        taken.add(canonical)
        if name:
            uuids[name] = uuid or uuid_of(name)
    found = []
    for index, record in enumerate(records):
        here = (*path, str(index))
        parent = _parent(record, here, uuids, taken, root and text_uuids.canonical(root))
        found.append(_provider(record, here, uuids, parent))
    return found


def _provider(
    record: Mapping[str, Any], path: Path, uuids: Mapping[str, str], parent: str | None
) -> ResourceProvider:
    """Return the provider; ``uuids`` are those of names."""
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
            parent,
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
    record: Mapping[str, Any],
    path: Path,
    uuids: Mapping[str, str],
    taken: Container[str | None],
    root: str | None,
) -> str | None:
    """Return the UUID of the parent, which the file names by its name or by its UUID.

    ``uuids`` are those of names, and ``taken`` those of all providers.
    """
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
    if canonical is not None and canonical == root:
        return None
    if canonical is not None and canonical not in taken:
        raise Mistake(f"no provider has the UUID {canonical}; add the whole tree", path, text=uuid)
    return uuid


def _text(record: Mapping[str, Any], key: str, path: Path) -> str:
    return entries.text(record.get(key, ""), (*path, key))


def describe(providers: Sequence[ResourceProvider]) -> list[dict[str, Any]]:
    """Return the records of these providers, without default values."""
    names = {provider.uuid: provider.name for provider in providers}
    return [_described(provider, names) for provider in providers]


def _described(provider: ResourceProvider, names: Mapping[str, str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if provider.name:
        found["name"] = provider.name
    if not provider.name or not is_derived(provider.uuid, provider.name):
        found["uuid"] = provider.uuid
    if provider.parent is not None:
        name = names.get(provider.parent, "")  # a missing parent is found when it is checked
        found |= {"parent": name} if name else {"parent_provider_uuid": provider.parent}
    if provider.inventories:
        found["inventories"] = {
            of: _described_inventory(each) for of, each in provider.inventories.items()
        }
    usages = {of: each.used for of, each in provider.inventories.items() if each.used}
    if usages:
        found["usages"] = usages
    if provider.traits:
        found["traits"] = sorted(provider.traits)
    if provider.aggregates:
        found["aggregates"] = sorted(provider.aggregates)
    return found


def _described_inventory(inventory: Inventory) -> dict[str, Any]:
    usual = {name: getattr(_INVENTORY, name) for name in (*_AMOUNTS, "allocation_ratio")}
    given = {name: getattr(inventory, name) for name in _AMOUNTS}
    given["allocation_ratio"] = float(inventory.allocation_ratio)
    return {
        "total": inventory.total,
        **{name: value for name, value in given.items() if value != usual[name]},
    }
