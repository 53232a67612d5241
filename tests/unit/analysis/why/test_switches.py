"""The options of Nova that decide the request."""

import pathlib

import pytest

from steelyard.analysis.why.switches import Switches
from steelyard.conf.sources import InvalidOption


def read(path: pathlib.Path, text: str) -> Switches:
    file = path / "nova.conf"
    file.write_text(text)
    return Switches.of_files([str(file)])


def test_switches_without_settings_are_novas_defaults(tmp_path: pathlib.Path) -> None:
    found = read(tmp_path, "[DEFAULT]\n")
    assert found == Switches(assumed=False)
    assert Switches().assumed


def test_switches_are_read_from_all_groups(tmp_path: pathlib.Path) -> None:
    text = """
[DEFAULT]
default_schedule_zone = north
[scheduler]
limit_tenants_to_placement_aggregate = true
max_placement_results = 50
[filter_scheduler]
enabled_filters = ComputeFilter, NUMATopologyFilter
weight_classes = nova.scheduler.weights.ram.RAMWeigher
image_properties_default_architecture = aarch64
[workarounds]
disable_fallback_pcpu_query = yes
"""
    assert read(tmp_path, text) == Switches(
        limit_tenants_to_placement_aggregate=True,
        max_placement_results=50,
        enabled_filters=("ComputeFilter", "NUMATopologyFilter"),
        weight_classes=("nova.scheduler.weights.ram.RAMWeigher",),
        image_properties_default_architecture="aarch64",
        default_schedule_zone="north",
        disable_fallback_pcpu_query=True,
        assumed=False,
    )


@pytest.mark.parametrize(
    "line", ["max_placement_results = 0", "image_metadata_prefilter = perhaps"]
)
def test_switches_with_an_invalid_value_name_it(tmp_path: pathlib.Path, line: str) -> None:
    name, _, value = line.partition(" = ")
    with pytest.raises(InvalidOption, match=rf"\[scheduler\] {name} = '{value}'"):
        read(tmp_path, f"[scheduler]\n{line}\n")
