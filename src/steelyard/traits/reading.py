"""Parameters of query strings, read as Placement reads them at a microversion."""

import functools
import re
from collections.abc import Callable, Iterable, Iterator

from steelyard import errors, microversions
from steelyard.resources import GREATEST, check_resource, whole_number
from steelyard.text import spelling
from steelyard.traits import arguments
from steelyard.traits.query import ANY_OF, FORBIDDEN, TraitQuery
from steelyard.traits.request_group import RequestGroup, check_uuid

GROUP_POLICIES = ("none", "isolate")
GROUP_POLICIES_LISTED = "'none' or 'isolate'"

_OF_A_GROUP = ("resources", "required", "member_of", "in_tree")
_OF_CANDIDATES = ("group_policy", "limit", "root_required", "same_subtree")
_OF_PROVIDERS = ("name", "uuid")

_LIMIT = re.compile(r"[1-9][0-9]*")

ParameterValues = dict[str, list[str]]
"""The values of each parameter, in their order."""


def providers(
    params: ParameterValues, microversion: str
) -> tuple[RequestGroup, str | None, str | None]:
    """Return the group, the name and the UUID that a request for providers has."""
    for name in params:
        if name in _OF_CANDIDATES:
            raise errors.InvalidQuery(
                f"unexpected parameter {name!r}: only requests for allocation candidates have it"
            )
        if name not in (*_OF_A_GROUP, *_OF_PROVIDERS):
            raise _unknown(name, (*_OF_A_GROUP, *_OF_PROVIDERS))
    group = _group(params, "", microversion)
    return group, _last(params, "name"), _last(params, "uuid")


def candidates(
    params: ParameterValues, microversion: str
) -> tuple[dict[str, RequestGroup], str | None, int | None, TraitQuery, frozenset[frozenset[str]]]:
    """Return the fields of a CandidatesRequest, in their order."""
    # Placement ignores white space around in_tree here, but not in requests for providers.
    params = {
        name: [value.strip() for value in values] if name.startswith("in_tree") else values
        for name, values in params.items()
    }
    suffixes = dict.fromkeys(_suffix(name) for name in params if name not in _OF_CANDIDATES)
    return (
        {suffix: _group(params, suffix, microversion) for suffix in suffixes},
        _group_policy(_only(params, "group_policy")),
        _limit(_only(params, "limit")),
        _root_required(_only(params, "root_required")),
        frozenset(map(_subtree, params.get("same_subtree", []))),
    )


def by_name(pairs: Iterable[tuple[str, str]]) -> ParameterValues:
    """Return the values of each parameter, in the order of the pairs."""
    expected = "pairs of a name and a value, such as [('resources', 'VCPU:1')]"
    if isinstance(pairs, str):
        raise arguments.unexpected("params", pairs, f"{expected}; pass a query string to parse()")
    found: ParameterValues = {}
    for pair in arguments.members("params", pairs, expected):
        if not _is_pair(pair):
            raise arguments.unexpected(
                "params", pair, "a pair of texts, such as ('resources', 'VCPU:1')"
            )
        name, value = pair
        found.setdefault(name, []).append(value)
    return found


def _is_pair(pair: object) -> bool:
    return (
        isinstance(pair, tuple | list)
        and len(pair) == 2
        and all(isinstance(text, str) for text in pair)
    )


def needs(params: ParameterValues) -> microversions.Needs:
    """Yield the needs of the notation; another notation of the same request may need less."""
    for name, values in params.items():
        if name.startswith("required") and values[-1].startswith(ANY_OF):
            yield f"{ANY_OF!r} in {name}", microversions.ANY_TRAITS
        if name.startswith("member_of") and len(values) > 1:
            yield f"more than one {name}", microversions.REPEATED_MEMBER_OF


def _suffix(name: str) -> str:
    for part in _OF_A_GROUP:
        if name.startswith(part):
            return name.removeprefix(part)
    raise _unknown(name, (*_OF_A_GROUP, *_OF_CANDIDATES))


