"""The command ``query``: whole requests, and their answers from a provider file."""

import json
from typing import Any

import pytest

from steelyard import cli
from support.repository import EXAMPLES

UUID = "5e08ea53-c4c6-448e-9334-ac4953de3cfa"
PROVIDERS = str(EXAMPLES / "traits-providers.yaml")
GROUPS = str(EXAMPLES / "traits-groups.yaml")
CARDS = ["--resources", "VCPU:2", "--group", "_NIC", "--resources", "SRIOV_NET_VF:1"]


def query(capsys: Any, *options: str) -> dict[str, Any]:
    """Return the result of the command in JSON."""
    assert cli.main(["query", *options, "-f", "json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def message(capsys: Any, *options: str) -> str:
    """Return the message of the command, which fails."""
    assert cli.main(["query", *options]) == 2
    error: str = capsys.readouterr().err
    return error


@pytest.mark.parametrize(
    ("options", "request_"),
    [
        (
            [*CARDS, "--required", "!CUSTOM_A", "--required", "in:CUSTOM_B,CUSTOM_C"],
            "required_NIC=!CUSTOM_A&required_NIC=in:CUSTOM_B,CUSTOM_C&resources=VCPU:2"
            "&resources_NIC=SRIOV_NET_VF:1",
        ),
        (
            [*CARDS, "--member-of", UUID, "--in-tree", UUID, "--resources", "VGPU:1"],
            f"in_tree_NIC={UUID}&member_of_NIC={UUID}&resources=VCPU:2"
            "&resources_NIC=SRIOV_NET_VF:1,VGPU:1",
        ),
        (
            [
                *(*CARDS, "--group", "1", "--required", "CUSTOM_A", "--group-policy", "none"),
                *("--same-subtree", "1,_NIC", "--limit", "5"),
            ],
            "group_policy=none&limit=5&required1=CUSTOM_A&resources=VCPU:2"
            "&resources_NIC=SRIOV_NET_VF:1&same_subtree=1,_NIC",
        ),
        (
            [
                "--resources",
                "VCPU:1",
                "--root-required",
                "CUSTOM_A",
                "--root-required",
                "!CUSTOM_B",
            ],
            "resources=VCPU:1&root_required=CUSTOM_A,!CUSTOM_B",
        ),
        (
            [
                *("--cloud", GROUPS, "--flavor", "metal", "--image", "trait:CUSTOM_A=required"),
                *("--image", "os_distro=debian"),
            ],
            "required=CUSTOM_A,!CUSTOM_MASSIVE_GPU&resources=CUSTOM_BAREMETAL:1",
        ),
    ],
)
def test_query_builds_the_whole_request(capsys: Any, options: list[str], request_: str) -> None:
    assert query(capsys, *options)["request"] == f"GET /allocation_candidates?{request_}"


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--providers", "--group", "1"], "--providers excludes --group: a request for resource p"),
        (["--group", "1", "--group", "2", "--resources", "VCPU:1"], "--group 1: empty group"),
        ([*CARDS, "--group", "a b", "--resources", "VCPU:1"], "invalid suffix 'a b'"),
        ([*CARDS, "--group", "", "--required", "CUSTOM_A"], "--group: empty suffix; write one su"),
        ([*CARDS, "--group-policy", "all"], "--group-policy: expected isolate or none, got 'all'"),
        ([*CARDS, "--same-subtree", "1"], "same_subtree: no group with the suffix '1'; available"),
        ([*CARDS, "--root-required", "in:CUSTOM_A"], "root_required: any-of groups are not"),
        ([*CARDS, "--image", "trait:CUSTOM_A=required"], "--image needs --flavor: the traits of t"),
        (["--cloud", GROUPS, "--flavor", "pair", "--image", "x"], "invalid property 'x': expected"),
        (
            ["--cloud", GROUPS, "--flavor", "pair", "--image", "a=1", "--image", "a=2"],
            "--image: 'a' is given twice",
        ),
        (
            ["--cloud", GROUPS, "--flavor", "pair", "--image", "trait:CUSTOM_A=forbidden"],
            "invalid image property 'trait:CUSTOM_A' = 'forbidden'",
        ),
        (["--cloud", GROUPS, "--flavor", "pair", "--limit", "1"], "--flavor excludes the other p"),
        (["--against", PROVIDERS, "--flavor", "pair"], "--flavor needs a cloud file: name one"),
    ],
)
def test_query_rejects_mistakes_in_options(capsys: Any, options: list[str], why: str) -> None:
    assert why in message(capsys, *options)


def test_query_answers_from_a_provider_file(capsys: Any) -> None:
    found = query(capsys, *CARDS, "--required", "!CUSTOM_STORAGE_NET", "--against", PROVIDERS)
    assert found["selected"] == ["node1"]
    assert found["rejected"] == {
        "node2": ["node2_card1: group _NIC: forbidden trait CUSTOM_STORAGE_NET is present"]
    }
    (candidate,) = found["candidates"]
    assert candidate["mappings"].keys() == {"", "_NIC"}
    found = query(capsys, "--providers", "--required", "!HW_CPU_X86_AVX2", "--against", PROVIDERS)
    assert "node1" not in found["selected"]
    assert "candidates" not in found


def test_query_shows_at_most_the_limit(capsys: Any) -> None:
    assert len(query(capsys, *CARDS, "--against", PROVIDERS)["candidates"]) == 3
    found = query(capsys, *CARDS, "--limit", "1", "--against", PROVIDERS)
    assert len(found["candidates"]) == 1
    assert found["selected"] == ["node1", "node2"]


def test_query_says_that_it_shows_only_the_first_candidates(
    capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("steelyard.cli.query._MOST", 2)
    assert cli.main(["query", *CARDS, "--against", PROVIDERS]) == 0
    shown = capsys.readouterr()
    assert "the first 2 candidates; show another number with --limit" in shown.err
    assert "node1: VCPU:2; node1_card1 (_NIC): SRIOV_NET_VF:1" in shown.out


def test_query_warns_of_unknown_traits(capsys: Any) -> None:
    options = [*CARDS, "--required", "!HW_CPU_X86_AVX22,CUSTOM_A", "--root-required", "COMPUTE_NOD"]
    assert cli.main(["query", *options, "--known-traits"]) == 0
    error = capsys.readouterr().err
    assert "Unknown trait 'HW_CPU_X86_AVX22': expected a standard trait, or a custom one" in error
    assert "did you mean 'HW_CPU_X86_AVX2'" in error
    assert "Unknown trait 'COMPUTE_NOD'" in error
    assert "CUSTOM_A" not in error
    assert cli.main(["query", "--providers", "--required", "X", "--known-traits"]) == 0
    assert "Unknown trait 'X'" in capsys.readouterr().err
    assert cli.main(["query", *options]) == 0
    assert "Unknown" not in capsys.readouterr().err
