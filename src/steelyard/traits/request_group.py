"""One group of a request to Placement, and checks of its UUIDs."""

import dataclasses
from collections.abc import Iterable, Mapping

from steelyard import errors, microversions
from steelyard.resources import check_resource
from steelyard.text import uuids
from steelyard.traits import arguments
from steelyard.traits.frozen import FrozenMapping, freeze
from steelyard.traits.query import ANY_OF, FORBIDDEN, TraitQuery, check_query

Params = list[tuple[str, str]]

_NO_TRAITS = TraitQuery()


@dataclasses.dataclass(frozen=True, slots=True)
class RequestGroup:
    """Resources, traits and aggregates that one provider must offer.

    The providers of one tree may together offer the group without a suffix. Raises InvalidQuery if
    a field is malformed.
    """

    resources: Mapping[str, int] = dataclasses.field(default_factory=dict)
    traits: TraitQuery = _NO_TRAITS
    member_of: frozenset[frozenset[str]] = frozenset()
    """Sets of aggregate UUIDs; the provider must be in at least one aggregate of each set."""
    not_member_of: frozenset[str] = frozenset()
    in_tree: str | None = None

    def __post_init__(self) -> None:
        resources = arguments.mapping(
            "resources", self.resources, "resource classes to amounts, such as {'VCPU': 1}"
        )
        with arguments.naming("resources"):
            for name, amount in resources.items():
                check_resource(name, amount)
        check_query("traits", self.traits)
        member_of = arguments.members("member_of", self.member_of, "sets of aggregate UUIDs")
        freeze(self, "resources", FrozenMapping(resources))
        freeze(self, "member_of", frozenset(_uuids("member_of", each) for each in member_of))
        freeze(self, "not_member_of", _uuids("not_member_of", self.not_member_of))
        if frozenset() in self.member_of:
            raise errors.InvalidQuery("member_of: empty set of aggregates; name at least one")
        if self.in_tree is not None:
            check_uuid("in_tree", self.in_tree)

    def params(self, suffix: str = "") -> Params:
        """Return the parameters of the group in a query string, as pairs of a name and a value."""
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
        """Yield each part with the microversion that it needs.

        ``since`` has the microversions that added the parameters.
        """
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


def _uuids(argument: str, aggregates: object) -> frozenset[str]:
    found = arguments.members(argument, aggregates, "a set of aggregate UUIDs")
    for aggregate in found:
        check_uuid(argument, aggregate)
    return frozenset(found)


def check_uuid(param: str, text: str) -> None:
    """Raise InvalidQuery unless the text is a UUID; dashes, braces and prefixes are optional."""
    try:
        uuids.read(uuid_text(param, text))
    except ValueError as error:
        raise errors.InvalidQuery(f"{param}: {error}", text) from None


def uuid_text(argument: str, value: object) -> str:
    """Return the value if it is text, a valid UUID or not; raise InvalidQuery otherwise."""
    return arguments.instance(argument, value, str, "a UUID as text")


def _one_of(aggregates: Iterable[str]) -> str:
    listed = sorted(aggregates)
    return listed[0] if len(listed) == 1 else ANY_OF + ",".join(listed)
