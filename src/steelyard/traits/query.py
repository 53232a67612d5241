"""Trait queries: required traits, forbidden traits and any-of groups.

The text of a query has the syntax of Placement's ``required`` parameters: ``A,!B`` requires A and
forbids B, ``in:C,D`` requires C or D. In one text, ``&`` joins several parameters.
"""

import collections
import dataclasses
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any, TypeVar

from steelyard import errors, extras
from steelyard.text import spelling
from steelyard.traits import arguments
from steelyard.traits.frozen import freeze

T = TypeVar("T")

_NAME = re.compile(r"[A-Z0-9_]{1,255}")
_ALLOWED = "expected 1 to 255 characters of A-Z, 0-9 and _"

_TEXT = frozenset([str])

CUSTOM = "CUSTOM_"
ANY_OF = "in:"
FORBIDDEN = "!"
JOINT = "&"
EVERYTHING = "*"  # the text of the empty query


@dataclasses.dataclass(frozen=True, slots=True)
class TraitQuery:
    """A query for required traits, forbidden traits and any-of groups.

    At least one trait of each any-of group is required. A group of one trait becomes a required
    trait. Raises InvalidTrait if a name is invalid, or if no set of traits satisfies the query.
    """

    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    any_of: frozenset[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        any_of = _members("any_of", self.any_of, "sets of trait names")
        groups = [_names("any_of", group) for group in any_of]
        single = [trait for group in groups if len(group) == 1 for trait in group]
        freeze(self, "required", _names("required", self.required).union(single))
        freeze(self, "forbidden", _names("forbidden", self.forbidden))
        freeze(self, "any_of", frozenset(group for group in groups if len(group) != 1))
        for reason in _contradictions(self.required, self.forbidden, self.any_of):
            raise errors.InvalidTrait(reason)

    @classmethod
    def parse(cls, *required_params: str) -> "TraitQuery":
        """Return the query of these ``required`` parameters.

        A parameter may also be the text of a whole query, as ``str`` returns it. Raises
        InvalidTrait.
        """
        for text in required_params:
            _check_param(text)
        texts = (text for text in required_params if text != EVERYTHING)
        return cls.parse_params(*(param for text in texts for param in text.split(JOINT)))

    @classmethod
    def parse_params(cls, *params: str) -> "TraitQuery":
        """Return the query of these ``required`` parameters, as Placement reads them."""
        parts = [_parsed(param) for param in params]
        try:
            return cls(*_union(parts))
        except errors.InvalidTrait:
            raise _contradiction(params, parts) from None

    def params(self) -> list[str]:
        """Return the sorted ``required`` parameters of the query."""
        plain = [*sorted(self.required), *(FORBIDDEN + trait for trait in sorted(self.forbidden))]
        groups = sorted(sorted(group) for group in self.any_of)
        return [
            *([",".join(plain)] if plain else []),
            *(ANY_OF + ",".join(each) for each in groups),
        ]

    def __str__(self) -> str:
        return JOINT.join(self.params()) or EVERYTHING

    def __bool__(self) -> bool:
        """Return whether the query requires or forbids anything."""
        return bool(self.required or self.forbidden or self.any_of)

    def requiring(self, *traits: str) -> "TraitQuery":
        """Return this query with these traits required in addition."""
        return self & TraitQuery(required=_names("traits", traits))

    def forbidding(self, *traits: str) -> "TraitQuery":
        """Return this query with these traits forbidden in addition."""
        return self & TraitQuery(forbidden=_names("traits", traits))

    def requiring_any(self, *traits: str) -> "TraitQuery":
        """Return this query with at least one of these traits required in addition."""
        return self & TraitQuery(any_of=frozenset([_names("traits", traits)]))

    def __and__(self, other: "TraitQuery") -> "TraitQuery":
        """Return the query that requires and forbids what both queries do.

        Raises InvalidTrait if no set of traits satisfies it.
        """
        if not isinstance(other, TraitQuery):
            return NotImplemented
        return TraitQuery(*_union([self, other]))

    def satisfied_by(self, traits: Collection[str]) -> bool:
        """Return whether these traits satisfy the query."""
        present = _present(traits)
        return (
            self.required <= present
            and self.forbidden.isdisjoint(present)
            and not any(group.isdisjoint(present) for group in self.any_of)
        )

    def unmet(self, traits: Collection[str]) -> Iterator[str]:
        """Yield a text for each part of the query that these traits do not satisfy."""
        return (text for text, _ in self._unmet(_present(traits)))

    def unmet_traits(self, traits: Collection[str]) -> Iterator[tuple[str, str]]:
        """Yield the same texts, each with the trait that decides; empty for an any-of group."""
        return self._unmet(_present(traits))

    def _unmet(self, present: frozenset[str]) -> Iterator[tuple[str, str]]:
        for trait in sorted(self.required - present):
            yield f"required trait {trait} is missing", trait
        for trait in sorted(self.forbidden & present):
            yield f"forbidden trait {trait} is present", trait
        for group in sorted(map(sorted, self.any_of)):
            if present.isdisjoint(group):
                yield f"one of the traits {', '.join(group)} is required, but all are missing", ""

    def simplified(self) -> "TraitQuery":
        """Return the shortest query that is satisfied by the same sets of traits."""
        # A forbidden trait cannot satisfy a group. If only one other trait is left in a group, that
        # trait is required, and may satisfy more groups.
        required, groups = self.required, self.any_of
        while True:
            groups = frozenset(
                group - self.forbidden for group in groups if required.isdisjoint(group)
            )
            single = {trait for group in groups if len(group) == 1 for trait in group}
            if not single:
                break
            required |= single
        found = _ByRarestTrait(groups)
        least = (group for group in groups if all(each == group for each in found.within(group)))
        return TraitQuery(required, self.forbidden, frozenset(least))

    def implies(self, other: "TraitQuery") -> bool:
        """Return whether every set of traits that satisfies this query satisfies the other."""
        mine, others = self.simplified(), check_query("other", other).simplified()
        groups = _ByRarestTrait(mine.any_of)
        return (
            others.required <= mine.required
            and others.forbidden <= mine.forbidden
            and all(
                not mine.required.isdisjoint(group) or any(groups.within(group))
                for group in others.any_of
            )
        )

    def conflicts_with(self, other: "TraitQuery") -> bool:
        """Return whether no set of traits satisfies both queries."""
        check_query("other", other)
        try:
            self & other
        except errors.InvalidTrait:
            return True
        return False

    def unknown(self) -> Iterator[errors.InvalidTrait]:
        """Yield an error for each name that is neither a standard trait nor a custom one.

        Needs the extra ``traits``.
        """
        with extras.required("traits", "the list of standard traits"):
            import os_traits  # noqa: PLC0415  (an extra)
        known = frozenset(os_traits.get_traits())
        for trait in sorted(self.required.union(self.forbidden, *self.any_of) - known):
            if not trait.startswith(CUSTOM):
                yield errors.InvalidTrait(
                    f"unknown trait {trait!r}: expected a standard trait, or a custom one that "
                    f"begins with {CUSTOM}{spelling.near(trait, known)}",
                    trait,
                )

    def require_known(self) -> None:
        """Raise the first error of ``unknown``, if there is one."""
        for error in self.unknown():
            raise error


class _ByRarestTrait:
    """An index of groups by their rarest trait, to find the subsets of a group.

    A group contains the rarest trait of each of its subsets, so only few groups are compared.
    """

    def __init__(self, groups: Collection[frozenset[str]]) -> None:
        frequency = collections.Counter(trait for group in groups for trait in group)
        self._groups: dict[str, list[frozenset[str]]] = {}
        for group in groups:
            rarest = min(group, key=frequency.__getitem__)
            self._groups.setdefault(rarest, []).append(group)

    def within(self, group: frozenset[str]) -> Iterator[frozenset[str]]:
        """Yield the groups that are subsets of this group or equal to it."""
        found = (self._groups.get(trait, ()) for trait in group)
        return (each for some in found for each in some if each <= group)


def _contradictions(
    required: Collection[str], forbidden: frozenset[str], any_of: Iterable[frozenset[str]]
) -> Iterator[str]:
    """Yield each reason why no set of traits satisfies the query of these parts."""
    both = forbidden.intersection(required)
    if both:
        yield f"{', '.join(sorted(both))} is both required and forbidden; remove one of the two"
    for group in any_of:
        if not group:
            yield "empty any-of group; name at least one trait"
        elif group <= forbidden:
            yield (
                f"one of {', '.join(sorted(group))} is required, but all of them are forbidden; "
                f"allow at least one"
            )


def _union(
    queries: Sequence[TraitQuery],
) -> tuple[frozenset[str], frozenset[str], frozenset[frozenset[str]]]:
    """Return all required traits, all forbidden traits and all any-of groups of the queries."""
    return (
        frozenset[str]().union(*(query.required for query in queries)),
        frozenset[str]().union(*(query.forbidden for query in queries)),
        frozenset[frozenset[str]]().union(*(query.any_of for query in queries)),
    )


def _contradiction(params: Sequence[str], parts: Sequence[TraitQuery]) -> errors.InvalidTrait:
    """Return the error that marks the first parameter that contradicts those before it."""
    required = _first_places([part.required for part in parts])
    forbidden = _first_places([part.forbidden for part in parts])
    any_of = _first_places([part.any_of for part in parts])
    contradicting = [
        max(required[trait], forbidden[trait]) for trait in required.keys() & forbidden.keys()
    ] + [
        max(place, *(forbidden[trait] for trait in group))
        for group, place in any_of.items()
        if group <= forbidden.keys()
    ]
    last = min(contradicting)
    why = next(_contradictions(*_union(parts[: last + 1])))
    text = JOINT.join(params[: last + 1])
    return errors.InvalidTrait(why, text, (len(text) - len(params[last]), len(text)))


def _first_places(parts: Sequence[frozenset[T]]) -> dict[T, int]:
    """Return, for each member, the index of the first part that has it."""
    return {member: place for place in reversed(range(len(parts))) for member in parts[place]}


def _names(argument: str, traits: object) -> frozenset[str]:
    names = _members(argument, traits, "a set of trait names")
    with arguments.naming(argument):
        for name in names:
            check_name(name)
    return frozenset(names)


def _present(traits: object) -> frozenset[str]:
    """Return the provider's traits as a set; any text is accepted as a name."""
    # Filters call this for each host, so sets are not copied and types are checked without a loop.
    names = (
        traits
        if isinstance(traits, (frozenset, set))
        else _members("traits", traits, "a set of trait names")
    )
    if not _TEXT.issuperset(map(type, names)):
        for name in names:
            if not isinstance(name, str):
                raise errors.InvalidTrait(f"traits: expected names as text, not {name!r:.80}")
    return frozenset(names)


def _members(argument: str, value: object, expected: str) -> list[Any]:
    return arguments.members(argument, value, expected, errors.InvalidTrait)


def check_query(argument: str, value: object) -> TraitQuery:
    """Return the value if it is a trait query; raise InvalidTrait otherwise."""
    return arguments.instance(
        argument,
        value,
        TraitQuery,
        "a TraitQuery, such as TraitQuery.parse('A,!B')",
        errors.InvalidTrait,
    )


def check_name(trait: object) -> None:
    """Raise InvalidTrait unless this is a valid name of a trait."""
    if not isinstance(trait, str):
        raise errors.InvalidTrait(f"invalid trait {trait!r:.80}: {_ALLOWED}")
    if not _NAME.fullmatch(trait):
        raise errors.InvalidTrait(_invalid(trait), trait, (0, len(trait)))


def _invalid(name: str) -> str:
    return f"invalid trait {name!r:.80}: {_ALLOWED}"


def _check_param(param: object) -> None:
    if not isinstance(param, str):
        raise errors.InvalidTrait(
            f"invalid parameter {param!r:.80}: expected text; pass each parameter as one argument"
        )


def _parsed(param: str) -> TraitQuery:
    """Return the query of one parameter."""
    _check_param(param)
    if param.startswith(ANY_OF):
        phrases = list(_split(param, len(ANY_OF)))
        for start, phrase in phrases:
            if phrase.startswith(FORBIDDEN):
                raise errors.InvalidTrait(
                    f"a trait cannot be forbidden after {ANY_OF!r}; forbid it in another parameter",
                    param,
                    (start, start + len(phrase)),
                )
        return TraitQuery(any_of=frozenset([frozenset(_trait(param, *each) for each in phrases)]))
    required, forbidden = set(), dict[str, int]()
    for start, phrase in _split(param, 0):
        if phrase.startswith(FORBIDDEN):
            forbidden[_trait(param, start + 1, phrase.removeprefix(FORBIDDEN))] = start
        else:
            required.add(_trait(param, start, phrase))
    for trait in sorted(required & forbidden.keys()):
        start = forbidden[trait]
        raise errors.InvalidTrait(
            f"{trait} is both required and forbidden; remove one of the two",
            param,
            (start, start + 1 + len(trait)),
        )
    return TraitQuery(frozenset(required), frozenset(forbidden))


def _trait(text: str, at: int, name: str) -> str:
    if not _NAME.fullmatch(name):
        why = _invalid(name) if name else f"missing trait: {_ALLOWED}"
        if name.startswith(FORBIDDEN):
            why = f"more than one {FORBIDDEN!r} before a trait; write one"
        raise errors.InvalidTrait(why, text, (at, at + len(name)))
    return name


def _split(param: str, start: int) -> Iterator[tuple[int, str]]:
    """Yield the start and the stripped text of each phrase between commas, from ``start`` on."""
    for part in param[start:].split(","):
        phrase = part.strip()
        yield start + part.find(phrase), phrase
        start += len(part) + 1
