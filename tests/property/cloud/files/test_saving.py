"""Laws of saving and loading a cloud."""

import json
import pathlib
import tempfile
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.aggregates import flag
from steelyard.cloud import Aggregate, Cloud, Flavor, Host, Server
from steelyard.cloud.files.saving import SavedCloud, describe
from steelyard.cloud.values import CPUInfo
from steelyard.groups import Policy, ServerGroup
from steelyard.traits import Inventory, ResourceProvider
from support.examples import examples

# Coverage doubles the time of these tests, and others reach the same lines.
pytestmark = pytest.mark.usefixtures("no_cover")

texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=8),
    st.sampled_from(
        ["~", "true", "4", "1.10", "*", "!", "# a", "a: b", "a\nb", "\x85", "\u2028", ""]
    ),
)
names = texts.filter(lambda name: name != "" and name.isprintable())
numbers = st.integers(0, 10**15 - 1)


uuids = st.uuids().map(str)
units = st.integers(1, 10**15 - 1)
inventories = st.builds(
    Inventory,
    total=numbers,
    used=numbers,
    reserved=numbers,
    min_unit=units,
    max_unit=units | st.just(Inventory(0).max_unit),
    step_size=st.just(1) | units,
    allocation_ratio=st.sampled_from([1.0, 1, 0, 0.1, 16.0]),
)
cpus = st.builds(
    CPUInfo,
    texts,
    texts,
    texts,
    st.frozensets(texts, max_size=3),
    st.dictionaries(texts, numbers, max_size=2),
)


@st.composite
def trees(draw: st.DrawFn) -> tuple[ResourceProvider, ...]:
    """Return providers, each below an earlier one or below none."""
    found: list[ResourceProvider] = []
    for name in draw(st.lists(texts, max_size=3, unique_by=lambda name: name or object())):
        found.append(
            ResourceProvider(
                draw(uuids),
                name,
                draw(st.sampled_from([None, *(each.uuid for each in found)])),
                draw(st.dictionaries(st.sampled_from(["VGPU", "CUSTOM_A"]), inventories)),
                draw(st.sets(st.sampled_from(["CUSTOM_T", "HW_CPU_X86_AVX2"]))),
                draw(st.sets(uuids, max_size=2)),
            )
        )
    return tuple(draw(st.permutations(found)))


@st.composite
def clouds(draw: st.DrawFn) -> Cloud:
    def named(strategy: st.SearchStrategy[Any]) -> dict[str, Any]:
        return draw(st.dictionaries(names, strategy, max_size=3))

    amounts = st.dictionaries(st.sampled_from(["vcpus", "ram_mb", "disk_gb"]), numbers)
    limits = st.dictionaries(st.sampled_from(["vcpus", "ram_mb", "disk_gb"]), units)
    ratios = st.dictionaries(st.sampled_from(["vcpus", "ram_mb", "disk_gb"]), st.floats(0, 1e9))
    hosts = {
        name: Host(name, *described)
        for name, described in named(
            st.tuples(
                numbers,
                numbers,
                numbers,
                st.frozensets(texts, max_size=2),
                texts,
                amounts,
                amounts,
                ratios,
                st.dictionaries(st.sampled_from(["PCPU", "CUSTOM_A"]), numbers),
                texts.filter(lambda text: not text or (text.strip() and flag(text) is None)),
                limits,
                limits,
                limits,
                texts,
                texts,
                st.none() | numbers,
                st.none() | cpus,
                st.frozensets(uuids, max_size=2),
                trees(),
            )
        ).items()
    }
    members = st.lists(st.sampled_from(sorted(hosts)), max_size=3) if hosts else st.just([])
    mappings = st.dictionaries(texts, texts, max_size=3)
    aggregates = {
        name: Aggregate(name, metadata, tuple(there), uuid)
        for name, (metadata, there, uuid) in named(st.tuples(mappings, members, texts)).items()
    }
    flavors = {
        name: Flavor(name, vcpus, ram_mb, disk_gb, extra_specs)
        for name, (vcpus, ram_mb, disk_gb, extra_specs) in named(
            st.tuples(numbers, numbers, numbers, mappings)
        ).items()
    }
    groups = {
        name: ServerGroup(name, policy, {}, uuid=f"group {name}")
        for name, policy in named(st.sampled_from(Policy)).items()
    }
    cloud = Cloud(hosts, aggregates, flavors, groups)
    if not (hosts and flavors):
        return cloud
    some = st.tuples(
        st.sampled_from(sorted(hosts)),
        st.sampled_from(sorted(flavors)),
        st.sampled_from([None, *sorted(groups)]),
        texts,
        texts,
        texts,
        mappings,
        st.dictionaries(texts, st.lists(texts, max_size=3).map(tuple), max_size=2),
    )
    return cloud.with_servers(
        Server(f"server {name}", name, flavors[flavor], host, *described)
        for name, (host, flavor, *described) in named(some).items()
    )


@settings(max_examples=examples(30))
@given(clouds(), st.sampled_from([".yaml", ".json"]))
def test_saved_cloud_loads_unchanged(cloud: Cloud, suffix: str) -> None:
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory, f"cloud{suffix}")
        path.write_text(json.dumps({"hosts": {}}))
        SavedCloud(path).save(cloud)
        found = SavedCloud(path)
    assert not found.unkept
    assert found.cloud.hosts == cloud.hosts
    assert found.cloud.flavors == cloud.flavors
    assert found.cloud.server_groups == cloud.server_groups
    assert found.cloud.servers == cloud.servers
    assert describe(found.cloud) == describe(cloud)
    for section in ("hosts", "aggregates", "flavors", "server_groups", "servers"):
        assert list(getattr(found.cloud, section)) == list(getattr(cloud, section))
