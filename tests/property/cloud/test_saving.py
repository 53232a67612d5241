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
from steelyard.cloud.saving import SavedCloud, describe
from steelyard.groups import Policy, ServerGroup
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


@st.composite
def clouds(draw: st.DrawFn) -> Cloud:
    def named(strategy: st.SearchStrategy[Any]) -> dict[str, Any]:
        return draw(st.dictionaries(names, strategy, max_size=3))

    amounts = st.dictionaries(st.sampled_from(["vcpus", "ram_mb", "disk_gb"]), numbers)
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
            )
        ).items()
    }
    members = st.lists(st.sampled_from(sorted(hosts)), max_size=3) if hosts else st.just([])
    mappings = st.dictionaries(texts, texts, max_size=3)
    aggregates = {
        name: Aggregate(name, metadata, tuple(there))
        for name, (metadata, there) in named(st.tuples(mappings, members)).items()
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
    )
    return cloud.with_servers(
        Server(f"server {name}", name, flavors[flavor], host, group)
        for name, (host, flavor, group) in named(some).items()
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
