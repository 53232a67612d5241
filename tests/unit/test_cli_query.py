import json
from typing import Any

import pytest

from steelyard import cli
from steelyard.scheduler import Cloud, Host
from steelyard.scheduler.host_state import host_states
from steelyard.scheduler.selecting import DescribedProviders
from steelyard.traits import CandidatesRequest, ProvidersRequest, RequestGroup, TraitQuery

CLOUD = """\
hosts:
  plain: {vcpus: 4, ram_mb: 4096, disk_gb: 100}
  gpu: {vcpus: 4, ram_mb: 4096, disk_gb: 100, traits: [CUSTOM_GPU]}
  full: {vcpus: 4, ram_mb: 1024, disk_gb: 100}
flavors:
  small: {vcpus: 1, ram_mb: 1024, disk_gb: 10, extra_specs: {"trait:CUSTOM_GPU": forbidden}}
  odd: {vcpus: 1, ram_mb: 1024, disk_gb: 10, extra_specs: {"trait:CUSTOM_GPU": unwanted}}
servers:
  s: {host: full, flavor: small}
"""


@pytest.fixture
def cloud(tmp_path: Any) -> Any:
    path = tmp_path / "cloud.yaml"
    path.write_text(CLOUD)
    return str(path)


@pytest.fixture
def query(capsys: Any) -> Any:
    def run(*argv: str) -> tuple[int, Any, str]:
        status = cli.main(["query", *argv, "-f", "json"])
        out, err = capsys.readouterr()
        return status, json.loads(out) if status == 0 else out, err

    return run


def test_a_request_is_written(query: Any) -> None:
    status, found, _ = query("--required", "A,!B", "--resources", "VCPU:1")
    assert status == 0
    assert found == {
        "Request": "GET /allocation_candidates?required=A,!B&resources=VCPU:1",
        "Microversion": "1.22",
    }
    _, found, _ = query("--required", "in:A,B", "--required", "!C", "--providers")
    assert found["Request"] == "GET /resource_providers?required=!C&required=in:A,B"
    assert found["Microversion"] == "1.39"


def test_a_flavor_against_a_cloud(query: Any, cloud: Any) -> None:
    _, found, _ = query("--flavor", "small", "--cloud", cloud, "--against", cloud)
    wanted = "DISK_GB:10,MEMORY_MB:1024,VCPU:1"
    assert found["Request"] == f"GET /allocation_candidates?required=!CUSTOM_GPU&resources={wanted}"
    assert found["Selected"] == ["plain"]
    assert found["Rejected"] == {
        "gpu": ["trait CUSTOM_GPU is forbidden and there"],
        "full": ["MEMORY_MB: 1024 wanted, 0 left"],
    }
    _, again, _ = query("--flavor", "small", "--against", cloud)
    assert again == found


def test_what_described_hosts_do_not_have(query: Any, cloud: Any) -> None:
    uuid = "5e08ea53-c4c6-448e-9334-ac4953de3cfa"
    argv = ("--resources", "VGPU:1", "--member-of", uuid, "--limit", "1", "--against", cloud)
    _, found, _ = query(*argv)
    assert found["Selected"] == []
    assert found["Rejected"]["plain"] == [
        "a described host has no aggregates of Placement's",
        "VGPU: a described host has none",
    ]


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("--resources", "VCPU:5"), "VCPU: 5 wanted at once, the host has 4"),
        (("--resources", "VCPU:17"), "VCPU: 17 wanted, 16 left"),
        (("--providers", "--required", "A"), "trait A is required and not there"),
    ],
)
def test_why_a_host_is_not_selected(query: Any, cloud: Any, argv: Any, why: str) -> None:
    _, found, _ = query(*argv, "--against", cloud)
    assert found["Rejected"]["plain"] == [why]


@pytest.mark.parametrize(
    "asked",
    [
        lambda uuid: ProvidersRequest(uuid=uuid),
        lambda uuid: ProvidersRequest(RequestGroup(in_tree=uuid)),
        lambda uuid: CandidatesRequest({"": RequestGroup({"VCPU": 1}, in_tree=uuid)}),
    ],
)
def test_uuids_of_described_hosts_are_compared(conf: Any, asked: Any) -> None:
    uuid, other = (f"5e08ea53-c4c6-448e-9334-ac4953de3cf{digit}" for digit in "ab")
    hosts = [Host("a", 4, 4096, 100, uuid=uuid.upper()), Host("b", 4, 4096, 100, uuid=other)]
    states = host_states(Cloud({host.name: host for host in [*hosts, Host("c", 4, 4096, 100)]}))
    providers = DescribedProviders(conf)
    found, differs, without = (list(providers.why_not(asked(uuid), state)) for state in states)
    assert found == []
    (said,) = differs
    assert said.endswith(f"is {uuid!r}, the host has the UUID {other!r}")
    (said,) = without
    assert said.endswith(f"is {uuid!r}, the host has no UUID")


def test_what_is_asked_of_the_whole(conf: Any) -> None:
    (state,) = host_states(Cloud({"h": Host("h", 4, 4096, 100, frozenset({"A"}))}))
    providers = DescribedProviders(conf)
    group = RequestGroup({"VCPU": 1})
    apart = {"1": group, "2": group}
    for request, why in (
        (CandidatesRequest({"": group}, root_required=TraitQuery.parse("B")), ["root: trait B is"]),
        (CandidatesRequest(apart, "isolate"), ["groups 1, 2: a described host is one provider"]),
        (CandidatesRequest(apart, "none"), []),
        (ProvidersRequest(name="other"), ["its name is not 'other'"]),
        (ProvidersRequest(name="h"), []),
        (CandidatesRequest({"1": RequestGroup({"VCPU": 9})}), ["VCPU: 9 wanted at once"]),
    ):
        found = list(providers.why_not(request, state))
        assert len(found) == len(why)
        assert all(each.startswith(start) for each, start in zip(found, why, strict=True))


def test_people_read_reasons_by_the_line(cloud: Any, capsys: Any) -> None:
    assert cli.main(["query", "--flavor", "small", "--against", cloud]) == 0
    out = capsys.readouterr().out
    assert "| gpu: trait CUSTOM_GPU is forbidden and there" in out
    assert "| full: MEMORY_MB: 1024 wanted, 0 left" in out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ((), "there are no resources; ask for some, as in VCPU:1"),
        (("--required", "A,b", "--resources", "VCPU:1"), "required: a trait name is 1 to 255"),
        (("--required", "A,b", "--resources", "VCPU:1"), "\n  A,b\n    ^\n"),
        (("--flavor", "small"), "--flavor needs the file that describes it; name it with"),
        (("--flavor", "small", "--required", "A"), "--flavor says it all; leave the other parts"),
        (("--flavor", "smal", "--cloud", "CLOUD"), "there is no flavor 'smal'; did you mean"),
        (("--flavor", "odd", "--cloud", "CLOUD"), "'trait:CUSTOM_GPU' = 'unwanted': a trait is"),
        (("--limit", "1", "--providers"), "limit is for allocation candidates, not for providers"),
        (("--cloud", "CLOUD", "--resources", "VCPU:1"), "--cloud is the file that has the flavor"),
        (("--resources", "VCPU:1", "-c", "Selected"), "there is no column 'Selected'"),
    ],
)
def test_mistakes(query: Any, cloud: Any, argv: Any, said: str) -> None:
    status, _, err = query(*(cloud if arg == "CLOUD" else arg for arg in argv))
    assert status == 2
    assert said in err
