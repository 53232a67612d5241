"""Server groups: what their policies promise, how they are asked for, what supports them."""

import dataclasses
import enum
import re
import uuid as uuids
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from steelyard import errors

MAX_SERVER_PER_HOST = "max_server_per_host"


class Policy(enum.StrEnum):
    """Where the servers of a group should be, in relation to each other."""

    AFFINITY = "affinity"
    ANTI_AFFINITY = "anti-affinity"
    SOFT_AFFINITY = "soft-affinity"
    SOFT_ANTI_AFFINITY = "soft-anti-affinity"

    @classmethod
    def parse(cls, text: object) -> "Policy":
        try:
            return cls(text)  # type: ignore[arg-type]  # whatever is no policy raises
        except ValueError:
            raise errors.InvalidServerGroup(
                f"unknown policy {text!r}; write one of {_POLICIES_LISTED}"
            ) from None


_POLICIES_LISTED = ", ".join(repr(policy.value) for policy in Policy)

_FILTERS = {
    Policy.AFFINITY: "ServerGroupAffinityFilter",
    Policy.ANTI_AFFINITY: "ServerGroupAntiAffinityFilter",
}
_WEIGHERS = {
    Policy.SOFT_AFFINITY: "ServerGroupSoftAffinityWeigher",
    Policy.SOFT_ANTI_AFFINITY: "ServerGroupSoftAntiAffinityWeigher",
}

_LONGEST_NAME = 255
_LONGEST_NUMBER = 9
_GREATEST_NUMBER = 10**_LONGEST_NUMBER - 1
_CONTROL = "\\x00-\\x1f\\x7f-\\x9f"
_NAME = {
    "type": "string",
    "minLength": 1,
    "maxLength": _LONGEST_NAME,
    "pattern": rf"^(?!\s)[^{_CONTROL}]*(?<!\s)(?!\n)$",
}
_POLICY = {"enum": [policy.value for policy in Policy]}


def _request_schema(properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "properties": {
            "server_group": {
                "type": "object",
                "properties": {"name": _NAME, **properties},
                "required": ["name", *required],
                "additionalProperties": False,
            }
        },
        "required": ["server_group"],
        "additionalProperties": False,
    }


#: The body of ``POST os-server-groups`` with a list of policies, which has exactly one.
POLICIES_SCHEMA: Mapping[str, Any] = _request_schema(
    {
        "policies": {
            "type": "array",
            "items": [_POLICY],
            "uniqueItems": True,
            "additionalItems": False,
            "minItems": 1,
        }
    },
    ["policies"],
)

#: The newer body, with one policy and the rules that ``anti-affinity`` may have.
POLICY_SCHEMA: Mapping[str, Any] = _request_schema(
    {
        "policy": _POLICY,
        "rules": {
            "type": "object",
            "properties": {
                MAX_SERVER_PER_HOST: {
                    "type": ["integer", "string"],
                    "pattern": r"^[0-9]*[1-9][0-9]*(?!\n)$",
                    "maxLength": _LONGEST_NUMBER,
                    "minimum": 1,
                    "maximum": _GREATEST_NUMBER,
                }
            },
            "additionalProperties": False,
        },
    },
    ["policy"],
)
POLICY_SCHEMA["properties"]["server_group"] |= {
    "if": {"properties": {"policy": {"const": Policy.ANTI_AFFINITY.value}}},
    "else": {"properties": {"rules": {"maxProperties": 0}}},
}


@dataclasses.dataclass(frozen=True, slots=True)
class ServerGroup:
    """A group, with the UUIDs of its servers and the names of the hosts they are on."""

    name: str
    policy: Policy
    rules: Mapping[str, int] = dataclasses.field(default_factory=dict)
    members: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    uuid: str = ""
    newer_form: bool = dataclasses.field(default=False, compare=False)
    """Whether the request for the group had one policy with rules, rather than a list."""

    @classmethod
    def parse(cls, body: object) -> "ServerGroup":
        """The new group that the body of a ``POST os-server-groups`` asks for, in either form."""
        asked = _fields(body, "the body", ["server_group"])["server_group"]
        newer_form = not (isinstance(asked, dict) and "policies" in asked)
        if not newer_form:
            _fields(asked, "server_group", ["name", "policies"])
            policy, rules = _only_policy(asked["policies"]), {}
        else:
            _fields(asked, "server_group", ["name", "policy"], ["rules"])
            policy = Policy.parse(asked["policy"])
            rules = parse_rules(policy, asked.get("rules", {}))
        name, uuid = _name(asked["name"]), str(uuids.uuid4())
        return cls(name, policy, rules, uuid=uuid, newer_form=newer_form)

    def response(self) -> dict[str, Any]:
        """Return the body that answers the request for the group, in the form of the request."""
        policy = (
            {"policy": self.policy.value, "rules": dict(self.rules)}
            if self.newer_form or self.rules  # the older form has no rules
            else {"policies": [self.policy.value], "metadata": {}}
        )
        members = sorted(self.members)
        return {"server_group": {"id": self.uuid, "name": self.name, **policy, "members": members}}

    def with_members(self, placed: Mapping[str, str]) -> "ServerGroup":
        """This group with more servers, which are given with their hosts."""
        return dataclasses.replace(
            self, members=self.members | placed.keys(), hosts=self.hosts | {*placed.values()}
        )


