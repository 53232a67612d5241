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


def test_the_policies() -> None:
    assert set(NEEDED) == set(Policy)
    assert Policy.parse("affinity") is Policy.AFFINITY


@pytest.mark.parametrize("text", ["", "Affinity", "soft", "legacy"])
def test_an_unknown_policy_is_refused_and_the_known_ones_are_named(text: Any) -> None:
    with pytest.raises(InvalidServerGroup) as caught:
        Policy.parse(text)
    assert repr(text) in str(caught.value)
    assert all(repr(policy) in str(caught.value) for policy in NEEDED)
    assert caught.value.status == 400


@pytest.mark.parametrize("policy", NEEDED)
def test_a_policy_needs_its_plugin(policy: Any) -> None:
    kind, name = NEEDED[policy]
    group = ServerGroup("g", Policy(policy))
    everything = [needed for _, needed in NEEDED.values()]
    check_supported(group, everything, everything)
    rest = [other for other in everything if other != name]
    with pytest.raises(PolicyNotSupported) as caught:
        check_supported(group, rest, rest)
    assert f"'{policy}', which needs the {kind} {name!r}" in str(caught.value)
    assert f"add it to enabled_{kind}s" in str(caught.value)


@pytest.mark.parametrize("policy", ["soft-affinity", "soft-anti-affinity"])
def test_check_supported_rejects_soft_policy_whose_multiplier_is_0(policy: Any) -> None:
    _, name = NEEDED[policy]
    group = ServerGroup("g", Policy(policy))
    check_supported(group, [], [name], {name: -1.0})
    with pytest.raises(PolicyNotSupported) as caught:
        check_supported(group, [], [name], {name: 0.0})
    option = f"{policy.replace('-', '_')}_weight_multiplier"
    assert f"{name!r}; its multiplier is 0: set {option} to another" in str(caught.value)


def test_check_supported_rejects_unknown_policy() -> None:
    everything = [needed for _, needed in NEEDED.values()]
    group = ServerGroup("g", "legacy")  # type: ignore[arg-type]
    with pytest.raises(InvalidServerGroup, match="unknown policy 'legacy'"):
        check_supported(group, everything, everything)


def test_a_member_joins_with_its_host() -> None:
    group = ServerGroup("g", Policy.AFFINITY).with_members({"u1": "h1", "u2": "h1"})
    assert group.members == {"u1", "u2"}
    assert group.hosts == {"h1"}


def body(**fields: Any) -> Any:
    return {"server_group": {"name": "test", **fields}}


def test_the_request_of_the_document_and_its_answer() -> None:
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
def test_the_newer_form_is_understood(fields: Any, policy: Any, rules: Any) -> None:
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
    ("asked", "said"),
    [
        (None, "the body is None; it must be a JSON object"),
        ({}, "the body has no 'server_group'"),
        ({"server_group": []}, "server_group is []; it must be a JSON object"),
        ({**body(policy="affinity"), "more": 1}, "the body has 'more', which is unknown"),
        ({"server_group": {"policies": ["affinity"]}}, "server_group has no 'name'"),
        (body(), "server_group has no 'policy'; required are name, policy"),
        (body(policies=[]), r"policies is []; it must be a list with exactly one of 'affinity'"),
        (body(policies=["affinity", "anti-affinity"]), "exactly one of"),
        (body(policies="affinity"), "policies is 'affinity'; it must be a list"),
        (body(policies=["soft"]), "unknown policy 'soft'; write one of"),
        (body(policies=[["affinity"]]), "unknown policy ['affinity']"),
        (body(policies=["affinity"], rules={}), "server_group has 'rules', which is unknown"),
        (body(policy="affinity", polices=[]), "has 'polices', which is unknown; did you mean"),
        (body(policy="affinity", rules={"max_server_per_host": 2}), "only the policy 'anti-aff"),
        (body(policy="anti-affinity", rules=[]), "rules is []; it must be a JSON object"),
        (body(policy="anti-affinity", rules={"max": 2}), "rules has 'max', which is unknown"),
        (
            body(policy="anti-affinity", rules={"max_server_per_host": 0}),
            "invalid rule 'max_server_per_host' 0: expected a whole number from 1 to 999999999",
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
        ({"server_group": {"name": "", "policy": "affinity"}}, "the name is ''; it must be text"),
        ({"server_group": {"name": 4, "policy": "affinity"}}, "the name is 4; it must be text"),
        ({"server_group": {"name": " a", "policy": "affinity"}}, "begin or end with white space"),
        ({"server_group": {"name": "a\x07b", "policy": "affinity"}}, "control characters"),
        ({"server_group": {"name": "a" * 256, "policy": "affinity"}}, "of 1 to 255 characters"),
    ],
)
def test_a_malformed_request_is_quoted(asked: Any, said: str) -> None:
    with pytest.raises(InvalidServerGroup) as caught:
        ServerGroup.parse(asked)
    assert said in str(caught.value)
    assert caught.value.status == 400
