"""Answers of Nova and Placement as values."""

from typing import Any

import pytest

from steelyard.live.answers import (
    Hypervisor,
    ListedProvider,
    SeenFlavor,
    SeenInventory,
    SeenServer,
    inventories,
    listed,
    traits,
    usages,
)

RECORD = {
    "id": "u",
    "hypervisor_hostname": "n",
    "service": {"host": "h", "disabled_reason": None},
    "status": "enabled",
    "state": "up",
    **{f"{name}{end}": 1 for name in ("vcpus", "memory_mb", "local_gb") for end in ("", "_used")},
}


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, ""),
        ({"status": "disabled"}, "disabled"),
        ({"state": "down"}, "down"),
        (
            {
                "status": "disabled",
                "state": "down",
                "service": {"host": "h", "disabled_reason": "x"},
            },
            "disabled: x; down",
        ),
    ],
)
def test_hypervisor_state_gives_out_of_service_reason(more: dict[str, Any], said: str) -> None:
    assert Hypervisor.of(RECORD | more).out_of_service == said


@pytest.mark.parametrize("amount", [-1, None, "1", 1.5, True, 10**15])
def test_hypervisor_rejects_invalid_amount(amount: Any) -> None:
    with pytest.raises(ValueError, match="expected a whole number from 0 to 999999999999999"):
        Hypervisor.of(RECORD | {"vcpus": amount})


def test_hypervisor_rejects_invalid_text() -> None:
    with pytest.raises(ValueError, match="id: expected text, got None"):
        Hypervisor.of(RECORD | {"id": None})


@pytest.mark.parametrize("ratio", [float("inf"), float("nan"), -1, 10**400, "2", None])
def test_inventories_reject_invalid_ratio(ratio: Any) -> None:
    answer = {"inventories": {"VCPU": {"total": 8, "allocation_ratio": ratio}}}
    with pytest.raises(ValueError, match=r"^VCPU: allocation_ratio: expected a finite number"):
        inventories(answer)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"extra_specs": {"ssd": 7}}, "ssd: expected text, got 7"),
        ({"extra_specs": ["ssd"]}, r"extra_specs: expected an object, got \['ssd'\]"),
        ({"swap": "much"}, "swap: expected a whole number"),
        ({"vcpus": None}, "vcpus: expected a whole number"),
    ],
)
def test_flavor_error_names_the_field(more: dict[str, Any], said: str) -> None:
    record = {"id": "u", "name": "n", "vcpus": 1, "ram": 1, "disk": 1}
    assert SeenFlavor.of(record).vcpus == 1
    with pytest.raises(ValueError, match=f"^{said}"):
        SeenFlavor.of(record | more)
    with pytest.raises(ValueError, match=r"^ram: missing$"):
        SeenFlavor.of({name: record[name] for name in ("id", "name", "vcpus", "disk")})


def test_null_extra_spec_becomes_empty() -> None:
    record = {"id": "u", "name": "n", "vcpus": 1, "ram": 1, "disk": 1, "extra_specs": {"a": None}}
    assert SeenFlavor.of(record).extra_specs == {"a": ""}


def test_lone_surrogate_is_escaped() -> None:
    record = RECORD | {"service": {"host": "h", "disabled_reason": "\ud800"}, "status": "disabled"}
    assert Hypervisor.of(record).out_of_service == "disabled: \\ud800"


@pytest.mark.parametrize(
    ("swap", "image", "disk"), [("", {}, 13), (0, {}, 13), (1, {}, 14), (2048, "", 5)]
)
def test_server_disk_adds_local_disks(swap: Any, image: Any, disk: int) -> None:
    flavor = {"original_name": "f", "vcpus": 1, "ram": 1, "disk": 10, "ephemeral": 3, "swap": swap}
    found = SeenServer.of({"id": "u", "name": "s", "flavor": flavor, "image": image})
    assert found.flavor.disk_gb == disk
    assert (found.host, found.from_volume) == ("", image == "")
    assert found.flavor.extra_specs is None


def test_placement_responses_are_parsed() -> None:
    whole = {"total": 8, "reserved": 1, "allocation_ratio": 4.0, "max_unit": 8, "min_unit": 1}
    found = inventories({"inventories": {"VCPU": whole, "PCPU": {"total": 4, "max_unit": 2}}})
    assert found == {"VCPU": SeenInventory(8, 1, 4.0, 1, 8), "PCPU": SeenInventory(4, max_unit=2)}
    assert usages({"usages": {"VCPU": 3}}) == {"VCPU": 3}
    assert traits({"traits": ["CUSTOM_A"]}) == {"CUSTOM_A"}
    records = [
        {"uuid": "a", "root_provider_uuid": None, "name": "node"},
        {"uuid": "b", "root_provider_uuid": "a", "parent_provider_uuid": "a"},
    ]
    assert listed({"resource_providers": records}) == {
        "a": ListedProvider("a", "node", None, "a"),
        "b": ListedProvider("b", "", "a", "a"),
    }
