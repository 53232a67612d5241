"""Requests to Placement as values, with conversions from and to query strings."""

import abc
import dataclasses
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, ClassVar, Protocol, Self
from urllib.parse import parse_qsl, urlencode

from steelyard import errors, microversions, plugins
from steelyard.resources import GREATEST, is_amount
from steelyard.traits import arguments, flavors, reading
from steelyard.traits.candidates import Candidate, Search, serves
from steelyard.traits.frozen import FrozenMapping, freeze
from steelyard.traits.query import TraitQuery, check_query
from steelyard.traits.request_group import Params, RequestGroup, uuid_text
from steelyard.traits.trees import ProviderT, ProviderTrees

NUMBERED = re.compile(r"[1-9][0-9]*")
NAMED = re.compile(r"[a-zA-Z0-9_-]{1,64}")

_DASHED = re.compile(r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_NO_TRAITS = TraitQuery()


class _Request(abc.ABC):
    """The base class of requests: query strings and microversions."""

    __slots__ = ()

    path: ClassVar[str]
    base: ClassVar[str]
    """The microversion in which Placement added this kind of request."""

    @classmethod
    def parse(cls, query_string: str, microversion: str = microversions.LATEST) -> Self:
        """Return the request of this query string, as the microversion reads it.

        The microversion may be the value of the header ``OpenStack-API-Version``. Raises
        InvalidQuery if the request is malformed, MicroversionTooLow if it needs a higher
        microversion, and UnsupportedMicroversion if the microversion does not exist.
        """
        return cls.of(_decoded(query_string), microversion)

    @classmethod
    def of(
        cls, params: Iterable[tuple[str, str]], microversion: str = microversions.LATEST
    ) -> Self:
        """Return the request of these pairs of names and values, as the microversion reads them.

        The pairs are iterated over once. Raises the errors of ``parse``.
        """
        values = reading.by_name(params)
        microversion = microversions.requested(microversion)
        request = cls(*cls._read(values, microversion))
        microversions.require(microversion, cls.base, [*request.needs(), *reading.needs(values)])
        return request

    @staticmethod
    @abc.abstractmethod
    def _read(params: reading.ParameterValues, microversion: str) -> tuple[Any, ...]:
        """Return the fields of the request, in their order."""

    @abc.abstractmethod
    def params(self) -> Params:
        """Return the parameters of the query string, as pairs of a name and a value."""

    @abc.abstractmethod
    def needs(self) -> microversions.Needs:
        """Return the parts of the request that need more than ``base``."""

    def query_string(self) -> str:
        """Return the query string, which is the same for equal requests."""
        return urlencode(sorted(self.params()), safe=":,!")

    def __str__(self) -> str:
        query = self.query_string()
        return f"GET {self.path}{'?' if query else ''}{query}"

    @property
    def microversion(self) -> str:
        """The lowest microversion that supports the request."""
        return microversions.lowest(self.base, self.needs())

    def require(self, microversion: str) -> None:
        """Raise MicroversionTooLow if a part needs more than this microversion."""
        microversions.require(microversion, self.base, self.needs())


@dataclasses.dataclass(frozen=True, slots=True)
class ProvidersRequest(_Request):
    """A request for ``GET /resource_providers``: each provider must offer the group by itself.

    Raises InvalidQuery if a field is malformed.
    """

    path = "/resource_providers"
    base = "1.0"
    _read = staticmethod(reading.providers)

    group: RequestGroup = dataclasses.field(default_factory=RequestGroup)
    name: str | None = None
    uuid: str | None = None

    def __post_init__(self) -> None:
        arguments.instance("group", self.group, RequestGroup, "a RequestGroup")
        for param, text in (("uuid", self.uuid), ("in_tree", self.group.in_tree)):
            if text is not None and not _DASHED.fullmatch(uuid_text(param, text)):
                raise errors.InvalidQuery(
                    f"{param}: invalid UUID {text!r:.80}: expected 32 hexadecimal digits with four "
                    f"dashes",
                    text,
                )
        if self.name is not None and not is_text(self.name):
            raise errors.InvalidQuery(
                f"invalid name {self.name!r:.80}: expected text that UTF-8 can encode", self.name
            )

    def params(self) -> Params:
        named = (("name", self.name), ("uuid", self.uuid))
        return [(key, value) for key, value in named if value is not None] + self.group.params()

    def needs(self) -> microversions.Needs:
        return self.group.needs(microversions.PROVIDERS)

    def matching(
        self, providers: ProviderTrees[ProviderT] | Iterable[ProviderT]
    ) -> list[ProviderT]:
        """Return the providers that Placement would answer, in the given order.

        Raises InvalidProvider if the providers are malformed or form no trees.
        """
        trees = ProviderTrees.like(providers)
        tree = None
        if self.group.in_tree is not None:
            tree = trees.root_of(self.group.in_tree)
            if tree is None:
                return []
        return [
            given
            for provider, given in trees.pairs
            if (not self.name or self.name == provider.name)
            and (self.uuid is None or self.uuid.lower() == provider.uuid)
            and (tree is None or trees.root(provider) is tree)
            and serves(provider, self.group)
        ]


@dataclasses.dataclass(frozen=True, slots=True)
class CandidatesRequest(_Request):
    """A request for ``GET /allocation_candidates``: trees of providers that offer all groups.

    ``groups`` has the groups by suffix; the suffix of the group without one is ``""``. The
    providers of a tree may offer the groups together. Raises InvalidQuery if a field is malformed,
    or if no microversion supports the request.
    """

    path = "/allocation_candidates"
    base = microversions.CANDIDATES_THEMSELVES
    _read = staticmethod(reading.candidates)

    groups: Mapping[str, RequestGroup]
    group_policy: str | None = None
    limit: int | None = None
    root_required: TraitQuery = _NO_TRAITS
    same_subtree: frozenset[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        groups = arguments.mapping("groups", self.groups, "suffixes to RequestGroups")
        with arguments.naming("groups"):
            for suffix, group in groups.items():
                _check_suffix(suffix)
                arguments.instance(f"the group {suffix!r}", group, RequestGroup, "a RequestGroup")
        if self.limit is not None and not is_amount(self.limit):
            raise errors.InvalidQuery(
                f"invalid limit {self.limit!r}: expected a whole number from 1 to {GREATEST}",
                self.limit,
            )
        if check_query("root_required", self.root_required).any_of:
            raise errors.InvalidTrait(
                f"root_required: any-of groups are not supported: '{self.root_required}'"
            )
        same_subtree = arguments.members("same_subtree", self.same_subtree, "sets of suffixes")
        freeze(self, "groups", FrozenMapping(groups))
        freeze(self, "same_subtree", frozenset(map(_subtree, same_subtree)))
        self._check_group_policy()
        self._check_groups()

    @classmethod
    def from_flavor(cls, flavor: object, image: object = None) -> "CandidatesRequest":
        """Return the request for a server of the flavor that is created from the image.

        Raises InvalidQuery if the flavor or the image is malformed, or if they contradict each
        other.
        """
        groups, policy = flavors.groups_and_policy(flavor, image)
        try:
            return cls(groups, policy)
        except errors.InvalidQuery as error:
            raise error.named("the flavor's extra specs") from None

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
        for part, value in (
            ("limit", self.limit),
            ("root_required", self.root_required),
            ("same_subtree", self.same_subtree),
        ):
            if value:
                yield part, since[part]

    def candidates(
        self,
        providers: ProviderTrees[ProviderT] | Iterable[ProviderT],
        microversion: str = microversions.LATEST,
    ) -> Iterator[Candidate]:
        """Return an iterator over the allocation candidates that Placement would answer.

        The first candidates of all trees come first, in the order of their roots in ``providers``,
        then the second ones, and so on. Each is found when the iterator gets to it, because trees
        of many equal providers have very many. ``limit`` is the largest number. Before microversion
        1.29, a candidate has only one provider of each tree. The microversion may be the value of
        the header ``OpenStack-API-Version``.

        Raises InvalidProvider if the providers are malformed or form no trees, and
        MicroversionTooLow if the request needs a higher microversion.
        """
        search = self._search(ProviderTrees.like(providers), microversion)
        return itertools.islice(search.candidates(), self.limit)

    def roots(
        self,
        providers: ProviderTrees[ProviderT] | Iterable[ProviderT],
        microversion: str = microversions.LATEST,
    ) -> list[ProviderT]:
        """Return the roots of the trees that have candidates, in the given order.

        ``limit`` has no effect. Raises the errors of ``candidates``.
        """
        trees = ProviderTrees.like(providers)
        served = {root.uuid for root in self._search(trees, microversion).roots()}
        return [given for provider, given in trees.pairs if provider.uuid in served]

    def supplying_roots(
        self,
        providers: ProviderTrees[ProviderT] | Iterable[ProviderT],
        microversion: str = microversions.LATEST,
    ) -> list[ProviderT]:
        """Return the roots that supply resources in a candidate, in the given order.

        Nova takes only hosts whose root provider does. A root that shares its inventories counts
        only with candidates of its own tree alone. ``limit`` has no effect. Raises the errors of
        ``candidates``.
        """
        trees = ProviderTrees.like(providers)
        found = {root.uuid for root in self._search(trees, microversion).supplying_roots()}
        return [given for provider, given in trees.pairs if provider.uuid in found]

    def _search(self, trees: ProviderTrees[Any], microversion: str) -> Search:
        microversion = microversions.requested(microversion)
        self.require(microversion)
        return Search(
            trees,
            self.groups,
            self.group_policy == "isolate",
            self.root_required,
            self.same_subtree,
            microversions.reaches(microversion, microversions.NESTED),
        )

    @property
    def _suffixed(self) -> list[str]:
        return [suffix for suffix in self.groups if suffix]

    def _check_group_policy(self) -> None:
        if self.group_policy is None and len(self._suffixed) > 1:
            raise errors.InvalidQuery(
                f"missing group_policy for {len(self._suffixed)} groups with a suffix; write "
                f"'isolate' if each must come from a different provider, otherwise 'none'"
            )
        if self.group_policy not in (None, *reading.GROUP_POLICIES):
            raise errors.InvalidQuery(
                f"invalid group_policy {self.group_policy!r:.80}: expected "
                f"{reading.GROUP_POLICIES_LISTED}",
                self.group_policy,
            )

    def _check_groups(self) -> None:
        """Raise InvalidQuery unless each group has resources or is in ``same_subtree``.

        At least one group must have resources, and ``same_subtree`` must name existing groups.
        """
        together = frozenset[str]().union(*self.same_subtree)
        for suffix in sorted(together - set(self._suffixed)):
            raise errors.InvalidQuery(
                f"same_subtree: no group with the suffix {suffix!r}; available: "
                f"{', '.join(map(repr, self._suffixed)) or 'none'}",
                suffix,
            )
        if not any(group.resources for group in self.groups.values()):
            raise errors.InvalidQuery("missing resources; request some, such as VCPU:1")
        for suffix, group in self.groups.items():
            params = group.params(suffix)
            if not params:
                raise errors.InvalidQuery(
                    f"empty group {suffix!r}; request resources or traits, or leave it out", suffix
                )
            if not group.resources and suffix not in together:
                named = ", ".join(name for name, _ in params)
                raise errors.InvalidQuery(
                    f"missing resources{suffix} for {named}; request some"
                    + (f", or name {suffix!r} in same_subtree" if suffix else "")
                )


def _check_suffix(suffix: object) -> None:
    if suffix != "" and not (is_text(suffix) and NAMED.fullmatch(str(suffix))):
        raise errors.InvalidQuery(
            f"invalid suffix {suffix!r:.80}: expected 1 to 64 characters of a-z, A-Z, 0-9, _ and -",
            suffix,
        )


def _subtree(suffixes: object) -> frozenset[str]:
    found = arguments.members("same_subtree", suffixes, "a set of suffixes")
    with arguments.naming("same_subtree"):
        for suffix in found:
            _check_suffix(suffix)
    if not found:
        raise errors.InvalidQuery("same_subtree: empty set; name at least one suffix")
    return frozenset(found)


def _decoded(query_string: str) -> Params:
    arguments.instance("query_string", query_string, str, "text")
    try:
        return parse_qsl(query_string, keep_blank_values=True, errors="strict")
    except UnicodeDecodeError as error:
        raise errors.InvalidQuery(
            f"invalid query string {query_string!r:.80}: not UTF-8 when decoded: {error}",
            query_string,
        ) from None


def is_text(value: object) -> bool:
    """Return whether the value is text that can be encoded."""
    return isinstance(value, str) and not any("\ud800" <= char <= "\udfff" for char in value)


class QueryBuilder(Protocol):
    """The contract of query builders, which create the request to Placement for a server."""

    @classmethod
    def from_flavor(cls, flavor: object, image: object = None) -> Any:
        """Return the request; it has a ``query_string()`` for ``GET /allocation_candidates``.

        The image is passed only if the caller names one.
        """


QUERY_BUILDERS = plugins.of_protocol("steelyard.query_builders", QueryBuilder, kind="query builder")
