"""Laws of converting a live cloud into a cloud file."""

import dataclasses
import io
from uuid import UUID, uuid5

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.cloud import model
from steelyard.cloud.files.saving import as_text, describe
from steelyard.cloud.host_state import host_states
from steelyard.filters.capacity import FreeCapacity
from steelyard.groups import Policy
from steelyard.live.answers import (
    Hypervisor,
    Observed,
    Provider,
    SeenAggregate,
    SeenFlavor,
    SeenGroup,
    SeenInventory,
    SeenServer,
)
from steelyard.live.importing import imported
from steelyard.resources import FIELDS
from steelyard.traits import ResourceProvider
from steelyard.traits.providers import UNLIMITED

# Coverage doubles the time of these tests, and others reach the same lines.
pytestmark = pytest.mark.usefixtures("no_cover")

texts = st.text(st.characters(codec="utf-8"), max_size=4)
names = st.sampled_from(["a", "b", "a (b)", "", "\n", "é", "- *", "a, as servers have it"]) | texts
services = st.sampled_from(["a", "b", "c", "\x00"])
amounts = st.integers(0, 20)
using = st.fixed_dictionaries(
    {},
    optional={
        "resources:VCPU": st.sampled_from(["0", "3", "many"]),
        "resources:CUSTOM_X": st.sampled_from(["1", "2"]),
        "hw:cpu_policy": st.sampled_from(["dedicated", "shared"]),
    },
)
specs = st.dictionaries(texts, texts, max_size=2) | using
by_kind = st.fixed_dictionaries(dict.fromkeys(FIELDS.values(), amounts))
flavors = st.builds(SeenFlavor, st.uuids().map(str), names, amounts, amounts, amounts, specs)


units = st.sampled_from([1, 2, 100, UNLIMITED])


@st.composite
def inventories(draw: st.DrawFn) -> SeenInventory:
    total = draw(st.integers(0, 100))
    ratio = draw(st.sampled_from([0.5, 1.0, 1.5, 16.0, 0.1]))
    reserved = draw(st.integers(0, total))
    return SeenInventory(total, reserved, ratio, draw(units), draw(units), draw(units))


classes = st.sampled_from([*FIELDS, "PCPU", "CUSTOM_X"])
providers = st.builds(
    Provider,
    st.none() | st.dictionaries(classes, inventories()),
    st.none() | st.dictionaries(classes, amounts),
    st.none() | st.frozensets(texts, max_size=2),
    st.frozensets(st.uuids().map(str), max_size=2),
)


@st.composite
def clouds(draw: st.DrawFn) -> Observed:
    uuids = st.uuids().map(str)
    reasons = st.sampled_from(["", "down"]) | st.builds("disabled: {}".format, texts)
    made = st.builds(Hypervisor, uuids, names, services, reasons, by_kind, by_kind)
    hypervisors = draw(st.lists(made, min_size=1, max_size=4, unique_by=lambda each: each.uuid))
    nodes = st.sampled_from([each.node for each in hypervisors])
    listed = draw(st.lists(flavors, max_size=3, unique_by=lambda each: each.name))
    kept = st.sampled_from(listed) | flavors if listed else flavors
    hosts = st.none() | st.just("") | services
    server = st.builds(SeenServer, uuids, names, hosts, nodes, kept, st.booleans())
    servers = draw(st.lists(server, max_size=6))
    members = st.lists(st.sampled_from([each.uuid for each in servers] or ["gone"]), max_size=3)
    policies = st.sampled_from([*map(str, Policy), "", None])
    group = st.builds(SeenGroup, uuids, names, policies, st.just({}), members)
    aggregate = st.builds(SeenAggregate, uuids, names, specs, st.lists(services))
    known = [each.uuid for each in hypervisors]
    seen = draw(st.none() | st.dictionaries(st.sampled_from(known), providers))
    for uuid in seen or ():
        if seen and draw(st.booleans()):
            cards = {"VGPU": draw(inventories()).with_used(draw(amounts))}
            # Placement keeps UUIDs unique.
            card = ResourceProvider(str(uuid5(UUID(uuid), "card")), draw(texts), None, cards)
            seen[uuid] = dataclasses.replace(seen[uuid], nested=(card,))
    return Observed(
        hypervisors,
        draw(st.lists(aggregate, max_size=3)),
        listed,
        draw(st.lists(group, max_size=3)),
        servers,
        seen,
    )


@given(clouds(), st.sampled_from(["cloud.yaml", "cloud.json"]))
def test_imported_cloud_saves_and_loads_unchanged(seen: Observed, name: str) -> None:
    cloud = imported(seen).cloud
    text = as_text(cloud, name)
    assert describe(model.read(io.StringIO(text), name)) == describe(cloud)


@given(clouds())
def test_omitted_servers_have_remark(seen: Observed) -> None:
    result = imported(seen)
    assert len(result.cloud.hosts) == len(seen.hypervisors)
    uuids = {each.uuid for each in seen.servers}
    assert set(result.cloud.servers) <= uuids
    if len(result.cloud.servers) < len(uuids):
        assert any("server" in remark for remark in result.remarks)
    assert len(result.cloud.aggregates) == len({each.uuid for each in seen.aggregates})


@given(clouds())
def test_free_amounts_equal_those_of_placement(seen: Observed) -> None:
    # If servers need more than Placement reports as used, the file has less free, but never more.
    result = imported(seen)
    overrun = {remark.split()[1] for remark in result.remarks if remark.startswith("less ")}
    uuids = {name: host.uuid for name, host in result.cloud.hosts.items()}
    for state in host_states(result.cloud):
        there = (seen.providers or {}).get(uuids[state.host])
        if there is None or there.inventories is None or there.usages is None:
            continue
        for name, supply in FreeCapacity().of(state):
            has = there.inventories.get(name, SeenInventory(0))
            limit = (has.total - has.reserved) * has.allocation_ratio
            left = (limit if name in FIELDS else int(limit)) - there.usages.get(name, 0)
            assert supply.left <= left
            assert supply.left == left or FIELDS.get(name, name) in overrun
