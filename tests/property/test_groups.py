"""Laws of requests for server groups: parse and the JSON schemas agree."""

from typing import Any

import jsonschema
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from steelyard.errors import InvalidServerGroup
from steelyard.groups import POLICIES_SCHEMA, POLICY_SCHEMA, Policy, ServerGroup

SCHEMAS = [POLICIES_SCHEMA, POLICY_SCHEMA]

scraps = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.sampled_from([0.5, 1.0, 3.0, float("inf")]),
    st.sampled_from(["", "0", "1", "007", "2\n", "x", "1" * 9, "1" * 10, "\u0663"]),
    st.just([]),
    st.just({}),
)
policies = st.one_of(st.sampled_from([*map(str, Policy), "soft", "Affinity"]), scraps)
names = st.one_of(
    st.sampled_from(["web", "a b", " a", "a\n", "\u2003", "\x1f", "a\u0085b", "\u00e9", "x" * 256]),
    st.text(max_size=4),
    scraps,
)
rules = st.one_of(
    st.dictionaries(st.sampled_from(["max_server_per_host", "max_server"]), scraps, max_size=2),
    scraps,
)


def some_of(required: dict[str, Any], optional: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return a strategy for objects, most of them with all required keys."""
    whole = st.fixed_dictionaries(required, optional=optional)
    return st.one_of(whole, whole, whole, st.fixed_dictionaries({}, optional=required | optional))


groups = some_of(
    {"name": names},
    {
        "policy": policies,
        "policies": st.one_of(st.lists(policies, max_size=2), scraps),
        "rules": rules,
        "more": scraps,
    },
)
bodies = st.one_of(some_of({"server_group": groups}, {"more": scraps}), scraps)


def accepted(body: Any) -> bool:
    try:
        ServerGroup.parse(body)
    except InvalidServerGroup:
        return False
    return True


@given(bodies)
@example({"server_group": {"name": "a", "policies": ["affinity"]}})
@example({"server_group": {"name": "a", "policy": "affinity", "rules": {}}})
@example({"server_group": {"name": "a\n", "policy": "affinity"}})
def test_schemas_and_parse_accept_the_same_bodies(body: Any) -> None:
    valid = [jsonschema.Draft7Validator(schema).is_valid(body) for schema in SCHEMAS]
    assert any(valid) is accepted(body)


@given(st.sampled_from(Policy), st.integers(1, 99))
def test_well_formed_request_is_accepted(policy: Policy, most: int) -> None:
    assert accepted({"server_group": {"name": "a", "policies": [policy.value]}})
    newer = {"name": "a", "policy": policy.value, "rules": {"max_server_per_host": most}}
    assert accepted({"server_group": newer}) is (policy is Policy.ANTI_AFFINITY)


@pytest.mark.parametrize("schema", SCHEMAS)
def test_schemas_are_valid_json_schemas(schema: Any) -> None:
    jsonschema.Draft7Validator.check_schema(schema)
