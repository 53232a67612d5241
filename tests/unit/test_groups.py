import uuid
from typing import Any

import pytest

from steelyard.errors import InvalidServerGroup, PolicyNotSupported
from steelyard.groups import Policy, ServerGroup, check_supported

NEEDED = {
    "affinity": ("filter", "ServerGroupAffinityFilter"),
    "anti-affinity": ("filter", "ServerGroupAntiAffinityFilter"),
    "soft-affinity": ("weigher", "ServerGroupSoftAffinityWeigher"),
    "soft-anti-affinity": ("weigher", "ServerGroupSoftAntiAffinityWeigher"),
}


def test_policy_parse_returns_the_policy() -> None:
    assert set(NEEDED) == set(Policy)
    assert Policy.parse("affinity") is Policy.AFFINITY


@pytest.mark.parametrize("text", ["", "Affinity", "soft", "legacy"])
def test_policy_parse_of_an_unknown_policy_names_the_known_ones(text: Any) -> None:
    with pytest.raises(InvalidServerGroup) as caught:
        Policy.parse(text)
    assert repr(text) in str(caught.value)
    assert all(repr(policy) in str(caught.value) for policy in NEEDED)
    assert caught.value.status == 400


@pytest.mark.parametrize("policy", NEEDED)
def test_check_supported_requires_the_plugin_of_the_policy(policy: Any) -> None:
    kind, name = NEEDED[policy]
    group = ServerGroup("g", Policy(policy))
    everything = [needed for _, needed in NEEDED.values()]
    check_supported(group, everything, everything)
    rest = [other for other in everything if other != name]
    with pytest.raises(PolicyNotSupported) as caught:
        check_supported(group, rest, rest)
    assert f"'{policy}' of server group 'g' is not supported: the {kind} {name!r}" in str(
        caught.value
    )
    assert f"add it to enabled_{kind}s" in str(caught.value)


@pytest.mark.parametrize("policy", ["soft-affinity", "soft-anti-affinity"])
def test_check_supported_rejects_soft_policy_whose_multiplier_is_0(policy: Any) -> None:
    _, name = NEEDED[policy]
    group = ServerGroup("g", Policy(policy))
    check_supported(group, [], [name], {name: -1.0})
    with pytest.raises(PolicyNotSupported) as caught:
        check_supported(group, [], [name], {name: 0.0})
    option = f"{policy.replace('-', '_')}_weight_multiplier"
    assert f"{name!r} is 0; set {option} to another" in str(caught.value)


def test_check_supported_rejects_unknown_policy() -> None:
    everything = [needed for _, needed in NEEDED.values()]
    group = ServerGroup("g", "legacy")  # type: ignore[arg-type]
    with pytest.raises(InvalidServerGroup, match="unknown policy 'legacy'"):
        check_supported(group, everything, everything)


def test_with_members_adds_members_and_hosts() -> None:
    group = ServerGroup("g", Policy.AFFINITY).with_members({"u1": "h1", "u2": "h1"})
    assert group.members == {"u1", "u2"}
    assert group.hosts == {"h1"}


def body(**fields: Any) -> Any:
    return {"server_group": {"name": "test", **fields}}


def test_request_of_the_document_is_parsed_and_answered() -> None:
    group = ServerGroup.parse(body(policies=["soft-anti-affinity"]))
    assert group.response() == {
        "server_group": {
            "id": group.uuid,
            "name": "test",
            "policies": ["soft-anti-affinity"],
            "members": [],
            "metadata": {},
        }
    }
    assert str(uuid.UUID(group.uuid)) == group.uuid
    assert ServerGroup.parse(body(policies=["soft-anti-affinity"])).uuid != group.uuid
    joined = group.with_members({"u2": "h", "u1": "h"})
    assert joined.response()["server_group"]["members"] == ["u1", "u2"]


