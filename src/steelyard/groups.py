"""Server groups: their policies, the requests that create them, and the plugins they need."""

import dataclasses
import enum
import re
import uuid as uuids
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from steelyard import errors
from steelyard.text import spelling

__all__ = ["POLICIES_SCHEMA", "POLICY_SCHEMA", "Policy", "ServerGroup", "check_supported"]

MAX_SERVER_PER_HOST = "max_server_per_host"


class Policy(enum.StrEnum):
    """The policies for placing the servers of a group relative to each other."""

    AFFINITY = "affinity"
    ANTI_AFFINITY = "anti-affinity"
    SOFT_AFFINITY = "soft-affinity"
    SOFT_ANTI_AFFINITY = "soft-anti-affinity"

    @classmethod
    def parse(cls, text: object) -> "Policy":
        """Return the policy of this name; raise InvalidServerGroup if it is unknown."""
        try:
            return cls(text)  # type: ignore[arg-type]  # any other value raises
        except ValueError:
            raise errors.InvalidServerGroup(
                f"unknown policy {text!r}: expected one of {_POLICIES_LISTED}", text
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
_MISPLACED = re.compile(rf"\A\s+|[{_CONTROL}]|\s+\Z")
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


#: The JSON schema of ``POST os-server-groups`` with a list of policies, which has exactly one.
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

#: The JSON schema of the newer form, with one policy and, for ``anti-affinity``, rules.
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
    """A server group, with the UUIDs of its servers and the names of the hosts they are on."""

    name: str
    policy: Policy
    rules: Mapping[str, int] = dataclasses.field(default_factory=dict)
    members: frozenset[str] = frozenset()
    hosts: frozenset[str] = frozenset()
    uuid: str = ""
    newer_form: bool = dataclasses.field(default=False, compare=False)
    """Whether the group was requested with one policy and rules, not with a list of policies."""

    @classmethod
    def parse(cls, body: object) -> "ServerGroup":
        """Return the new group that the body of a ``POST os-server-groups`` requests.

        The body may have either form; the group gets a random UUID. Raises InvalidServerGroup if
        the body is malformed.
        """
        requested = _fields(body, "body", ["server_group"])["server_group"]
        newer_form = not (isinstance(requested, dict) and "policies" in requested)
        if not newer_form:
            _fields(requested, "server_group", ["name", "policies"])
            policy, rules = _only_policy(requested["policies"]), {}
        else:
            _fields(requested, "server_group", ["name", "policy"], ["rules"])
            policy = Policy.parse(requested["policy"])
            rules = parse_rules(policy, requested.get("rules", {}))
        name, uuid = _name(requested["name"]), str(uuids.uuid4())
        return cls(name, policy, rules, uuid=uuid, newer_form=newer_form)

    def response(self) -> dict[str, Any]:
        """Return the body of the response to the request for the group, in the same form."""
        policy = (
            {"policy": self.policy.value, "rules": dict(self.rules)}
            if self.newer_form or self.rules  # the older form has no rules
            else {"policies": [self.policy.value], "metadata": {}}
        )
        members = sorted(self.members)
        return {"server_group": {"id": self.uuid, "name": self.name, **policy, "members": members}}

    def with_members(self, placed: Mapping[str, str]) -> "ServerGroup":
        """Return this group with more servers, given as a mapping of UUIDs to hosts."""
        return dataclasses.replace(
            self, members=self.members | placed.keys(), hosts=self.hosts | {*placed.values()}
        )


def parse_rules(policy: Policy, rules: object) -> dict[str, int]:
    """Return the rules of a group with this policy, as numbers.

    Raises InvalidServerGroup if a rule is unknown or invalid, or if the policy has no rules.
    """
    given = _fields(rules, "rules", optional=[MAX_SERVER_PER_HOST])
    if given and policy is not Policy.ANTI_AFFINITY:
        raise errors.InvalidServerGroup(
            f"cannot use rules with policy '{policy}': only '{Policy.ANTI_AFFINITY}' has rules; "
            "leave them out"
        )
    return {name: _count(name, value) for name, value in given.items()}


def check_supported(
    group: ServerGroup,
    enabled_filters: Collection[str],
    enabled_weighers: Collection[str],
    multipliers: Mapping[str, float] | None = None,
) -> None:
    """Raise PolicyNotSupported if the plugin of the group's policy is not enabled or has no effect.

    ``multipliers`` are the configured multipliers, by weigher. A weigher has no effect if its
    multiplier is 0.
    """
    policy = Policy.parse(group.policy)
    weigher = needed_weigher(policy)
    for kind, needed, enabled in (
        ("filter", needed_filter(policy), enabled_filters),
        ("weigher", weigher, enabled_weighers),
    ):
        if needed is not None and needed not in enabled:
            raise errors.PolicyNotSupported(
                f"policy '{group.policy}' of server group {group.name!r} is not supported: the "
                f"{kind} {needed!r} is not enabled; add it to enabled_{kind}s"
            )
    if weigher is not None and multipliers is not None and multipliers.get(weigher) == 0:
        raise errors.PolicyNotSupported(
            f"policy '{policy}' of server group {group.name!r} has no effect: the multiplier of "
            f"the weigher {weigher!r} is 0; set {multiplier_option(policy)} to another number"
        )


def needed_filter(policy: Policy) -> str | None:
    """Return the name of the filter that a policy needs, here and in Nova; None without one."""
    return _FILTERS.get(policy)


def needed_weigher(policy: Policy) -> str | None:
    """Return the name of the weigher that a policy needs, here and in Nova; None without one."""
    return _WEIGHERS.get(policy)


def multiplier_option(policy: Policy) -> str:
    """Return the name of a soft policy's multiplier, as an option and as a metadata key."""
    return f"{policy.value.replace('-', '_')}_weight_multiplier"


def _fields(
    value: object, what: str, required: Sequence[str] = (), optional: Sequence[str] = ()
) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise errors.InvalidServerGroup(f"invalid {what} {value!r}: expected a JSON object", value)
    allowed = [*required, *optional]
    for name in value:
        if name not in allowed:
            raise errors.InvalidServerGroup(
                f"unknown key {name!r} in {what}{spelling.near(str(name), allowed)}", name
            )
    for name in required:
        if name not in value:
            raise errors.InvalidServerGroup(
                f"missing key {name!r} in {what}; required keys: {', '.join(map(repr, required))}"
            )
    return value


def _name(name: object) -> str:
    if not isinstance(name, str) or not 1 <= len(name) <= _LONGEST_NAME:
        raise errors.InvalidServerGroup(
            f"invalid name {name!r}: expected text of 1 to {_LONGEST_NAME} characters", name
        )
    misplaced = _MISPLACED.search(name)
    if misplaced:
        raise errors.InvalidServerGroup(
            f"invalid name {name!r}: expected no white space at either end and no control "
            f"characters",
            name,
            misplaced.span(),
        )
    return name


def _only_policy(policies: object) -> Policy:
    if not isinstance(policies, list) or len(policies) != 1:
        raise errors.InvalidServerGroup(
            f"invalid policies {policies!r}: expected a list with exactly one of "
            f"{_POLICIES_LISTED}",
            policies,
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
            f"invalid {name} {value!r:.100}: expected a whole number from 1 to {_GREATEST_NUMBER}",
            value,
        )
    return number
