"""The value language of extra specs and aggregate metadata.

An expression denotes a set of strings, which may also contain *absence*: the key is missing. An
:class:`Expression` is immutable and parsed once. It tests whether it admits a value, and whether it
admits some value that another expression admits too.

Parsing never raises. Malformed text denotes the empty set, and ``problems`` lists what to write
instead.
"""

import dataclasses
import functools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from steelyard import errors
from steelyard._string_sets import (
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

__all__ = ["Expression"]

OR = "<or>"
ANY = "*"
OPTIONAL = "~"
FORBIDDEN = "!"

_COMMA = re.compile(",")
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
# A prefix that resembles an operator, valid or not.
_LIKE_OPERATOR = re.compile(r"<(?:or|in|all-in)>|s?[<>=!]+", re.IGNORECASE)

_STANDS_ALONE = (
    f"cannot be combined with other values; write {FORBIDDEN!r} alone for a key that must be "
    f"missing, or {OPTIONAL!r} among the values for a key that may be missing"
)


class Fault(NamedTuple):
    """A malformed part of an expression; ``start`` is its index in the expression's text."""

    text: str
    start: int
    why: str

    def __str__(self) -> str:
        return f"{self.text!r}: {self.why}"


@dataclasses.dataclass(frozen=True, slots=True)
class Expression:
    """A set of strings and absence, parsed from text.

    Expressions with the same alternatives are equal, whatever their order. An expression prints as
    it was written.
    """

    text: str = dataclasses.field(compare=False)
    admits_absence: bool
    alternatives: frozenset[StringSet]
    notes: tuple[str, ...] = dataclasses.field(compare=False, default=())
    faults: tuple[Fault, ...] = dataclasses.field(compare=False, default=())
    forbids: bool = False
    """Whether the text is ``!``, which cancels the values that other aggregates offer."""

    # The alternatives split in two: literal texts are compared as a set, rules one by one.
    _literals: frozenset[str] = dataclasses.field(init=False, repr=False, compare=False)
    _rules: tuple[StringSet, ...] = dataclasses.field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        literals = frozenset(part.text for part in self.alternatives if isinstance(part, Literal))
        rules = tuple(part for part in self.alternatives if not isinstance(part, Literal))
        object.__setattr__(self, "_literals", literals)
        object.__setattr__(self, "_rules", rules)

    @classmethod
    def parse(cls, text: str) -> "Expression":
        """Return the expression that the text denotes."""
        return _parse(text)

    @classmethod
    def parse_list(cls, text: str) -> "Expression":
        """Return the union of comma-separated expressions, as a forced aggregate offers them."""
        return _parse_list(text)

    @classmethod
    def literals(cls, text: str) -> "Expression":
        """Return the comma-separated words as literals, as an unforced aggregate offers them."""
        return cls(text, False, frozenset(Literal(part.strip()) for part in text.split(",")))

    @property
    def problems(self) -> tuple[str, ...]:
        """The faults of the text and notes on doubtful parts, each with what to write instead."""
        return (*map(str, self.faults), *self.notes)

    def require_well_formed(self) -> "Expression":
        """Return this expression, or raise InvalidExpression if it is malformed.

        The error's position is that of the first fault. Services that take the text from users call
        this.
        """
        if self.faults:
            text, start, _ = self.faults[0]
            raise errors.InvalidExpression(
                "; ".join(map(str, self.faults)), self.text, (start, start + len(text))
            )
        return self

    def admits(self, value: str | None) -> bool:
        """Return whether the value is in the set; None stands for absence."""
        if value is None:
            return self.admits_absence
        return value in self._literals or any(rule.admits(value) for rule in self._rules)

    def compatible(self, other: "Expression") -> bool:
        """Return whether both sets have a string, or absence, in common; False if undecided."""
        return (self.admits_absence and other.admits_absence) or self.meets(other)

    def meets(self, other: "Expression") -> bool:
        """Return whether both sets have a string in common; False if undecided."""
        return (
            not self._literals.isdisjoint(other._literals)
            or any(rule.admits(text) for rule in self._rules for text in other._literals)
            or any(rule.admits(text) for rule in other._rules for text in self._literals)
            or any(self._meetings_of_rules(other))
        )

    def undecided(self, other: "Expression") -> bool:
        """Return whether ``meets`` is False only because the answer is undecided."""
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
    text = text.strip()
    parts = [(start, _parse(part)) for start, part in _split(_COMMA, text)]
    if len(parts) > 1 and any(part.forbids for _, part in parts):
        return _malformed(text, f"{FORBIDDEN!r} {_STANDS_ALONE}")
    return _union(text, parts)


def _junction(text: str) -> Expression:
    _, *parts = _split(_JUNCTION, text)
    trailing = len(parts) > 1 and not parts[-1][1]
    if trailing:
        parts.pop()
    words = [word for _, word in parts]
    if not all(words):
        return _malformed(text, f"{OR!r} is not followed by a value; write '{OR} a {OR} b'")
    if FORBIDDEN in words and len(words) > 1:
        return _malformed(text, f"{FORBIDDEN!r} {_STANDS_ALONE}")
    union = _union(text, [(start, _alternative(word)) for start, word in parts])
    if not trailing or union.faults:
        return union
    note = f"{text!r}: the last {OR!r} is not followed by a value and is ignored; remove it"
    return dataclasses.replace(union, notes=(*union.notes, note))


def _split(separator: re.Pattern[str], text: str) -> Iterator[tuple[int, str]]:
    """Yield the start and the text, without surrounding white space, of each part."""
    bounds = [0, *(end for found in separator.finditer(text) for end in found.span()), len(text)]
    for start, end in zip(bounds[::2], bounds[1::2], strict=True):
        part = text[start:end].lstrip()
        yield end - len(part), part.rstrip()


def _union(text: str, places: list[tuple[int, Expression]]) -> Expression:
    """Return the union of the parts of the text, each given with its start."""
    parts = [part for _, part in places]
    faults = tuple(
        fault._replace(start=start + fault.start) for start, part in places for fault in part.faults
    )
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
    """Return the expression of a text that is not a junction."""
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
    """Yield notes on a literal that was possibly meant as something else."""
    beginning = _LIKE_OPERATOR.match(text)
    if beginning and beginning[0] == FORBIDDEN:
        yield (
            f"{text!r} is taken literally; {FORBIDDEN!r} takes no value: to exclude one, "
            f"write 's!= {text[1:].strip()}'"
        )
    elif beginning and beginning[0] in _OPERATORS:
        yield (
            f"{text!r} is taken literally; if {beginning[0]!r} was meant to be an operator, "
            f"put a space after it"
        )
    elif beginning:
        yield (
            f"{text!r} is taken literally: {beginning[0]!r} is not an operator; the operators "
            f"are {', '.join(_OPERATORS)}"
        )
    elif OR in text.split():
        yield f"{text!r} is taken literally; a junction begins with {OR!r}: write '{OR} {text}'"


def _malformed(text: str, why: str) -> Expression:
    return Expression(text, False, frozenset(), faults=(Fault(text, 0, why),))
