"""The fields of hosts that Nova and Placement know besides the capacity."""

import io

import pytest

from steelyard.cloud import Cloud, model
from steelyard.cloud.derived_uuids import uuid_of
from steelyard.cloud.values import CPUInfo
from steelyard.errors import InvalidCloud
from steelyard.traits import Inventory

ROOT = "0f2a9f4e-6c46-4a5b-9b43-0a3a5d6f3e11"


def loaded(fields: str, more: str = "") -> Cloud:
    """Return a cloud with one host that has these fields."""
    host = f"vcpus: 1, ram_mb: 1, disk_gb: 1, uuid: {ROOT}, {fields}"
    return model.read(io.StringIO(f"hosts:\n  h: {{{host}}}\n{more}"), "c.yaml")


def test_load_reads_the_hypervisor_and_its_cpu() -> None:
    cpu = "{arch: x86_64, model: Nehalem, features: [aes, aes], topology: {cores: 4}}"
    host = loaded(
        f"node: h.example, hypervisor_type: QEMU, hypervisor_version: 8002002, cpu_info: {cpu}"
    ).hosts["h"]
    assert (host.node, host.hypervisor_type) == ("h.example", "QEMU")
    assert host.hypervisor_version == 8002002
    assert host.cpu_info == CPUInfo("x86_64", "", "Nehalem", frozenset({"aes"}), {"cores": 4})


def test_load_reads_limits_of_single_servers() -> None:
    host = loaded("resources: {PCPU: 8}, min_units: {PCPU: 2}, max_units: {vcpus: 1}").hosts["h"]
    assert (host.min_units, host.max_units, host.step_sizes) == ({"PCPU": 2}, {"vcpus": 1}, {})


def test_load_reads_the_tree_of_providers_below_the_host() -> None:
    numa, card = (
        loaded(
            f"providers: [{{name: numa0, parent_provider_uuid: {ROOT}, traits: [CUSTOM_N]}}, "
            "{name: card, parent: numa0, inventories: {VGPU: {total: 4, max_unit: 2}}, "
            "usages: {VGPU: 1}}]"
        )
        .hosts["h"]
        .providers
    )
    assert (numa.name, numa.parent, numa.traits) == ("numa0", None, {"CUSTOM_N"})
    assert (card.uuid, card.parent) == (uuid_of("card"), numa.uuid)
    assert card.inventories == {"VGPU": Inventory(4, used=1, max_unit=2)}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ("cpu_info: {vender: Intel}", "h.cpu_info.vender: unknown key 'vender'; did you mean"),
        ("cpu_info: {topology: {cores: many}}", "h.cpu_info.topology.cores: expected a whole"),
        ("hypervisor_version: 8.2", "h.hypervisor_version: expected a whole number"),
        ("min_units: {vcpus: 0}", "h.min_units.vcpus: expected a whole number from 1 to"),
        ("step_sizes: {VGPU: 1}", "h.step_sizes.VGPU: unknown key 'VGPU'"),
        ("placement_aggregates: [rack]", "h.placement_aggregates.0: invalid UUID 'rack'"),
        ("providers: {name: a}", 'h.providers: expected a list of resource providers, got {"name'),
        ("providers: [{name: a, trait: []}]", "h.providers.0.trait: unknown key 'trait'"),
        (
            "providers: [{name: a, parent: b}, {name: b, parent: a}]",
            "h.providers: provider 'b': its parent 'a' is below it",
        ),
        (
            f"providers: [{{name: a, parent_provider_uuid: {uuid_of('x')}}}]",
            f"h.providers.0.parent_provider_uuid: no provider has the UUID {uuid_of('x')}",
        ),
    ],
)
def test_load_names_the_place_of_a_mistake(fields: str, message: str) -> None:
    with pytest.raises(InvalidCloud) as caught:
        loaded(fields)
    assert f"c.yaml:2: hosts.{message}" in str(caught.value)


def test_load_rejects_one_provider_on_two_hosts() -> None:
    card = f"providers: [{{uuid: {uuid_of('card')}}}]"
    with pytest.raises(InvalidCloud) as caught:
        loaded(card, f"  other: {{vcpus: 1, ram_mb: 1, disk_gb: 1, {card}}}\n")
    assert (
        f"c.yaml:3: hosts.other.providers: duplicate UUID '{uuid_of('card')}': a provider of host "
        f"'h' has it too" in str(caught.value)
    )
