"""The command ``query``: requests for Placement, and their answers from a cloud file."""

import json
from typing import Any

import pytest

from steelyard import cli

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


def test_query_prints_the_request(query: Any) -> None:
    status, found, _ = query("--required", "A,!B", "--resources", "VCPU:1")
    assert status == 0
    assert found == {
        "request": "GET /allocation_candidates?required=A,!B&resources=VCPU:1",
        "microversion": "1.22",
    }
    _, found, _ = query("--required", "in:A,B", "--required", "!C", "--providers")
    assert found["request"] == "GET /resource_providers?required=!C&required=in:A,B"
    assert found["microversion"] == "1.39"


def test_query_combines_repeated_options(query: Any) -> None:
    uuids = [f"5e08ea53-c4c6-448e-9334-ac4953de3cf{digit}" for digit in "ab"]
    status, found, _ = query(
        *("--resources", "VCPU:1", "--resources", "DISK_GB:2,MEMORY_MB:3"),
        *("--required", "A", "--required", "!B"),
        *("--member-of", uuids[0], "--member-of", f"!{uuids[1]}"),
    )
    assert status == 0
    assert found["request"] == (
        f"GET /allocation_candidates?member_of=!{uuids[1]}&member_of={uuids[0]}"
        "&required=A,!B&resources=DISK_GB:2,MEMORY_MB:3,VCPU:1"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["VCPU:1,VCPU:1"], "'VCPU:1' is given twice; give each resource class once"),
        (["VCPU:1", "VCPU:1"], "'VCPU:1' is given twice; give each resource class once"),
        ([","], "empty amount in ','; write amounts as CLASS:AMOUNT, for example "),
        ([""], "empty amount in ''; write amounts as CLASS:AMOUNT, for example "),
        (["VCPU:1", "A:1,"], "empty amount in 'VCPU:1,A:1,'; write amounts as CLASS:AMOUNT"),
    ],
)
def test_query_explains_malformed_resources(query: Any, given: Any, said: str) -> None:
    status, _, err = query(*[word for value in given for word in ("--resources", value)])
    assert status == 2
    assert err.startswith(f"steelyard: --resources: {said}")


@pytest.mark.parametrize("kind", [[], ["--providers"]])
@pytest.mark.parametrize(
    "given", [["VCPU:1,VCPU:2"], ["VCPU:1", "VCPU:2"], ["VCPU:1,A:1", "B:1,VCPU:2"]]
)
def test_query_rejects_a_resource_class_given_twice(query: Any, kind: Any, given: Any) -> None:
    options = [word for value in given for word in ("--resources", value)]
    status, _, err = query(*kind, *options)
    assert status == 2
    assert err == (
        "steelyard: --resources: 'VCPU' is given as 'VCPU:1' and as 'VCPU:2'; "
        "give each resource class once\n"
    )


def test_query_selects_hosts_for_a_flavor(query: Any, cloud: Any) -> None:
    _, found, _ = query("--flavor", "small", "--cloud", cloud, "--against", cloud)
    wanted = "DISK_GB:10,MEMORY_MB:1024,VCPU:1"
    assert found["request"] == f"GET /allocation_candidates?required=!CUSTOM_GPU&resources={wanted}"
    assert found["selected"] == ["plain"]
    assert found["rejected"] == {
        "gpu": ["forbidden trait CUSTOM_GPU is present"],
        "full": ["RAM: 1 GiB wanted, the host has 0 of 1 GiB left"],
    }
    _, again, _ = query("--flavor", "small", "--against", cloud)
    assert again == found


def test_query_rejects_hosts_that_lack_what_the_request_needs(query: Any, cloud: Any) -> None:
    uuid = "5e08ea53-c4c6-448e-9334-ac4953de3cfa"
    argv = ("--resources", "VGPU:1", "--member-of", uuid, "--limit", "1", "--against", cloud)
    _, found, _ = query(*argv)
    assert found["selected"] == []
    assert found["rejected"]["plain"] == [
        f"the host is in none of the aggregates {uuid}",
        "VGPU: the host has none",
    ]


@pytest.mark.parametrize(
    ("argv", "why"),
    [
        (("--resources", "VCPU:5"), "vCPUs: 5 wanted, the host gives at most 4 to one server"),
        (("--resources", "VCPU:17"), "vCPUs: 17 wanted, the host has 16 of 16 left"),
        (("--resources", "MEMORY_MB:6144"), "RAM: 6 GiB wanted, the host has 4 of 4 GiB left"),
        (("--resources", "DISK_GB:200"), "disk: 200 GiB wanted, the host has 100 of 100 GiB left"),
        (("--providers", "--required", "A"), "required trait A is missing"),
    ],
)
def test_query_shows_reasons_of_rejected_hosts(query: Any, cloud: Any, argv: Any, why: str) -> None:
    _, found, _ = query(*argv, "--against", cloud)
    assert found["rejected"]["plain"] == [why]


def test_query_table_has_one_reason_per_line(cloud: Any, capsys: Any) -> None:
    assert cli.main(["query", "--flavor", "small", "--against", cloud]) == 0
    out = capsys.readouterr().out
    assert "| gpu: forbidden trait CUSTOM_GPU is present" in out
    assert "| full: RAM: 1 GiB wanted, the host has 0 of 1 GiB left" in out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        ((), "missing --resources: allocation candidates need an amount, such as VCPU:1"),
        (
            ("--required", "A,b", "--resources", "VCPU:1"),
            "required: invalid trait 'b': expected 1 to 255",
        ),
        (("--required", "A,b", "--resources", "VCPU:1"), "\n  A,b\n    ^\n"),
        (("--resources", "VCPU:1", "--resources", "DISK"), "\n  VCPU:1,DISK\n         ^^^^\n"),
        (("--flavor", "small", "--resources", "VCPU:1"), "--flavor excludes the other parts"),
        (("--flavor", "small"), "--flavor needs a cloud file: name one with"),
        (
            ("--flavor", "small", "--required", "A"),
            "--flavor excludes the other parts of a request",
        ),
        (("--flavor", "smal", "--cloud", "CLOUD"), "no flavor 'smal'; did you mean"),
        (("--flavor", "odd", "--cloud", "CLOUD"), "'trait:CUSTOM_GPU' = 'unwanted': expected"),
        (("--limit", "1", "--providers"), "unexpected parameter 'limit'"),
        (("--cloud", "CLOUD", "--resources", "VCPU:1"), "--cloud needs --flavor"),
        (("--resources", "VCPU:1", "-c", "Selected"), "no column 'Selected'"),
    ],
)
def test_query_explains_mistakes(query: Any, cloud: Any, argv: Any, said: str) -> None:
    status, _, err = query(*(cloud if arg == "CLOUD" else arg for arg in argv))
    assert status == 2
    assert said in err