def parse_rules(policy: Policy, rules: object) -> dict[str, int]:
    """The rules of a group with this policy, as numbers."""
    given = _fields(rules, "rules", optional=[MAX_SERVER_PER_HOST])
    if given and policy is not Policy.ANTI_AFFINITY:
        raise errors.InvalidServerGroup(
            f"only the policy '{Policy.ANTI_AFFINITY}' has rules, not '{policy}'"
        )
    return {name: _count(name, value) for name, value in given.items()}


def check_supported(
    group: ServerGroup,
    enabled_filters: Collection[str],
    enabled_weighers: Collection[str],
    multipliers: Mapping[str, float] | None = None,
) -> None:
    """Raise PolicyNotSupported if the plugin of the group's policy is not enabled.

    ``multipliers`` are those of the configuration, by weigher. A weigher with 0 has no effect, and
    does not support its policy.
    """
    policy = Policy.parse(group.policy)
    weigher = _WEIGHERS.get(policy)
    for kind, needed, enabled in (
        ("filter", _FILTERS.get(policy), enabled_filters),
        ("weigher", weigher, enabled_weighers),
    ):
        if needed is not None and needed not in enabled:
            raise errors.PolicyNotSupported(
                f"server group {group.name!r} has the policy '{group.policy}', which needs the "
                f"{kind} {needed!r}; it is not enabled: add it to enabled_{kind}s"
            )
    if weigher is not None and multipliers is not None and multipliers.get(weigher) == 0:
        raise errors.PolicyNotSupported(
            f"server group {group.name!r} has the policy '{policy}', which needs the weigher "
            f"{weigher!r}; its multiplier is 0: set {multiplier_option(policy)} to another number"
        )


def multiplier_option(policy: Policy) -> str:
    """Return the option, and the aggregate metadata key, of the multiplier of a soft policy."""
    return f"{policy.value.replace('-', '_')}_weight_multiplier"


def _fields(
    value: object, what: str, required: Sequence[str] = (), optional: Sequence[str] = ()
) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise errors.InvalidServerGroup(f"{what} is {value!r}; it must be a JSON object")
    allowed = [*required, *optional]
    for name in value:
        if name not in allowed:
            raise errors.InvalidServerGroup(
                f"{what} has {name!r}, which is unknown{errors.near(str(name), allowed)}"
            )
    for name in required:
        if name not in value:
            raise errors.InvalidServerGroup(
                f"{what} has no {name!r}; required are {', '.join(required)}"
            )
    return value


def _name(name: object) -> str:
    if not isinstance(name, str) or not 1 <= len(name) <= _LONGEST_NAME:
        raise errors.InvalidServerGroup(
            f"the name is {name!r}; it must be text of 1 to {_LONGEST_NAME} characters"
        )
    if name != name.strip() or re.search(f"[{_CONTROL}]", name):
        raise errors.InvalidServerGroup(
            f"the name is {name!r}; it must neither begin or end with white space nor have "
            f"control characters"
        )
    return name


def _only_policy(policies: object) -> Policy:
    if not isinstance(policies, list) or len(policies) != 1:
        raise errors.InvalidServerGroup(
            f"policies is {policies!r}; it must be a list with exactly one of {_POLICIES_LISTED}"
        )
    return Policy.parse(policies[0])


def _count(name: str, value: object) -> int:
    match value:
        case bool():
            number = 0
        case int():
            number = value
        case float() if value.is_integer():
            number = int(value)
        case str() if re.fullmatch(f"[0-9]{{1,{_LONGEST_NUMBER}}}", value):
            number = int(value)
        case _:
            number = 0
    if not 1 <= number <= _GREATEST_NUMBER:
        raise errors.InvalidServerGroup(
            f"invalid rule {name!r} {value!r:.100}: expected a whole number from 1 to "
            f"{_GREATEST_NUMBER}"
        )
    return number
