"""Resource providers as values: checked, canonical, immutable, and read from any objects."""

import copy
import dataclasses
import pickle
from types import SimpleNamespace
from typing import Any

import pytest

from steelyard.errors import InvalidProvider
from steelyard.traits import Inventory, ResourceProvider

UUID = "5e08ea53-c4c6-448e-9334-ac4953de3cfa"
OTHER = "42896e0d-205d-4fe3-bd1e-100924931787"
# Untyped, so that mypy allows arguments of wrong types.
Has: Any = Inventory
Provider: Any = ResourceProvider


def provider(**fields: Any) -> ResourceProvider:
    return ResourceProvider(UUID, **fields)


@pytest.mark.parametrize(
    ("inventory", "capacity", "largest"),
    [
        (Inventory(8), 8, 8),
        (Inventory(8, used=3, reserved=1), 7, 4),
        (Inventory(8, used=9), 8, 0),
        (Inventory(8, max_unit=2), 8, 2),
        (Inventory(7, allocation_ratio=1.5), 10, 10),
        (Inventory(2, reserved=4), -2, 0),
    ],
)
def test_inventory_has_capacity_after_overcommitment(
    inventory: Inventory, capacity: int, largest: int
) -> None:
    assert inventory.capacity == capacity
    assert inventory.largest == largest


@pytest.mark.parametrize(
    ("inventory", "amounts"),
    [
        (Inventory(4), [1, 2, 3, 4]),
        (Inventory(8, min_unit=2, max_unit=5), [2, 3, 4, 5]),
        (Inventory(8, step_size=3), [3, 6]),
        (Inventory(4, used=4), []),
    ],
)
def test_inventory_admits_units_and_steps(inventory: Inventory, amounts: list[int]) -> None:
    assert [amount for amount in range(1, 10) if inventory.admits(amount)] == amounts
    one = provider(inventories={"VCPU": inventory})
    assert [amount for amount in range(1, 10) if one.admits("VCPU", amount)] == amounts
    assert not one.admits("VGPU", 1)


def test_provider_has_canonical_uuids() -> None:
    made = ResourceProvider(
        UUID.upper(), parent=OTHER.replace("-", ""), aggregates=frozenset([OTHER.upper()])
    )
    assert (made.uuid, made.parent, made.aggregates) == (UUID, OTHER, frozenset([OTHER]))


def test_provider_is_an_immutable_value() -> None:
    inventories = {"VCPU": Inventory(8)}
    made = provider(inventories=inventories, traits=["CUSTOM_A"])
    inventories["VCPU"] = Inventory(1)
    assert made == provider(inventories={"VCPU": Inventory(8)}, traits={"CUSTOM_A"})
    for same in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), dataclasses.replace(made)):
        assert same == made
        assert hash(same) == hash(made)


def test_like_reads_the_attributes_of_any_object() -> None:
    inventory = SimpleNamespace(**dataclasses.asdict(Inventory(8, used=1)))
    fields = {"name": "n", "parent": OTHER, "traits": {"CUSTOM_A"}, "aggregates": [OTHER]}
    record = SimpleNamespace(uuid=UUID, inventories={"VCPU": inventory}, **fields)
    made = provider(inventories={"VCPU": Inventory(8, used=1)}, **fields)
    assert ResourceProvider.like(record) == made
    assert ResourceProvider.like(made) is made


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda: ResourceProvider("x"), "uuid: invalid UUID 'x': expected one such as"),
        (lambda: Provider(5), "uuid: expected a UUID as text, not 5"),
        (lambda: provider(name=5), f"provider {UUID}: name: expected text, not 5"),
        (lambda: provider(parent="x"), f"provider {UUID}: parent: invalid UUID 'x'"),
        (lambda: provider(traits="CUSTOM_A"), "traits: expected a set of names of traits, not"),
        (lambda: provider(traits=[5]), "traits: expected text, not 5"),
        (lambda: provider(aggregates=["x"]), "aggregates: invalid UUID 'x'"),
        (lambda: provider(inventories=[]), "inventories: expected inventories by resource class"),
        (lambda: provider(inventories={"vcpu": Inventory(1)}), "invalid resource class 'vcpu'"),
        (
            lambda: provider(inventories={"VCPU": 8}),
            "inventory of 'VCPU': expected an object with the attributes total, used, .*, not 8",
        ),
        (lambda: Has("8"), "total: expected a whole number from 0 to .*, not '8'"),
        (lambda: Inventory(8, max_unit=0), "max_unit: expected a whole number from 1 to"),
        (lambda: Inventory(8, used=-1), "used: expected a whole number from 0 to"),
        (lambda: Has(True), "total: expected a whole number"),
        (lambda: Inventory(8, allocation_ratio=-1.0), "allocation_ratio: expected a number from 0"),
        (lambda: Inventory(8, allocation_ratio=float("nan")), "allocation_ratio: expected a num"),
        (lambda: Has(8, allocation_ratio="2"), "allocation_ratio: expected a number"),
        (lambda: Provider.like(5), "a provider: expected an object with the attributes uu"),
    ],
)
def test_constructors_reject_malformed_fields(make: Any, why: str) -> None:
    with pytest.raises(InvalidProvider, match=why):
        make()


def test_malformed_inventory_of_an_object_names_the_provider() -> None:
    wrong = SimpleNamespace(**{**dataclasses.asdict(Inventory(8)), "total": "8"})
    with pytest.raises(
        InvalidProvider, match=f"provider {UUID}: inventory of 'VCPU': total: expected a whole"
    ):
        provider(inventories={"VCPU": wrong})
