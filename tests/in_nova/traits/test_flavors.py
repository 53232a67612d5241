"""Requests from flavors: equivalent to Nova's own, and accepted by a real Placement."""

import re
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from nova import objects
from nova.scheduler.utils import ResourceRequest

from steelyard.clients.placement import Placement
from steelyard.clients.queries import ask
from steelyard.errors import BadRequest, NotFound
from steelyard.traits import CandidatesRequest, ProvidersRequest
from support.examples import examples
from support.nova import placements
from support.nova.placements import Group

objects.register_all()

CLASSES = ["VCPU", "PCPU", "MEMORY_MB", "DISK_GB", "VGPU"]


@pytest.fixture(scope="module")
def placement() -> Iterator[Any]:
    with placements.placement() as client:
        yield client


suffixes = st.sampled_from(["", "", "1", "_NET"])
traits = st.dictionaries(
    st.builds("trait{}:{}".format, suffixes, st.sampled_from(placements.TRAITS)),
    st.sampled_from(["required", "forbidden"]),
    max_size=4,
)
resources = st.dictionaries(
    st.builds("resources{}:{}".format, suffixes, st.sampled_from(CLASSES)),
    st.sampled_from(["0", "1", "2", "64"]),
    max_size=4,
)
policies = st.sampled_from([{}, {"group_policy": "none"}, {"group_policy": "isolate"}])
extra_specs = st.builds(lambda *parts: parts[0] | parts[1] | parts[2], traits, resources, policies)
images = st.lists(st.sampled_from(placements.TRAITS), max_size=2, unique=True)
sizes = st.sampled_from([0, 1, 512, 1025])


@st.composite
def flavors(draw: st.DrawFn) -> Any:
    return objects.Flavor(
        vcpus=draw(st.integers(1, 4)),
        memory_mb=draw(st.sampled_from([512, 2048])),
        root_gb=draw(st.integers(0, 2)),
        ephemeral_gb=draw(st.integers(0, 1)),
        swap=draw(sizes),
        extra_specs=draw(extra_specs),
    )


def request(flavor: Any, required: list[str]) -> CandidatesRequest | None:
    """Return the request for the flavor, or None if steelyard rejects it."""
    image = objects.ImageMeta(properties=objects.ImageMetaProps(traits_required=required))
    try:
        return CandidatesRequest.from_flavor(flavor, image)
    except BadRequest:
        return None


def novas(flavor: Any, required: list[str]) -> ResourceRequest:
    image = objects.ImageMeta(properties=objects.ImageMetaProps(traits_required=required))
    spec = objects.RequestSpec(
        flavor=flavor,
        image=image,
        is_bfv=False,
        requested_resources=[],
        request_level_params=objects.RequestLevelParams(),
    )
    return ResourceRequest.from_request_spec(spec)


def groups(query_string: str) -> dict[str, Group]:
    return placements.groups_of_candidates(query_string, "1.39")[0]


@settings(max_examples=examples(80), suppress_health_check=list(HealthCheck))
@given(flavor=flavors(), required=images)
def test_request_of_a_flavor_is_equivalent_to_novas(
    placement: Any, flavor: Any, required: list[str]
) -> None:
    ours = request(flavor, required)
    theirs = novas(flavor, required)
    # Nova's request also has a limit, which is an option of Nova.
    query = re.sub(r"&?limit=\d+", "", theirs.to_querystring()).lstrip("&")
    if ours is None:  # Placement must then reject Nova's request
        answer = placement.get(f"{CandidatesRequest.path}?{query}", headers=placements.at("1.36"))
        assert answer.status_code == 400, answer.text
        return
    assert groups(query) == groups(ours.query_string())
    assert theirs.group_policy == ours.group_policy


@settings(max_examples=examples(80), suppress_health_check=list(HealthCheck))
@given(flavor=flavors(), required=images)
def test_placement_accepts_the_request_of_a_flavor(
    placement: Any, flavor: Any, required: list[str]
) -> None:
    ours = request(flavor, required)
    assume(ours is not None)
    assert ours
    for version in (ours.microversion, "1.39"):
        answer = placement.get(f"{ours.path}?{ours.query_string()}", headers=placements.at(version))
        assert answer.status_code == 200, answer.text


def test_request_returns_candidates_from_placement(placement: Any) -> None:
    client = Placement(placement)
    assert client.newest == "1.39"
    made = {"name": "gpu", "uuid": "5e08ea53-c4c6-448e-9334-ac4953de3cfa"}
    client.send("POST", "/resource_providers", "1.39", made)
    url = f"/resource_providers/{made['uuid']}/traits"
    body = {"traits": ["CUSTOM_A"], "resource_provider_generation": 0}
    client.send("PUT", url, "1.39", body)
    names = [
        [
            provider["name"]
            for provider in ask(client, ProvidersRequest.parse(query))["resource_providers"]
        ]
        for query in ("required=CUSTOM_A", "required=!CUSTOM_A", "")
    ]
    assert names == [["gpu"], [], ["gpu"]]
    with pytest.raises(BadRequest, match=r"Placement answered 400: .*CUSTOM_NOWHERE"):
        ask(client, ProvidersRequest.parse("required=CUSTOM_NOWHERE"))
    with pytest.raises(NotFound, match="Placement answered 404"):
        client.send("GET", "/resource_providers/nowhere", "1.39")
    assert client.send("DELETE", f"/resource_providers/{made['uuid']}", "1.39") is None
