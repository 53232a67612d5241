"""Types of options."""

from typing import Any

import pytest
from oslo_config import cfg

from steelyard.filters.capacity import CapacityFilter
from steelyard.weighers.ram import RAMWeigher


@pytest.mark.parametrize("value", ["nan", "inf", "-inf", "many", "1e999"])
@pytest.mark.parametrize(
    ("plugin", "option"),
    [(RAMWeigher, "ram_weight_multiplier"), (CapacityFilter, "cpu_allocation_ratio")],
)
def test_plugin_with_an_invalid_number_raises_at_start(
    configured: Any, plugin: Any, option: Any, value: Any
) -> None:
    with pytest.raises(cfg.ConfigFileValueError, match=option):
        plugin(configured(f"{option} = {value}"))
