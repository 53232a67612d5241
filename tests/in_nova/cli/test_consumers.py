"""The commands on the Placement of a cloud, with a real Placement."""

import json
import pathlib
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from steelyard.cloud import Cloud
from support.nova import placements
from support.nova.served_placement import Steelyard, commands_on

AT = placements.at("1.39")
UUIDS = {name: str(uuid.uuid4()) for name in ("a", "b")}
HOSTS = {
    name: {"vcpus": 8, "ram_mb": ram, "disk_gb": 0, "uuid": UUIDS[name]}
    for name, ram in (("a", 8192), ("b", 4096))
}
FLAVORS = {"small": {"vcpus": 2, "ram_mb": 512, "disk_gb": 0}}
HERE = ("--os-cloud", "here")


@pytest.fixture
def database_url(tmp_path: pathlib.Path) -> str:
    return f"sqlite:///{tmp_path}/placement.db"


@pytest.fixture
def placement(database_url: str) -> Iterator[Any]:
    """Yield a client of a Placement with both hosts, the first with only three VCPUs."""
    with placements.placement(database_url) as client:
        for name, vcpus in (("a", 3), ("b", 8)):
            made = {"name": name, "uuid": UUIDS[name]}
            assert client.post("/resource_providers", json=made, headers=AT).ok
            inventories = {"VCPU": {"total": vcpus}, "MEMORY_MB": {"total": 8192}}
            said = {"inventories": inventories, "resource_provider_generation": 0}
            url = f"/resource_providers/{UUIDS[name]}/inventories"
            assert client.put(url, json=said, headers=AT).ok
        yield client


@pytest.fixture
def steelyard(placement: Any, database_url: str, tmp_path: pathlib.Path) -> Iterator[Steelyard]:
    with commands_on(database_url, tmp_path) as made:
        yield made


def write(placement: Any, kind: str | None, user: str) -> None:
    """Write a consumer of one VCPU, with a type or by an API version before types."""
    said = {
        "allocations": {UUIDS["b"]: {"resources": {"VCPU": 1}}},
        "project_id": "p",
        "user_id": user,
        "consumer_generation": None,
        **({} if kind is None else {"consumer_type": kind}),
    }
    headers = placements.at("1.37") if kind is None else AT
    assert placement.put(f"/allocations/{uuid.uuid4()}", json=said, headers=headers).ok


def document(said: tuple[int, str, str]) -> Any:
    status, out, err = said
    assert (status, err) == (0, "")
    return json.loads(out)


def used(kind: str, count: int, **resources: int) -> dict[str, Any]:
    return {"type": kind, "consumers": count, "resources": resources}


def test_usage_counts_consumers_and_resources(placement: Any, steelyard: Steelyard) -> None:
    for kind, user in (("INSTANCE", "u"), ("INSTANCE", "v"), ("MIGRATION", "u"), (None, "u")):
        write(placement, kind, user)
    asked = ("usage", "--project", "p", *HERE)
    assert document(steelyard(*asked, "-f", "json"))["usages"] == [
        used("INSTANCE", 2, VCPU=2),
        used("MIGRATION", 1, VCPU=1),
        used("UNKNOWN", 1, VCPU=1),
    ]
    assert document(steelyard(*asked, "--type", "all", "-f", "json"))["usages"] == [
        used("all", 4, VCPU=4)
    ]
    of_u = ("--user", "u", "-f", "json")
    assert document(steelyard(*asked, "--type", "INSTANCE", *of_u))["usages"] == [
        used("INSTANCE", 1, VCPU=1)
    ]
    assert document(steelyard(*asked, "--type", "UNKNOWN", *of_u))["usages"] == [
        used("UNKNOWN", 1, VCPU=1)
    ]
    assert "| INSTANCE  |         2 | 2 vCPUs   |" in steelyard(*asked)[1]


def test_consumer_types_are_counted_with_possible_typos(
    placement: Any, steelyard: Steelyard
) -> None:
    for kind in ("INSTANCE", "INSTANCE", "INTANCE"):
        write(placement, kind, "u")
    said = steelyard("consumer", "types", "--project", "p", *HERE, "-f", "json")
    assert document(said)["types"] == [
        {"type": "INSTANCE", "consumers": 2, "perhaps_meant": []},
        {"type": "INTANCE", "consumers": 1, "perhaps_meant": ["INSTANCE"]},
    ]
    status, _, err = steelyard("consumer", "types", *HERE)
    assert status == 2
    assert (
        "--os-cloud needs --project: Placement counts the consumers of one project; add --project"
        in err
    )


def test_forbidden_request_is_reported(steelyard: Steelyard) -> None:
    for command in (("usage",), ("consumer", "types")):
        status, out, err = steelyard(*command, "--project", "p", *HERE, token="nobody")
        assert (status, out) == (2, "")
        assert err.startswith("steelyard: Placement answered 403: ")


def test_committed_servers_are_recorded_in_placement(
    placement: Any, steelyard: Steelyard, tmp_path: pathlib.Path
) -> None:
    path = tmp_path / "cloud.json"
    path.write_text(json.dumps({"hosts": HOSTS, "flavors": FLAVORS}))
    schedule = ("schedule", "--cloud", str(path), "--flavor", "small", "--commit", *HERE)
    said = steelyard(*schedule, "--project", "p", "--user", "u", "-f", "json")
    (placed,) = document(said)["servers"]
    assert placed["host"] == "a"
    (consumer,) = Cloud.load(path).servers
    found = placement.get(f"/allocations/{consumer}", headers=AT).json()
    assert (found["consumer_type"], found["project_id"]) == ("INSTANCE", "p")
    assert list(found["allocations"]) == [UUIDS["a"]]
    # The file has room for more, but Placement rejects the allocations, so the file stays.
    before = path.read_text()
    status, _, err = steelyard(*schedule)
    assert (status, "Unable to allocate inventory" in err) == (2, True)
    assert path.read_text() == before
    moved = steelyard("server", "move", "small-1", "--cloud", str(path), *HERE, "-f", "json")
    assert document(moved)["to"] == "b"
    asked = ("usage", "--project", "p", *HERE, "-f", "json")
    assert document(steelyard(*asked))["usages"] == [used("INSTANCE", 1, MEMORY_MB=512, VCPU=2)]
    found = placement.get(f"/allocations/{consumer}", headers=AT).json()
    assert list(found["allocations"]) == [UUIDS["b"]]
