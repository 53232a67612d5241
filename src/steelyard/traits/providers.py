"""Resource providers as values, with the fields of Placement."""

import dataclasses
from collections.abc import Collection, Mapping, Set
from typing import Any, Protocol

from steelyard import errors
from steelyard.resources import check_class
from steelyard.text import uuids
from steelyard.traits import arguments
from steelyard.traits.frozen import FrozenMapping, freeze

UNLIMITED = 2**31 - 1  # Placement's default of max_unit

# More than any provider has, and small enough for their product to be a float.
_GREATEST = 2**63 - 1
_GREATEST_RATIO = 3.40282e38

_AMOUNTS = ("total", "used", "reserved", "min_unit", "max_unit", "step_size")


class InventoryLike(Protocol):
    """The amounts of one resource class on a provider, with Placement's names."""

    @property
    def total(self) -> int: ...

    @property
    def used(self) -> int: ...

    @property
    def reserved(self) -> int: ...

    @property
    def min_unit(self) -> int: ...

    @property
    def max_unit(self) -> int: ...

    @property
    def step_size(self) -> int: ...

    @property
    def allocation_ratio(self) -> float: ...


class ProviderLike(Protocol):
    """A resource provider: any object with these attributes."""

    @property
    def uuid(self) -> str: ...

    @property
    def name(self) -> str: ...

    @property
    def parent(self) -> str | None:
        """The UUID of the parent; None for the root of a tree."""

    @property
    def inventories(self) -> Mapping[str, InventoryLike]:
        """The inventories by resource class."""

    @property
    def traits(self) -> Collection[str]: ...

    @property
    def aggregates(self) -> Collection[str]:
        """The UUIDs of the provider's aggregates."""


@dataclasses.dataclass(frozen=True, slots=True)
class Inventory:
    """The amounts of one resource class on a provider.

    ``used`` is the sum of all allocations; the other fields are those of an inventory in Placement.
    Raises InvalidProvider if a field is malformed.
    """

    total: int
    used: int = 0
    reserved: int = 0
    min_unit: int = 1
    max_unit: int = UNLIMITED
    step_size: int = 1
    allocation_ratio: float = 1.0

    def __post_init__(self) -> None:
        for name in _AMOUNTS:
            least = 1 if name in ("min_unit", "max_unit", "step_size") else 0
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= _GREATEST:
                raise _unexpected(name, value, f"a whole number from {least} to {_GREATEST}")
        ratio = self.allocation_ratio
        if type(ratio) not in (int, float) or not 0 <= ratio <= _GREATEST_RATIO:
            raise _unexpected("allocation_ratio", ratio, f"a number from 0 to {_GREATEST_RATIO}")

    @property
    def capacity(self) -> int:
        """The amount that can be allocated in all, after overcommitment."""
        return int((self.total - self.reserved) * self.allocation_ratio)

    @property
    def largest(self) -> int:
        """The largest amount that one consumer can still get; not below 0."""
        return max(min(self.capacity - self.used, self.max_unit), 0)

    def admits(self, amount: int) -> bool:
        """Return whether a group can get this amount."""
        return self.min_unit <= amount <= self.largest and amount % self.step_size == 0


@dataclasses.dataclass(frozen=True, slots=True)
class ResourceProvider:
    """A resource provider, with its inventories, traits and aggregates.

    Raises InvalidProvider if a field is malformed.
    """

    uuid: str
    name: str = ""
    parent: str | None = None
    """The UUID of the parent; None for the root of a tree."""
    inventories: Mapping[str, Inventory] = dataclasses.field(default_factory=dict)
    """The inventories by resource class."""
    traits: Set[str] = frozenset()
    aggregates: Set[str] = frozenset()
    """The UUIDs of the provider's aggregates in Placement."""

    def __post_init__(self) -> None:
        freeze(self, "uuid", _uuid("uuid", self.uuid))
        where = f"provider {self.uuid}"
        arguments.instance(f"{where}: name", self.name, str, "text", errors.InvalidProvider)
        if self.parent is not None:
            freeze(self, "parent", _uuid(f"{where}: parent", self.parent))
        freeze(self, "inventories", FrozenMapping(_inventories(where, self.inventories)))
        traits = _members(f"{where}: traits", self.traits, "names of traits")
        for trait in traits:
            arguments.instance(f"{where}: traits", trait, str, "text", errors.InvalidProvider)
        freeze(self, "traits", frozenset(traits))
        aggregates = _members(f"{where}: aggregates", self.aggregates, "UUIDs of aggregates")
        freeze(
            self,
            "aggregates",
            frozenset(_uuid(f"{where}: aggregates", each) for each in aggregates),
        )

    @classmethod
    def like(cls, provider: ProviderLike) -> "ResourceProvider":
        """Return the value with the attributes of this object."""
        if isinstance(provider, cls):
            return provider
        return cls(**_attributes(cls, "a provider", provider))

    def admits(self, resource_class: str, amount: int) -> bool:
        """Return whether a group can get this amount of the resource class."""
        inventory = self.inventories.get(resource_class)
        return inventory is not None and inventory.admits(amount)


def _inventories(where: str, value: object) -> dict[str, Inventory]:
    """Return the inventories by resource class."""
    if not isinstance(value, Mapping):
        raise _unexpected(f"{where}: inventories", value, "inventories by resource class")
    found = {}
    for name, inventory in value.items():
        of = f"{where}: inventory of {name!r:.80}"
        try:
            check_class(name)
        except errors.InvalidQuery as error:
            raise errors.InvalidProvider(f"{where}: {error.message}", name) from None
        found[name] = _inventory(of, inventory)
    return found


def _inventory(of: str, inventory: object) -> Inventory:
    """Return the value with the attributes of this object; ``of`` names it in errors."""
    if isinstance(inventory, Inventory):
        return inventory
    fields = _attributes(Inventory, of, inventory)
    with arguments.naming(of):
        return Inventory(**fields)


def _attributes(kind: type[Any], argument: str, thing: object) -> dict[str, Any]:
    """Return the attributes of the thing that are fields of the kind."""
    names = [field.name for field in dataclasses.fields(kind)]
    try:
        return {name: getattr(thing, name) for name in names}
    except AttributeError as error:
        raise _unexpected(
            argument, thing, f"an object with the attributes {', '.join(names)}"
        ) from error


def _uuid(argument: str, value: object) -> str:
    """Return the UUID in its canonical form."""
    text = arguments.instance(argument, value, str, "a UUID as text", errors.InvalidProvider)
    try:
        return uuids.read(text)
    except ValueError as error:
        raise errors.InvalidProvider(f"{argument}: {error}", text) from None


def _members(argument: str, value: object, expected: str) -> list[Any]:
    return arguments.members(argument, value, f"a set of {expected}", errors.InvalidProvider)


def _unexpected(argument: str, value: object, expected: str) -> errors.InvalidQuery:
    return arguments.unexpected(argument, value, expected, errors.InvalidProvider)