@pytest.mark.parametrize(
    ("fields", "policy", "rules"),
    [
        ({"policy": "soft-affinity"}, "soft-affinity", {}),
        ({"policy": "affinity", "rules": {}}, "affinity", {}),
        (
            {"policy": "anti-affinity", "rules": {"max_server_per_host": "3"}},
            "anti-affinity",
            {"max_server_per_host": 3},
        ),
        (
            {"policy": "anti-affinity", "rules": {"max_server_per_host": 2.0}},
            "anti-affinity",
            {"max_server_per_host": 2},
        ),
    ],
)
def test_parse_reads_the_newer_form(fields: Any, policy: Any, rules: Any) -> None:
    group = ServerGroup.parse(body(**fields))
    assert (group.name, group.policy, group.rules) == ("test", policy, rules)


def test_response_to_the_newer_form_has_policy_and_rules() -> None:
    rules = {"max_server_per_host": "3"}
    group = ServerGroup.parse(body(policy="anti-affinity", rules=rules))
    assert group.with_members({"u1": "h"}).response() == {
        "server_group": {
            "id": group.uuid,
            "name": "test",
            "policy": "anti-affinity",
            "rules": {"max_server_per_host": 3},
            "members": ["u1"],
        }
    }
    assert ServerGroup.parse(body(policy="affinity")).response()["server_group"]["rules"] == {}
    kept = ServerGroup("kept", Policy.ANTI_AFFINITY, {"max_server_per_host": 3})
    assert kept.response()["server_group"]["rules"] == {"max_server_per_host": 3}


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        (None, "invalid body None: expected a JSON object"),
        ({}, "missing key 'server_group' in body"),
        ({"server_group": []}, "invalid server_group []: expected a JSON object"),
        ({**body(policy="affinity"), "more": 1}, "unknown key 'more' in body"),
        ({"server_group": {"policies": ["affinity"]}}, "missing key 'name' in server_group"),
        (body(), "missing key 'policy' in server_group; required keys: 'name', 'policy'"),
        (body(policies=[]), r"invalid policies []: expected a list with exactly one of 'affinity'"),
        (body(policies=["affinity", "anti-affinity"]), "exactly one of"),
        (body(policies="affinity"), "invalid policies 'affinity': expected a list"),
        (body(policies=["soft"]), "unknown policy 'soft': expected one of"),
        (body(policies=[["affinity"]]), "unknown policy ['affinity']"),
        (body(policies=["affinity"], rules={}), "unknown key 'rules' in server_group"),
        (
            body(policy="affinity", polices=[]),
            "unknown key 'polices' in server_group; did you mean",
        ),
        (body(policy="affinity", rules={"max_server_per_host": 2}), "cannot use rules with policy"),
        (body(policy="anti-affinity", rules=[]), "invalid rules []: expected a JSON object"),
        (body(policy="anti-affinity", rules={"max": 2}), "unknown key 'max' in rules"),
        (
            body(policy="anti-affinity", rules={"max_server_per_host": 0}),
            "invalid max_server_per_host 0: expected a whole number from 1 to 999999999",
        ),
        (body(policy="anti-affinity", rules={"max_server_per_host": True}), "True: expected a"),
        (body(policy="anti-affinity", rules={"max_server_per_host": "9" * 5000}), "1 to 999999999"),
        (
            body(policy="anti-affinity", rules={"max_server_per_host": "1000000000"}),
            "'1000000000': expected a whole number from 1 to 999999999",
        ),
        (
            body(policy="anti-affinity", rules={"max_server_per_host": 1000000000}),
            "1000000000: expected a whole number from 1 to 999999999",
        ),
        ({"server_group": {"name": "", "policy": "affinity"}}, "invalid name '': expected text"),
        ({"server_group": {"name": 4, "policy": "affinity"}}, "invalid name 4: expected text"),
        ({"server_group": {"name": " a", "policy": "affinity"}}, "no white space at either end"),
        ({"server_group": {"name": "a\x07b", "policy": "affinity"}}, "control characters"),
        ({"server_group": {"name": "a" * 256, "policy": "affinity"}}, "of 1 to 255 characters"),
    ],
)
def test_malformed_request_raises_with_text_and_reason(asked: Any, message: str) -> None:
    with pytest.raises(InvalidServerGroup) as caught:
        ServerGroup.parse(asked)
    assert message in str(caught.value)
    assert caught.value.status == 400
