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


def test_a_member_joins_with_its_host() -> None:
    group = ServerGroup("g", Policy.AFFINITY).with_members({"u1": "h1", "u2": "h1"})
    assert group.members == {"u1", "u2"}
    assert group.hosts == {"h1"}
