"""Requests to Placement as values, which write themselves as query strings."""

import dataclasses
import re
import types
import uuid
from collections.abc import Iterable, Mapping
from typing import ClassVar
from urllib.parse import parse_qsl, urlencode

from steelyard import errors, microversions
from steelyard.traits.query import ANY_OF, FORBIDDEN, TraitQuery

Params = list[tuple[str, str]]

NUMBERED = re.compile(r"[1-9][0-9]*")
NAMED = re.compile(r"[a-zA-Z0-9_-]{1,64}")
GROUP_POLICIES = ("none", "isolate")

GREATEST = 2**31 - 1  # what Placement's tables hold
_DIGITS = len(str(GREATEST))
_DASHED = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_RESOURCE_CLASS = re.compile(r"[A-Z0-9_]{1,255}")
_NO_TRAITS = TraitQuery()


@dataclasses.dataclass(frozen=True, slots=True)
class RequestGroup:
    """What one provider must offer, or for the group without a suffix one tree of providers."""

    resources: Mapping[str, int] = dataclasses.field(default_factory=dict)
    traits: TraitQuery = _NO_TRAITS
    member_of: frozenset[frozenset[str]] = frozenset()
    """Sets of aggregates: the provider must be in one of each."""
    not_member_of: frozenset[str] = frozenset()
    in_tree: str | None = None

    def __post_init__(self) -> None:
        for name, amount in self.resources.items():
            check_resource(name, amount)
        member_of = frozenset(map(frozenset, self.member_of))
        if frozenset() in member_of:
            raise errors.InvalidQuery("member_of: one of no aggregates is asked for; name some")
        for aggregate in frozenset[str]().union(self.not_member_of, *member_of):
            check_uuid("member_of", aggregate)
        if self.in_tree is not None:
            check_uuid("in_tree", self.in_tree)
        _freeze(self, "resources", types.MappingProxyType(dict(self.resources)))
        _freeze(self, "member_of", member_of)
        _freeze(self, "not_member_of", frozenset(self.not_member_of))

    def __hash__(self) -> int:
        resources = frozenset(self.resources.items())
        return hash((resources, self.traits, self.member_of, self.not_member_of, self.in_tree))

    def params(self, suffix: str = "") -> Params:
        """The parameters of a query string that ask for this."""
        found: Params = []
        if self.resources:
            amounts = (f"{name}:{amount}" for name, amount in sorted(self.resources.items()))
            found.append((f"resources{suffix}", ",".join(amounts)))
        found += [(f"required{suffix}", param) for param in self.traits.params()]
        found += [(f"member_of{suffix}", _one_of(group)) for group in self.member_of]
        if self.not_member_of:
            found.append((f"member_of{suffix}", FORBIDDEN + _one_of(self.not_member_of)))
        if self.in_tree is not None:
            found.append((f"in_tree{suffix}", self.in_tree))
        return found

    def needs(self, since: Mapping[str, str], suffix: str = "") -> microversions.Needs:
        """Each part with the microversion that it needs."""
        for name, _ in self.params():
            if name in since:
                yield f"{name}{suffix}", since[name]
        if self.traits.forbidden:
            yield f"forbidding traits in required{suffix}", microversions.FORBIDDEN_TRAITS
        if self.traits.any_of:
            yield f"any-of groups in required{suffix}", microversions.ANY_TRAITS
        if len(self.member_of) + bool(self.not_member_of) > 1:
            yield f"more than one member_of{suffix}", microversions.REPEATED_MEMBER_OF
        if self.not_member_of:
            yield f"forbidding aggregates in member_of{suffix}", microversions.FORBIDDEN_AGGREGATES


class _Request:
    """What follows for a request from its parameters and its needs."""

    path: ClassVar[str]
    base: ClassVar[str]
    """The microversion in which Placement began to answer such requests."""

    def params(self) -> Params:
        raise NotImplementedError

    def needs(self) -> microversions.Needs:
        raise NotImplementedError

    def query_string(self) -> str:
        """The request after the question mark, the same for equal requests."""
        return urlencode(sorted(self.params()), safe=":,!")

    def __str__(self) -> str:
        query = self.query_string()
        return f"GET {self.path}{'?' if query else ''}{query}"

    @property
    def microversion(self) -> str:
        """The lowest that can express it."""
        return microversions.lowest(self.base, self.needs())

    def require(self, microversion: str) -> None:
        """Raises MicroversionTooLow, with the parts that need more than this microversion."""
        microversions.require(microversion, self.base, self.needs())


