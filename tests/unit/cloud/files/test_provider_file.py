"""Provider files: what they may contain, and mistakes in them with their place."""

import io
import json
import pathlib
from typing import Any

import pytest

from steelyard.cloud import Cloud, load_providers, model
from steelyard.cloud.derived_uuids import uuid_of
from steelyard.errors import InvalidCloud
from steelyard.traits import Inventory, ProviderTrees, ResourceProvider

ROOT, CHILD = (f"5e08ea53-c4c6-448e-9334-ac4953de3cf{digit}" for digit in "ab")

# The parts of Placement's answers at microversion 1.39, put together.
OF_PLACEMENT = {
    "resource_providers": [
        {
            "uuid": CHILD,
            "name": "card",
            "parent_provider_uuid": ROOT,
            "root_provider_uuid": ROOT,
            "generation": 3,
            "links": [{"rel": "self", "href": "/placement/resource_providers/..."}],
            "inventories": {
                "VGPU": {
                    "total": 4,
                    "reserved": 1,
                    "min_unit": 1,
                    "max_unit": 2,
                    "step_size": 1,
                    "allocation_ratio": 1.5,
                }
            },
            "usages": {"VGPU": 2},
            "traits": ["CUSTOM_A"],
            "aggregates": [ROOT],
        },
        {
            "uuid": ROOT,
            "name": "node",
            "parent_provider_uuid": None,
            "inventories": {},
            "usages": {},
            "traits": [],
            "aggregates": [],
        },
    ]
}


def read(text: str, name: str = "p.yaml") -> Any:
    return model.read_either(io.StringIO(text), name)


def values(trees: ProviderTrees[ResourceProvider]) -> list[ResourceProvider]:
    return [provider for provider, _ in trees.pairs]


@pytest.mark.parametrize("name", ["p.json", "p.yaml"])
def test_read_accepts_the_parts_of_placements_answers(name: str) -> None:
    inventory = Inventory(4, 2, 1, max_unit=2, allocation_ratio=1.5)
    assert values(read(json.dumps(OF_PLACEMENT), name)) == [
        ResourceProvider(CHILD, "card", ROOT, {"VGPU": inventory}, {"CUSTOM_A"}, {ROOT}),
        ResourceProvider(ROOT, "node"),
    ]


def test_read_derives_uuids_from_names() -> None:
    child, root = values(
        read(
            "resource_providers:\n- {name: card, parent: node}\n"
            "- {name: node, inventories: {VCPU: {total: 8}}}\n"
        )
    )
    assert (child.uuid, child.parent) == (uuid_of("card"), uuid_of("node"))
    assert root.inventories == {"VCPU": Inventory(8)}


def test_read_without_names_uses_uuids() -> None:
    child, root = values(
        read(
            f"resource_providers:\n- {{uuid: {CHILD}, parent_provider_uuid: {ROOT}}}\n"
            f"- {{uuid: {ROOT}, parent_provider_uuid: null}}\n"
        )
    )
    assert (child.parent, root.parent, root.name) == (ROOT, None, "")


def test_read_still_accepts_a_cloud() -> None:
    assert isinstance(read("hosts: {}"), Cloud)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            "resource_providers: {}",
            "p.yaml:1: resource_providers: expected a list of resource providers, got {}",
        ),
        ("resource_providers: []\nhosts: {}", "p.yaml:2: hosts: unknown key 'hosts'"),
        ("resource_providers:\n- x", "p.yaml:2: resource_providers.0: expected a mapping"),
        ("resource_providers:\n- {}", "missing keys 'name' and 'uuid'; write at least one"),
        ("resource_providers:\n- {name: ''}", "missing keys 'name' and 'uuid'; write at least one"),
        (
            f"resource_providers:\n- {{name: a, uuid: {ROOT}}}\n- {{uuid: {ROOT.upper()}}}",
            f"p.yaml:3: resource_providers.1.uuid: duplicate UUID '{ROOT}'",
        ),
        (
            "resource_providers:\n- {name: a, parent: b}\n- {name: b, parent: a}",
            "provider 'b': its parent 'a' is below it; expected a tree",
        ),
        (
            f"resource_providers:\n- {{name: a, parent: a, parent_provider_uuid: {ROOT}}}",
            "p.yaml:2: .*both 'parent' and 'parent_provider_uuid' are given; remove one",
        ),
        (
            "resource_providers:\n- {name: a, traits: [CUSTOM_A, custom_b]}",
            "p.yaml:2: resource_providers.0.traits.1: invalid trait 'custom_b': expected 1 to 255",
        ),
        ("resource_providers:\n- {name: a, trait: []}", "unknown key 'trait'; did you mean 'tr"),
        ("resource_providers:\n- {name: a}\n- {name: a}", "p.yaml:3: .*duplicate name 'a'"),
        ("resource_providers:\n- {uuid: x}", "resource_providers.0: uuid: invalid UUID 'x'"),
        (
            "resource_providers:\n- {name: a, parent: b}",
            "0.parent: no provider 'b'; available: 'a'",
        ),
        (
            f"resource_providers:\n- {{name: a, parent_provider_uuid: {ROOT}}}",
            f"p.yaml:2: .*0.parent_provider_uuid: no provider has the UUID {ROOT}; add the whole tree",
        ),
        (
            "resource_providers:\n- {name: a, usages: {VCPU: 1}}",
            "0.usages.VCPU: no inventory of 'VCPU'; there are none",
        ),
        (
            "resource_providers:\n- name: a\n  inventories:\n    VCPU: {total: many}",
            "p.yaml:4: resource_providers.0.inventories.VCPU.total: expected a whole number",
        ),
        (
            "resource_providers:\n- {name: a, inventories: {VCPU: {total: 8, max_unit: 0}}}",
            "VCPU.max_unit: expected a whole number from 1",
        ),
        (
            "resource_providers:\n- {name: a, inventories: {VCPU: {}}}",
            "VCPU: missing key 'total'",
        ),
        (
            "resource_providers:\n- {name: a, inventories: {vcpu: {total: 1}}}",
            "invalid resource class 'vcpu'",
        ),
    ],
)
def test_read_rejects_mistakes_with_their_place(text: str, why: str) -> None:
    with pytest.raises(InvalidCloud, match=why):
        read(text)


def test_load_providers_reads_a_file(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "p.json"
    path.write_text(json.dumps(OF_PLACEMENT))
    assert [root.name for root in load_providers(path).roots] == ["node"]
    path.write_text('{"hosts": {}}')
    with pytest.raises(InvalidCloud, match="missing key 'resource_providers': this is a cloud fi"):
        load_providers(path)
    with pytest.raises(InvalidCloud, match="No such file"):
        load_providers(tmp_path / "missing.json")
