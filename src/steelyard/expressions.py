"""The value language of extra specs and aggregate metadata.

An expression denotes a set: of strings, and possibly of *absence*, the key not being there at
all. Its text is parsed once into an immutable value that answers two questions: does it admit
this value, and is there a value that both of two expressions admit.

Parsing never raises. Malformed text denotes the empty set, and ``problems`` says what to write
instead.
"""

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Iterator

from steelyard import errors
from steelyard.string_sets import (
    Anything,
    Containing,
    Literal,
    Numbers,
    StringSet,
    Texts,
    finite_number,
    meet,
    successor,
)

OR = "<or>"
ANY = "*"
OPTIONAL = "~"
FORBIDDEN = "!"

_JUNCTION = re.compile(rf"(?<!\S){OR}(?!\S)")

_NUMERIC: dict[str, Callable[[float], Numbers]] = {
    "=": lambda number: Numbers(low=number),
    "==": lambda number: Numbers(low=number, high=number),
    "!=": lambda number: Numbers(hole=number),
    ">=": lambda number: Numbers(low=number),
    "<=": lambda number: Numbers(high=number),
}
_TEXTUAL: dict[str, Callable[[str], StringSet]] = {
    "s==": Literal,
    "s!=": lambda text: Texts(hole=text),
    "s<": lambda text: Texts(end=text),
    "s<=": lambda text: Texts(end=successor(text)),
    "s>": lambda text: Texts(low=successor(text)),
    "s>=": lambda text: Texts(low=text),
    "<in>": lambda word: Containing(frozenset({word})),
}
_ALL_IN = "<all-in>"
_OPERATORS = (*_NUMERIC, *_TEXTUAL, _ALL_IN, OR)
# What looks like the beginning of an operation, whether or not it is one.
_LIKE_OPERATOR = re.compile(r"<(?:or|in|all-in)>|s?[<>=!]+", re.IGNORECASE)

_STANDS_ALONE = (
    f"stands alone, with nothing before or behind it; write {FORBIDDEN!r} for a key that must "
    f"not be there, {OPTIONAL!r} among others for one that may be absent"
)


@dataclasses.dataclass(frozen=True, slots=True)
class Expression:
    """A set of strings and absence, parsed from text.

    Two expressions are equal when they were built from the same parts, whatever the order; an
    expression prints as it was written.
    """

    text: str = dataclasses.field(compare=False)
    admits_absence: bool
    alternatives: frozenset[StringSet]
    notes: tuple[str, ...] = dataclasses.field(compare=False, default=())
    faults: tuple[str, ...] = dataclasses.field(compare=False, default=())
    forbids: bool = False
    """Whether the text is ``!``, which vetoes the values of other aggregates."""

    # The alternatives again: literal texts are compared as a set, rules one by one.
    _literals: frozenset[str] = dataclasses.field(init=False, repr=False, compare=False)
    _rules: tuple[StringSet, ...] = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        literals = frozenset(part.text for part in self.alternatives if isinstance(part, Literal))
        rules = tuple(part for part in self.alternatives if not isinstance(part, Literal))
        object.__setattr__(self, "_literals", literals)
        object.__setattr__(self, "_rules", rules)

    @classmethod
    def parse(cls, text: str) -> "Expression":
        """The expression that the text denotes."""
        return _parse(text)

    @classmethod
    def parse_list(cls, text: str) -> "Expression":
        """The union of the comma-separated expressions, as a forced aggregate offers them."""
        return _parse_list(text)

    @classmethod
    def literals(cls, text: str) -> "Expression":
        """The comma-separated words taken literally, as an unforced aggregate offers them."""
        return cls(text, False, frozenset(Literal(part.strip()) for part in text.split(",")))

    @property
    def problems(self) -> tuple[str, ...]:
        """What is wrong or doubtful about the text, each with what to write instead."""
        return self.faults + self.notes

    def require_well_formed(self) -> "Expression":
        """This expression, or InvalidExpression: for services that take the text from users."""
        if self.faults:
            raise errors.InvalidExpression("; ".join(self.faults))
        return self

    def admits(self, value: str | None) -> bool:
        """Whether the value, or for None absence, is in the set."""
        if value is None:
            return self.admits_absence
        return value in self._literals or any(rule.admits(value) for rule in self._rules)

    def compatible(self, other: "Expression") -> bool:
        """Whether some value, or absence, is in both sets; False where that is not decided."""
        return (self.admits_absence and other.admits_absence) or self.meets(other)

    def meets(self, other: "Expression") -> bool:
        """Whether a value that is present is in both sets; False where that is not decided."""
        return (
            not self._literals.isdisjoint(other._literals)
            or any(rule.admits(text) for rule in self._rules for text in other._literals)
            or any(rule.admits(text) for rule in other._rules for text in self._literals)
            or any(self._meetings_of_rules(other))
        )

    def undecided(self, other: "Expression") -> bool:
        """Whether ``meets`` is False for want of a decision, not because the sets are apart."""
        # Whether a literal text is in a set is always decided.
        return None in self._meetings_of_rules(other) and not self.meets(other)

    def _meetings_of_rules(self, other: "Expression") -> Iterator[bool | None]:
        return (meet(one, two) for one in self._rules for two in other._rules)

    def __str__(self) -> str:
        return self.text