@dataclasses.dataclass(frozen=True, slots=True)
class ProvidersRequest(_Request):
    """``GET /resource_providers``: the providers that offer all of this themselves."""

    path = "/resource_providers"
    base = "1.0"

    group: RequestGroup = dataclasses.field(default_factory=RequestGroup)
    name: str | None = None
    uuid: str | None = None

    def __post_init__(self) -> None:
        for param, text in (("uuid", self.uuid), ("in_tree", self.group.in_tree)):
            if text is not None and not _DASHED.fullmatch(str(text)):
                raise errors.InvalidQuery(f"{param}: {text!r} is no UUID with its four dashes")
        if self.name is not None and not is_text(self.name):
            raise errors.InvalidQuery(f"name: {self.name!r} is no text that could be sent")

    @classmethod
    def parse(
        cls, query_string: str, microversion: str = microversions.LATEST
    ) -> "ProvidersRequest":
        """The request of this query string, as it is read at the microversion."""
        return cls.of(_decoded(query_string), microversion)

    @classmethod
    def of(cls, params: Params, microversion: str = microversions.LATEST) -> "ProvidersRequest":
        """The request of these parameters, as they are read at the microversion."""
        from steelyard.traits import reading  # noqa: PLC0415  (it builds on this module)

        return reading.providers(params, microversion)

    def params(self) -> Params:
        named = (("name", self.name), ("uuid", self.uuid))
        return [(key, value) for key, value in named if value is not None] + self.group.params()

    def needs(self) -> microversions.Needs:
        return self.group.needs(microversions.PROVIDERS)


