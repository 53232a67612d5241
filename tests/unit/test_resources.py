import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.resources import described, flavor_amounts, flavor_disk, quantity


@pytest.mark.parametrize(
    ("resource_class", "amount", "text"),
    [
        ("VCPU", 1, "1 vCPU"),
        ("VCPU", 0, "0 vCPUs"),
        ("VCPU", 4, "4 vCPUs"),
        ("VCPU", 0.5, "0.5 vCPUs"),
        ("MEMORY_MB", 512, "512 MiB of RAM"),
        ("MEMORY_MB", 1024, "1 GiB of RAM"),
        ("MEMORY_MB", 32768, "32 GiB of RAM"),
        ("MEMORY_MB", 1536, "1.5 GiB of RAM"),
        ("MEMORY_MB", 257432, "251.4 GiB of RAM"),
        ("DISK_GB", 1, "1 GiB of disk"),
        ("CUSTOM_GPU", 2, "2 CUSTOM_GPU"),
    ],
)
def test_quantity_has_a_unit(resource_class: str, amount: float, text: str) -> None:
    assert described(resource_class, amount) == text


@given(
    st.sampled_from(["VCPU", "MEMORY_MB", "DISK_GB", "CUSTOM_GPU"]),
    st.integers(1, 10**7),
    st.floats(0, 10**7, exclude_min=True) | st.integers(1, 10**7) | st.sampled_from([1e-9, 1e-14]),
)
def test_rounded_demand_differs_from_a_smaller_supply(
    resource_class: str, wanted: int, missing: float
) -> None:
    left = min(wanted - missing, math.nextafter(wanted, 0))
    read = quantity(resource_class, left, math.floor), quantity(resource_class, wanted, math.ceil)
    assert read[0] != read[1]


@pytest.mark.parametrize(("swap_mb", "disk"), [(0, 13), (1, 14), (1024, 14), (1025, 15)])
def test_disk_of_a_flavor_includes_swap_rounded_up(swap_mb: int, disk: int) -> None:
    assert flavor_disk(10, 3, swap_mb) == disk


@pytest.mark.parametrize(("key", "value"), [("CUSTOM_B", "some"), ("CUSTOM_B", "-1"), ("b", "1")])
def test_amounts_of_a_flavor_leave_out_only_the_malformed_one(key: str, value: str) -> None:
    specs = {"resources:VCPU": "3", f"resources:{key}": value, "resources1:CUSTOM_A": "2"}
    flavor = {"vcpus": 4, "memory_mb": 512, "extra_specs": specs}
    assert flavor_amounts(flavor) == {"VCPU": 3, "MEMORY_MB": 512, "CUSTOM_A": 2}
