"""Query strings read back into requests, as Placement reads them at a microversion."""

import contextlib
import functools
import re
from collections.abc import Callable, Iterable, Iterator

from steelyard import errors, microversions
from steelyard.traits.query import ANY_OF, FORBIDDEN, TraitQuery
from steelyard.traits.requests import (
    GREATEST,
    GROUP_POLICIES,
    CandidatesRequest,
    Params,
    ProvidersRequest,
    RequestGroup,
    check_resource,
    check_uuid,
    whole_number,
)

_OF_A_GROUP = ("resources", "required", "member_of", "in_tree")
_OF_CANDIDATES = ("group_policy", "limit", "root_required", "same_subtree")
_OF_PROVIDERS = ("name", "uuid")

_LIMIT = re.compile(r"[1-9][0-9]*")


def providers(params: Params, microversion: str) -> ProvidersRequest:
    """The request for providers of these parameters."""
    for name, _ in params:
        if name in _OF_CANDIDATES:
            raise errors.InvalidQuery(f"{name} is for allocation candidates, not for providers")
        if name not in (*_OF_A_GROUP, *_OF_PROVIDERS):
            raise _unknown(name, (*_OF_A_GROUP, *_OF_PROVIDERS))
    group = _group(params, "", microversion)
    request = ProvidersRequest(group, _last(params, "name"), _last(params, "uuid"))
    microversions.require(microversion, request.base, [*request.needs(), *_written(params)])
    return request


def candidates(params: Params, microversion: str) -> CandidatesRequest:
    """The request for candidates of these parameters."""
    # Where a tree is named, white space around does not matter here; for providers it does.
    params = [
        (name, value.strip() if name.startswith("in_tree") else value) for name, value in params
    ]
    suffixes = dict.fromkeys(_suffix(name) for name, _ in params if name not in _OF_CANDIDATES)
    request = CandidatesRequest(
        {suffix: _group(params, suffix, microversion) for suffix in suffixes},
        _group_policy(_only(params, "group_policy")),
        _limit(_only(params, "limit")),
        _root_required(_only(params, "root_required")),
        frozenset(map(_subtree, _values(params, "same_subtree"))),
    )
    microversions.require(microversion, request.base, [*request.needs(), *_written(params)])
    return request


def _written(params: Params) -> microversions.Needs:
    """What the way of writing needs, although what is meant could be written otherwise."""
    names = [name for name, _ in params]
    for name, last in dict(params).items():
        if name.startswith("required") and last.startswith(ANY_OF):
            yield f"{ANY_OF!r} in {name}", microversions.ANY_TRAITS
        if name.startswith("member_of") and names.count(name) > 1:
            yield f"more than one {name}", microversions.REPEATED_MEMBER_OF


def _suffix(name: str) -> str:
    for part in _OF_A_GROUP:
        if name.startswith(part):
            return name.removeprefix(part)
    raise _unknown(name, (*_OF_A_GROUP, *_OF_CANDIDATES))


def _group(params: Params, suffix: str, microversion: str) -> RequestGroup:
    required = _values(params, f"required{suffix}")
    if not microversions.reaches(microversion, microversions.ANY_TRAITS):
        required = required[-1:]  # Placement ignored the others before it knew what to make of them
    with _naming(f"required{suffix}"):
        traits = TraitQuery.parse_params(*required)
    amounts: dict[str, int] = {}
    for value in _values(params, f"resources{suffix}"):
        with _naming(f"resources{suffix}"):
            amounts = _resources(value)
    wanted, unwanted = set(), set[str]()
    for value in _values(params, f"member_of{suffix}"):
        name = f"member_of{suffix}"
        if value.startswith(FORBIDDEN):
            unwanted |= _aggregates(name, value, len(FORBIDDEN))
        else:
            wanted.add(_aggregates(name, value, 0))
    trees = _values(params, f"in_tree{suffix}")
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
            raise errors.InvalidQuery.at(
                value,
                start,
                start + len(part),
                f"{part!r:.80} is not understood; write a class and an amount, as in VCPU:1",
            )
        _checked(value, start, part, lambda _: check_resource(name, amount))  # noqa: B023  (at once)
        amounts[name] = amount
    return amounts


def _aggregates(name: str, value: str, start: int) -> frozenset[str]:
    """Those that are named from there on."""
    if not value.startswith(ANY_OF, start):
        if "," in value:
            raise errors.InvalidQuery.at(
                value, start, len(value), f"{name}: several are named; write {ANY_OF} before them"
            )
        parts = [(start, value[start:])]
    else:
        parts = list(_parts(value, start + len(ANY_OF)))
    for at, part in parts:
        _checked(value, at, part, functools.partial(check_uuid, name))
    return frozenset(part for _, part in parts)


def _parts(value: str, start: int) -> Iterator[tuple[int, str]]:
    """From there on: what stands between commas, and where it starts."""
    for part in value[start:].split(","):
        yield start, part
        start += len(part) + 1


def _checked(value: str, start: int, part: str, check: Callable[[str], None]) -> None:
    """Marks the part in the value where it is not what it should be."""
    try:
        check(part)
    except errors.InvalidQuery as error:
        raise errors.InvalidQuery.at(value, start, start + len(part), str(error)) from None


def _group_policy(value: str | None) -> str | None:
    if value is not None and value not in GROUP_POLICIES:
        raise errors.InvalidQuery.at(
            value, 0, len(value), f"group_policy must be {' or '.join(map(repr, GROUP_POLICIES))}"
        )
    return value


def _limit(value: str | None) -> int | None:
    if value is None:
        return None
    limit = whole_number(value) if _LIMIT.fullmatch(value) else None
    if limit is None or limit > GREATEST:
        raise errors.InvalidQuery.at(
            value, 0, len(value), f"limit: {value!r:.80} is no whole number from 1 to {GREATEST}"
        )
    return limit


def _root_required(value: str | None) -> TraitQuery:
    with _naming("root_required"):
        if value is not None and value.startswith(ANY_OF):
            raise errors.InvalidTrait.at(value, 0, len(ANY_OF), "any-of groups are not possible")
        return TraitQuery.parse_params(*([] if value is None else [value]))


def _subtree(value: str) -> frozenset[str]:
    suffixes = frozenset(suffix.strip() for suffix in value.split(","))
    if "" in suffixes:
        raise errors.InvalidQuery.at(
            value,
            0,
            len(value),
            f"same_subtree: {value!r} names a group without a suffix; write suffixes and commas",
        )
    return suffixes


def _values(params: Params, name: str) -> list[str]:
    return [value for key, value in params if key == name]


def _last(params: Params, name: str) -> str | None:
    values = _values(params, name)
    return values[-1] if values else None


def _only(params: Params, name: str) -> str | None:
    if len(_values(params, name)) > 1:
        raise errors.InvalidQuery(f"{name} is there more than once")
    return _last(params, name)


def _unknown(name: str, known: Iterable[str]) -> errors.InvalidQuery:
    return errors.InvalidQuery.at(
        name, 0, len(name), f"there is no parameter {name!r}{errors.near(name, known)}"
    )


@contextlib.contextmanager
def _naming(param: str) -> Iterator[None]:
    """Says which parameter is malformed."""
    try:
        yield
    except errors.InvalidQuery as error:
        raise type(error)(f"{param}: {error}" if param else str(error)) from None
