"""Which traits must be there, which must not, and of which one must be: a query as a value.

The text of a query is that of Placement's ``required`` parameters: ``A,!B`` requires A and forbids
B, ``in:C,D`` requires C or D. Several parameters in one text are joined by ``&``.
"""

import dataclasses
import re
from collections.abc import Collection, Iterable, Iterator

from steelyard import errors, extras

_NAME = re.compile(r"[A-Z0-9_]{1,255}")
_ALLOWED = "a trait name is 1 to 255 characters of A-Z, 0-9 and _"

CUSTOM = "CUSTOM_"
ANY_OF = "in:"
FORBIDDEN = "!"
JOINT = "&"
EVERYTHING = "*"  # the text of the query that asks for nothing


@dataclasses.dataclass(frozen=True, slots=True)
class TraitQuery:
    """Traits that must be present, that must not, and groups of which one must be present.

    A group of one is a required trait, and becomes one. A query that no set of traits satisfies
    is refused with InvalidTrait.
    """

    required: frozenset[str] = frozenset()
    forbidden: frozenset[str] = frozenset()
    any_of: frozenset[frozenset[str]] = frozenset()

    def __post_init__(self) -> None:
        groups = [_names(group) for group in self.any_of]
        single = [trait for group in groups if len(group) == 1 for trait in group]
        _freeze(self, "required", _names(self.required).union(single))
        _freeze(self, "forbidden", _names(self.forbidden))
        _freeze(self, "any_of", frozenset(group for group in groups if len(group) != 1))
        self._check_satisfiable()

    @classmethod
    def parse(cls, *required_params: str) -> "TraitQuery":
        """The query of these ``required`` parameters, or of texts that ``str`` has made of one."""
        for text in required_params:
            if not isinstance(text, str):
                raise errors.InvalidTrait(f"{text!r} is no text; give each parameter by itself")
        texts = (text for text in required_params if text != EVERYTHING)
        return cls.parse_params(*(param for text in texts for param in text.split(JOINT)))

    @classmethod
    def parse_params(cls, *params: str) -> "TraitQuery":
        """The query of these ``required`` parameters as Placement reads them."""
        query, before = cls(), ""
        for param in params:
            parsed = _parsed(param)
            try:
                query &= parsed
            except errors.InvalidTrait as error:
                start = len(before)
                raise errors.InvalidTrait.at(
                    before + param, start, start + len(param), str(error)
                ) from None
            before += param + JOINT
        return query

    def params(self) -> list[str]:
        """The ``required`` parameters that ask for this, sorted."""
        plain = [*sorted(self.required), *(FORBIDDEN + trait for trait in sorted(self.forbidden))]
        groups = sorted(sorted(group) for group in self.any_of)
        return [
            *([",".join(plain)] if plain else []),
            *(ANY_OF + ",".join(each) for each in groups),
        ]

    def __str__(self) -> str:
        return JOINT.join(self.params()) or EVERYTHING

    def __bool__(self) -> bool:
        """Whether it asks for anything."""
        return bool(self.required or self.forbidden or self.any_of)

    def requiring(self, *traits: str) -> "TraitQuery":
        """This query, and each of these traits."""
        return self & TraitQuery(required=_names(traits))

    def forbidding(self, *traits: str) -> "TraitQuery":
        """This query, and none of these traits."""
        return self & TraitQuery(forbidden=_names(traits))

    def requiring_any(self, *traits: str) -> "TraitQuery":
        """This query, and at least one of these traits."""
        return self & TraitQuery(any_of=frozenset([_names(traits)]))

    def __and__(self, other: "TraitQuery") -> "TraitQuery":
        """What satisfies both; InvalidTrait if nothing can."""
        if not isinstance(other, TraitQuery):
            return NotImplemented
        return TraitQuery(
            self.required | other.required,
            self.forbidden | other.forbidden,
            self.any_of | other.any_of,
        )

    def satisfied_by(self, traits: Collection[str]) -> bool:
        """Whether these traits are what is asked for."""
        there = frozenset(traits)
        return (
            self.required <= there
            and self.forbidden.isdisjoint(there)
            and not any(group.isdisjoint(there) for group in self.any_of)
        )

    def unmet(self, traits: Collection[str]) -> Iterator[str]:
        """Each thing that is asked for and that these traits do not give, in words."""
        there = frozenset(traits)
        for trait in sorted(self.required - there):
            yield f"trait {trait} is required and not there"
        for trait in sorted(self.forbidden & there):
            yield f"trait {trait} is forbidden and there"
        for group in sorted(map(sorted, self.any_of)):
            if there.isdisjoint(group):
                yield f"one of the traits {', '.join(group)} is required and none is there"

    def simplified(self) -> "TraitQuery":
        """The shortest query that is satisfied by the same sets of traits."""
        # A forbidden trait cannot be what satisfies a group; what is left of it may be one trait.
        required, groups = self.required, self.any_of
        while True:
            groups = frozenset(
                group - self.forbidden for group in groups if required.isdisjoint(group)
            )
            single = {trait for group in groups if len(group) == 1 for trait in group}
            if not single:
                break
            required |= single
        least = frozenset(group for group in groups if not any(each < group for each in groups))
        return TraitQuery(required, self.forbidden, least)

    def implies(self, other: "TraitQuery") -> bool:
        """Whether every set of traits that satisfies this one satisfies the other."""
        mine, others = self.simplified(), other.simplified()
        return (
            others.required <= mine.required
            and others.forbidden <= mine.forbidden
            and all(
                not mine.required.isdisjoint(group) or any(each <= group for each in mine.any_of)
                for group in others.any_of
            )
        )

    def conflicts_with(self, other: "TraitQuery") -> bool:
        """Whether no set of traits satisfies both."""
        try:
            self & other
        except errors.InvalidTrait:
            return True
        return False

    def require_known(self) -> None:
        """Raises InvalidTrait where a name is neither a standard trait nor a custom one."""
        with extras.required("traits", "the list of standard traits"):
            import os_traits  # noqa: PLC0415  (an extra)
        known = frozenset(os_traits.get_traits())
        for trait in sorted(self.required.union(self.forbidden, *self.any_of) - known):
            if not trait.startswith(CUSTOM):
                raise errors.InvalidTrait(
                    f"{trait} is no standard trait, and a custom one begins with {CUSTOM}"
                    f"{errors.near(trait, known)}"
                )

    def _check_satisfiable(self) -> None:
        both = self.required & self.forbidden
        if both:
            raise errors.InvalidTrait(
                f"{', '.join(sorted(both))} is both required and forbidden; remove one of the two"
            )
        for group in self.any_of:
            if not group:
                raise errors.InvalidTrait("one of no traits is required; name at least one")
            if group <= self.forbidden:
                raise errors.InvalidTrait(
                    f"one of {', '.join(sorted(group))} is required, and each of them is "
                    f"forbidden; remove one of the two"
                )