def _group(params: ParameterValues, suffix: str, microversion: str) -> RequestGroup:
    required = params.get(f"required{suffix}", [])
    if not microversions.reaches(microversion, microversions.ANY_TRAITS):
        required = required[-1:]  # before 1.39, Placement uses only the last one
    with arguments.naming(f"required{suffix}"):
        traits = TraitQuery.parse_params(*required)
    amounts: dict[str, int] = {}
    for value in params.get(f"resources{suffix}", []):
        with arguments.naming(f"resources{suffix}"):
            amounts = _resources(value)
    wanted, unwanted = set(), set[str]()
    for value in params.get(f"member_of{suffix}", []):
        name = f"member_of{suffix}"
        if value.startswith(FORBIDDEN):
            unwanted |= _aggregates(name, value, len(FORBIDDEN))
        else:
            wanted.add(_aggregates(name, value, 0))
    trees = params.get(f"in_tree{suffix}", [])
    for tree in trees:
        _checked(tree, 0, tree, functools.partial(check_uuid, f"in_tree{suffix}"))
    return RequestGroup(
        amounts, traits, frozenset(wanted), frozenset(unwanted), trees[-1] if trees else None
    )


def _resources(value: str) -> dict[str, int]:
    amounts: dict[str, int] = {}
    for start, part in _parts(value, 0):
        name, _, text = part.partition(":")
        amount = whole_number(text)
        if amount is None:
            raise errors.InvalidQuery(
                f"invalid resource {part!r:.80}: expected a class and an amount, such as VCPU:1",
                value,
                (start, start + len(part)),
            )
        _checked(value, start, part, lambda _: check_resource(name, amount))  # noqa: B023  (at once)
        amounts[name] = amount
    return amounts


def _aggregates(name: str, value: str, start: int) -> frozenset[str]:
    """Return the UUIDs of the aggregates that the value names from ``start`` on."""
    if not value.startswith(ANY_OF, start):
        if "," in value:
            raise errors.InvalidQuery(
                f"{name}: more than one aggregate; write {ANY_OF} before them",
                value,
                (start, len(value)),
            )
        parts = [(start, value[start:])]
    else:
        parts = list(_parts(value, start + len(ANY_OF)))
    for at, part in parts:
        _checked(value, at, part, functools.partial(check_uuid, name))
    return frozenset(part for _, part in parts)


def _parts(value: str, start: int) -> Iterator[tuple[int, str]]:
    """Yield the start and the text of each part between commas, from ``start`` on."""
    for part in value[start:].split(","):
        yield start, part
        start += len(part) + 1


def _checked(value: str, start: int, part: str, check: Callable[[str], None]) -> None:
    """Run the check on the part; raise InvalidQuery with the part marked if it fails."""
    try:
        check(part)
    except errors.InvalidQuery as error:
        raise errors.InvalidQuery(error.message, value, (start, start + len(part))) from None


def _group_policy(value: str | None) -> str | None:
    if value is not None and value not in GROUP_POLICIES:
        raise errors.InvalidQuery(
            f"invalid group_policy {value!r:.80}: expected {GROUP_POLICIES_LISTED}",
            value,
            (0, len(value)),
        )
    return value


def _limit(value: str | None) -> int | None:
    if value is None:
        return None
    limit = whole_number(value) if _LIMIT.fullmatch(value) else None
    if limit is None or limit > GREATEST:
        raise errors.InvalidQuery(
            f"invalid limit {value!r:.80}: expected a whole number from 1 to {GREATEST}",
            value,
            (0, len(value)),
        )
    return limit


def _root_required(value: str | None) -> TraitQuery:
    with arguments.naming("root_required"):
        if value is not None and value.startswith(ANY_OF):
            raise errors.InvalidTrait("any-of groups are not supported", value, (0, len(ANY_OF)))
        return TraitQuery.parse_params(*([] if value is None else [value]))


def _subtree(value: str) -> frozenset[str]:
    suffixes = frozenset(suffix.strip() for suffix in value.split(","))
    if "" in suffixes:
        raise errors.InvalidQuery(
            f"same_subtree: empty suffix in {value!r:.80}; write suffixes separated by commas",
            value,
            (0, len(value)),
        )
    return suffixes


def _last(params: ParameterValues, name: str) -> str | None:
    return params[name][-1] if name in params else None


def _only(params: ParameterValues, name: str) -> str | None:
    if len(params.get(name, [])) > 1:
        raise errors.InvalidQuery(f"duplicate parameter {name!r}")
    return _last(params, name)


def _unknown(name: str, known: Iterable[str]) -> errors.InvalidQuery:
    return errors.InvalidQuery(
        f"unknown parameter {name!r:.80}{spelling.near(name, known)}", name, (0, len(name))
    )
