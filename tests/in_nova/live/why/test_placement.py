"""A real Placement, asked for candidates as the search for a repair asks it."""

from collections.abc import Iterator
from typing import Any
from unittest import mock

import pytest
from placement import microversion

from steelyard.analysis.why.placement_view import ClassUsage
from steelyard.clients import Placement
from steelyard.errors import BadRequest, ServiceError
from steelyard.live.why.placement import LivePlacement
from steelyard.traits import CandidatesRequest, ProvidersRequest
from support.nova import placements

AGGREGATE = "5e08ea53-c4c6-448e-9334-ac4953de3cfa"
PLAIN, SHARING_HOST, STORAGE, CARD = (f"00000000-0000-4000-8000-00000000000{n}" for n in range(4))
SHARES = "MISC_SHARES_VIA_AGGREGATE"
COMPUTE = {"VCPU": {"total": 8}, "MEMORY_MB": {"total": 4096, "reserved": 96}}
DISK = {"DISK_GB": {"total": 100, "allocation_ratio": 1.5}}
WHOLE = "resources=VCPU:1,MEMORY_MB:512,DISK_GB:1"
LATEST = placements.at("1.39")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    """Yield a client of a Placement with two hosts and storage that they share.

    One host has a card; the other host shares its own disk, too.
    """
    with placements.placement() as made:
        for uuid, parent, inventories, traits in (
            (PLAIN, None, COMPUTE, ["CUSTOM_A"]),
            (SHARING_HOST, None, COMPUTE | DISK, [SHARES]),
            (STORAGE, None, DISK, [SHARES]),
            (CARD, PLAIN, {"VGPU": {"total": 2}}, ["CUSTOM_B"]),
        ):
            body: dict[str, Any] = {"name": uuid, "uuid": uuid, "parent_provider_uuid": parent}
            assert made.post("/resource_providers", json=body, headers=LATEST).status_code == 200
            contents: list[tuple[str, Any]] = [("inventories", inventories), ("traits", traits)]
            if uuid in (PLAIN, STORAGE):
                contents.append(("aggregates", [AGGREGATE]))
            for generation, (what, value) in enumerate(contents):
                body = {what: value, "resource_provider_generation": generation}
                url = f"/resource_providers/{uuid}/{what}"
                assert made.put(url, json=body, headers=LATEST).status_code == 200
        used = {
            "allocations": {PLAIN: {"resources": {"VCPU": 3}}},
            "project_id": "someone",
            "user_id": "else",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        url = "/allocations/10000000-0000-4000-8000-000000000001"
        assert made.put(url, json=used, headers=LATEST).status_code == 204
        yield made


def candidates(live: LivePlacement, query: str) -> Any:
    return live.candidates(CandidatesRequest.parse(query))


def test_candidates_have_roots_that_do_not_only_share(client: Any) -> None:
    live = LivePlacement(Placement(client))
    found = candidates(live, WHOLE)
    assert found.roots.keys() == {PLAIN, SHARING_HOST}
    assert found.requests == 2
    assert candidates(live, "resources=VCPU:1,VGPU:1").roots.keys() == {PLAIN}
    assert candidates(live, "resources=VCPU:9").roots == {}


def test_root_has_its_own_capacity_usage_and_traits(client: Any) -> None:
    found = candidates(LivePlacement(Placement(client)), "resources=VCPU:1,VGPU:1")
    root = found.roots[PLAIN]
    assert root.supplies == {
        "VCPU": ClassUsage(8, 3),
        "MEMORY_MB": ClassUsage(4000, 0),
    }
    assert root.traits == {"CUSTOM_A"}


def test_limit_bounds_candidates(client: Any) -> None:
    found = candidates(LivePlacement(Placement(client)), f"{WHOLE}&limit=1")
    assert len(found.roots) == found.requests == 1


def test_providers_are_counted_by_root(client: Any) -> None:
    live = LivePlacement(Placement(client))
    assert live.providers(ProvidersRequest.parse("required=CUSTOM_B")) == {PLAIN}
    assert live.providers(ProvidersRequest.parse("required=!CUSTOM_A")) == {
        PLAIN,
        SHARING_HOST,
        STORAGE,
    }


def test_unknown_names_are_bad_requests(client: Any) -> None:
    live = LivePlacement(Placement(client))
    with pytest.raises(BadRequest, match=r"No such trait.*CUSTOM_NEVER"):
        candidates(live, f"{WHOLE}&required=CUSTOM_NEVER")
    with pytest.raises(BadRequest, match=r"CUSTOM_NEVER"):
        live.providers(ProvidersRequest.parse("required=CUSTOM_NEVER"))
    with pytest.raises(BadRequest, match=r"CUSTOM_WIDGET"):
        candidates(live, "resources=CUSTOM_WIDGET:1")


@pytest.mark.parametrize(
    ("newest", "message"),
    [
        ("1.31", r"^this Placement supports up to 1\.31: .*; upgrade Placement$"),
        ("1.16", r"^this Placement supports up to microversion 1\.16, and the traits"),
    ],
)
def test_placement_older_than_the_request_is_no_bad_request(
    client: Any, newest: str, message: str
) -> None:
    versions = microversion.VERSIONS[: microversion.VERSIONS.index(newest) + 1]
    with mock.patch.object(microversion, "VERSIONS", versions):
        live = LivePlacement(Placement(client))
        with pytest.raises(ServiceError, match=message):
            candidates(live, f"{WHOLE}&root_required=!COMPUTE_STATUS_DISABLED")


def test_older_placement_has_each_provider_as_its_own_root(client: Any) -> None:
    versions = microversion.VERSIONS[: microversion.VERSIONS.index("1.28") + 1]
    with mock.patch.object(microversion, "VERSIONS", versions):
        found = candidates(LivePlacement(Placement(client)), "resources=VCPU:1")
    assert found.roots.keys() == {PLAIN, SHARING_HOST}
    assert found.roots[PLAIN].supplies["VCPU"] == ClassUsage(8, 3)