def _names(traits: Iterable[str]) -> frozenset[str]:
    if isinstance(traits, str) or not isinstance(traits, Iterable):
        raise errors.InvalidTrait(f"{traits!r} is not several names; give a set of them")
    names = list(traits)
    for name in names:
        check_name(name)
    return frozenset(names)


def check_name(trait: object) -> None:
    """Raises InvalidTrait unless this is the name of a trait."""
    if not isinstance(trait, str):
        raise errors.InvalidTrait(f"{trait!r} is no text; {_ALLOWED}")
    if not _NAME.fullmatch(trait):
        raise errors.InvalidTrait.at(trait, 0, len(trait), _ALLOWED)


def _freeze(query: TraitQuery, field: str, value: object) -> None:
    object.__setattr__(query, field, value)


def _parsed(param: str) -> TraitQuery:
    """The query of one parameter."""
    if param.startswith(ANY_OF):
        phrases = list(_split(param, len(ANY_OF)))
        for start, phrase in phrases:
            if phrase.startswith(FORBIDDEN):
                raise errors.InvalidTrait.at(
                    param,
                    start,
                    start + len(phrase),
                    f"after {ANY_OF!r} no trait can be forbidden; forbid it by itself",
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
        raise errors.InvalidTrait.at(
            param,
            start,
            start + 1 + len(trait),
            f"{trait} is both required and forbidden; remove one of the two",
        )
    return TraitQuery(frozenset(required), frozenset(forbidden))


def _trait(text: str, at: int, name: str) -> str:
    if not _NAME.fullmatch(name):
        why = _ALLOWED if name else f"there is a trait missing; {_ALLOWED}"
        if name.startswith(FORBIDDEN):
            why = f"one {FORBIDDEN!r} forbids a trait, more are malformed"
        raise errors.InvalidTrait.at(text, at, at + len(name), why)
    return name


def _split(param: str, start: int) -> Iterator[tuple[int, str]]:
    """From there on: each phrase between commas, without white space, and where it starts."""
    for part in param[start:].split(","):
        phrase = part.strip()
        yield start + part.find(phrase), phrase
        start += len(part) + 1