@dataclasses.dataclass(frozen=True, slots=True)
class CandidatesRequest(_Request):
    """``GET /allocation_candidates``: trees of providers that together offer all groups.

    ``groups`` are by suffix; the one without a suffix has the name ``""``. A request that no
    microversion can express is refused with InvalidQuery.
    """

    path = "/allocation_candidates"
    base = microversions.CANDIDATES_THEMSELVES

    groups: Mapping[str, RequestGroup]
    group_policy: str | None = None
    limit: int | None = None
    root_required: TraitQuery = _NO_TRAITS
    same_subtree: frozenset[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        for suffix in self.groups:
            if suffix != "" and not (is_text(suffix) and NAMED.fullmatch(suffix)):
                raise errors.InvalidQuery(
                    f"{suffix!r} is no suffix; it is 1 to 64 characters of a-z, A-Z, 0-9, _ and -"
                )
        if self.limit is not None and not _is_whole(self.limit):
            raise errors.InvalidQuery(
                f"limit is {self.limit!r}; it must be a whole number from 1 to {GREATEST}"
            )
        _freeze(self, "groups", types.MappingProxyType(dict(self.groups)))
        _freeze(self, "same_subtree", frozenset(map(frozenset, self.same_subtree)))
        if self.root_required.any_of:
            raise errors.InvalidTrait(
                f"root_required cannot have any-of groups, but has {self.root_required}"
            )
        self._check_group_policy()
        self._check_groups()

    @classmethod
    def parse(
        cls, query_string: str, microversion: str = microversions.LATEST
    ) -> "CandidatesRequest":
        """The request of this query string, as it is read at the microversion."""
        return cls.of(_decoded(query_string), microversion)

    @classmethod
    def of(cls, params: Params, microversion: str = microversions.LATEST) -> "CandidatesRequest":
        """The request of these parameters, as they are read at the microversion."""
        from steelyard.traits import reading  # noqa: PLC0415  (it builds on this module)

        return reading.candidates(params, microversion)

    def __hash__(self) -> int:
        groups, whole = frozenset(self.groups.items()), (self.group_policy, self.limit)
        return hash((groups, whole, self.root_required, self.same_subtree))

    @classmethod
    def from_flavor(cls, flavor: object, image: object = None) -> "CandidatesRequest":
        """The request for what a server of the flavor, made from the image, needs."""
        from steelyard.traits import flavors  # noqa: PLC0415  (it builds on this module)

        return flavors.candidates_request(flavor, image)

    def params(self) -> Params:
        found = [param for suffix, group in self.groups.items() for param in group.params(suffix)]
        if self.group_policy is not None:
            found.append(("group_policy", self.group_policy))
        if self.limit is not None:
            found.append(("limit", str(self.limit)))
        found += [("root_required", param) for param in self.root_required.params()]
        found += [("same_subtree", ",".join(sorted(suffixes))) for suffixes in self.same_subtree]
        return found

    def needs(self) -> microversions.Needs:
        since = microversions.CANDIDATES
        for suffix, group in self.groups.items():
            yield from group.needs(since, suffix)
            if suffix:
                kind = "numbered groups" if NUMBERED.fullmatch(suffix) else "named groups"
                yield f"the group with the suffix {suffix!r}", since[kind]
        if "" not in self.groups:
            yield "no group without a suffix", since["numbered groups"]
        if self.group_policy is not None:
            yield "group_policy", since["numbered groups"]
        for part, there in (
            ("limit", self.limit),
            ("root_required", self.root_required),
            ("same_subtree", self.same_subtree),
        ):
            if there:
                yield part, since[part]

    @property
    def _suffixed(self) -> list[str]:
        return [suffix for suffix in self.groups if suffix]

    def _check_group_policy(self) -> None:
        if self.group_policy is None and len(self._suffixed) > 1:
            raise errors.InvalidQuery(
                f"there are {len(self._suffixed)} groups with a suffix, and no group_policy; say "
                f"'isolate' if each must come from a provider of its own, else 'none'"
            )
        if self.group_policy not in (None, *GROUP_POLICIES):
            raise errors.InvalidQuery(
                f"group_policy is {self.group_policy!r}; it must be 'none' or 'isolate'"
            )

    def _check_groups(self) -> None:
        """That there are resources, and that groups without any are in a subtree with others."""
        together = frozenset[str]().union(*self.same_subtree)
        for suffix in sorted(together - set(self._suffixed)):
            raise errors.InvalidQuery(
                f"same_subtree names the group {suffix!r}, which there is not; there are "
                f"{', '.join(map(repr, self._suffixed)) or 'none with a suffix'}"
            )
        if not any(group.resources for group in self.groups.values()):
            raise errors.InvalidQuery("there are no resources; ask for some, as in VCPU:1")
        for suffix, group in self.groups.items():
            if not group.resources and suffix not in together:
                asked = ", ".join(name for name, _ in group.params(suffix)) or "an empty group"
                raise errors.InvalidQuery(
                    f"{asked} without resources{suffix}: ask for resources too"
                    + (f", or name {suffix!r} in same_subtree" if suffix else "")
                )


def _decoded(query_string: str) -> Params:
    try:
        return parse_qsl(query_string, keep_blank_values=True, errors="strict")
    except UnicodeDecodeError as error:
        raise errors.InvalidQuery(f"{query_string!r} is not UTF-8 when decoded: {error}") from None


def whole_number(text: str) -> int | None:
    """The number that the text reads as, if it is one that Placement could hold."""
    try:
        return int(text) if len(text.strip().lstrip("0")) <= _DIGITS else None
    except ValueError:
        return None


def is_text(value: object) -> bool:
    """Whether it is text that can be encoded."""
    return isinstance(value, str) and not any("\ud800" <= char <= "\udfff" for char in value)


def check_class(name: str) -> None:
    """Raises InvalidQuery unless this is the name of a resource class."""
    if not isinstance(name, str) or not _RESOURCE_CLASS.fullmatch(name):
        raise errors.InvalidQuery(
            f"{name!r} is no resource class; it is 1 to 255 characters of A-Z, 0-9 and _"
        )


def check_resource(name: str, amount: int) -> None:
    """Raises InvalidQuery unless so much of the resource class can be asked for."""
    check_class(name)
    if not _is_whole(amount):
        raise errors.InvalidQuery(
            f"the amount of {name} is {amount!r}; it must be a whole number from 1 to {GREATEST}"
        )


def _is_whole(number: object) -> bool:
    return type(number) is int and 1 <= number <= GREATEST


def check_uuid(param: str, text: str) -> None:
    """Raises InvalidQuery unless the text is a UUID, with or without what may decorate one."""
    bare = str(text).replace("urn:", "").replace("uuid:", "").strip("{}").replace("-", "").lower()
    try:
        if uuid.UUID(str(text)).hex == bare:
            return
    except ValueError:
        pass
    raise errors.InvalidQuery(
        f"{param}: {text!r} is no UUID; write one such as 5e08ea53-c4c6-448e-9334-ac4953de3cfa"
    )


def _freeze(request: object, field: str, value: object) -> None:
    object.__setattr__(request, field, value)


def _one_of(aggregates: Iterable[str]) -> str:
    listed = sorted(aggregates)
    return listed[0] if len(listed) == 1 else ANY_OF + ",".join(listed)