ABSENT = Expression(OPTIONAL, True, frozenset())


@functools.lru_cache(maxsize=4096)
def _parse(text: str) -> Expression:
    text = text.strip()
    if text.split(maxsplit=1)[:1] == [OR]:
        return _junction(text)
    return _alternative(text)


@functools.lru_cache(maxsize=4096)
def _parse_list(text: str) -> Expression:
    parts = [_parse(part) for part in text.split(",")]
    if len(parts) > 1 and any(part.forbids for part in parts):
        return _malformed(text.strip(), f"{FORBIDDEN!r} {_STANDS_ALONE}")
    return _union(text.strip(), parts)


def _junction(text: str) -> Expression:
    parts = [part.strip() for part in _JUNCTION.split(text)[1:]]
    trailing = len(parts) > 1 and not parts[-1]
    if trailing:
        parts.pop()
    if not all(parts):
        return _malformed(text, f"{OR!r} has nothing behind it; write '{OR} a {OR} b'")
    if FORBIDDEN in parts and len(parts) > 1:
        return _malformed(text, f"{FORBIDDEN!r} {_STANDS_ALONE}")
    union = _union(text, [_alternative(part) for part in parts])
    if not trailing or union.faults:
        return union
    note = f"{text!r}: the last {OR!r} has nothing behind it and is ignored; leave it out"
    return dataclasses.replace(union, notes=(*union.notes, note))


def _union(text: str, parts: list[Expression]) -> Expression:
    faults = tuple(fault for part in parts for fault in part.faults)
    if faults:
        return Expression(text, False, frozenset(), faults=faults)
    return Expression(
        text,
        any(part.admits_absence for part in parts),
        frozenset().union(*(part.alternatives for part in parts)),
        notes=tuple(note for part in parts for note in part.notes),
        forbids=any(part.forbids for part in parts),
    )


def _alternative(text: str) -> Expression:
    """The expression of a text that is no junction."""
    if text == ANY:
        return Expression(text, False, frozenset({Anything()}))
    if text in (OPTIONAL, FORBIDDEN):
        return Expression(text, True, frozenset(), forbids=text == FORBIDDEN)
    operator, *operands = text.split() or [""]
    if operator == _ALL_IN and operands:
        return Expression(text, False, frozenset({Containing(frozenset(operands))}))
    if operator in _NUMERIC or operator in _TEXTUAL or operator == _ALL_IN:
        return _operation(text, operator, operands)
    return Expression(text, False, frozenset({Literal(text)}), notes=tuple(_doubts(text)))


def _operation(text: str, operator: str, operands: list[str]) -> Expression:
    if not operands:
        example = "4" if operator in _NUMERIC else "text"
        return _malformed(
            text,
            f"{operator!r} has no operand; write '{operator} {example}', "
            f"or 's== {operator}' for the text itself",
        )
    operand, *ignored = operands
    if operator in _TEXTUAL:
        part = _TEXTUAL[operator](operand)
    else:
        number = finite_number(operand)
        if number is None:
            return _malformed(
                text,
                f"{operand!r} is not a finite number; write one, as in '{operator} 4', "
                f"or compare text, as in '{_textual_twin(operator)} {operand}'",
            )
        part = _NUMERIC[operator](number)
    notes: tuple[str, ...] = ()
    if ignored:
        notes = (
            f"{text!r}: {operator!r} takes one word, {' '.join(ignored)!r} is ignored; "
            f"write '{operator} {operand}'",
        )
    return Expression(text, False, frozenset({part}), notes=notes)


def _textual_twin(operator: str) -> str:
    return "s>=" if operator == "=" else f"s{operator}"


def _doubts(text: str) -> Iterable[str]:
    """Notes on a literal that was perhaps meant to be something else."""
    beginning = _LIKE_OPERATOR.match(text)
    if beginning and beginning[0] == FORBIDDEN:
        yield (
            f"{text!r} is taken literally; {FORBIDDEN!r} takes no value: to exclude one, "
            f"write 's!= {text[1:].strip()}'"
        )
    elif beginning and beginning[0] in _OPERATORS:
        yield (
            f"{text!r} is taken literally; if {beginning[0]!r} was meant to be an operator, "
            f"put a space behind it"
        )
    elif beginning:
        yield (
            f"{text!r} is taken literally, for {beginning[0]!r} is no operator; the operators "
            f"are {', '.join(_OPERATORS)}"
        )
    elif OR in text.split():
        yield f"{text!r} is taken literally; a junction begins with {OR!r}: write '{OR} {text}'"


def _malformed(text: str, fault: str) -> Expression:
    return Expression(text, False, frozenset(), faults=(f"{text!r}: {fault}",))
