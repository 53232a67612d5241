"""Nova's rules as far as steelyard knows them, for where there is no Nova to ask.

A flavor's value is read with steelyard's own language, and then taken as Nova takes it:
sentinels are words like any other, metadata is literal whatever is forced, namespaced keys are
skipped, and what is no number raises. What Nova makes of the rest is not known, and not guessed.
"""

import enum
import functools
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from steelyard.desk.rules import NovaVerdict, Outcome, demands, ends_in
from steelyard.expressions import ANY, FORBIDDEN, OPTIONAL, OR, Expression
from steelyard.scheduler import Aggregate
from steelyard.string_sets import Literal, Numbers, finite_number

SENTINELS = frozenset({ANY, OPTIONAL, FORBIDDEN})


class OwnRules:
    """What steelyard knows of Nova's rules."""

    name = "steelyard's own"

    def __init__(self) -> None:
        self._offers_of = functools.lru_cache(maxsize=4096)(_offers)

    def judge(
        self, extra_specs: Mapping[str, str], aggregates: tuple[Aggregate, ...]
    ) -> NovaVerdict:
        offers = self._offers_of(aggregates)
        keys = [
            _Key(key, [_answer(text, value) for value in offers.get(bare, ())])
            for key, bare, text in demands(extra_specs)
            if bare != key or ":" not in key
        ]
        # What is not known about a value matters only where the verdict hangs on it.
        verdict = _verdict(keys, _Says.MATCHES)
        if verdict == _verdict(keys, _Says.DIFFERS):
            return verdict
        return NovaVerdict(Outcome.NOT_KNOWN, _first(keys, _Says.NOT_KNOWN))


class _Says(enum.Enum):
    """What Nova says of a flavor's text and one value that is offered."""

    MATCHES = enum.auto()
    DIFFERS = enum.auto()
    RAISES = enum.auto()
    NOT_KNOWN = enum.auto()


class _Answer(NamedTuple):
    says: _Says
    why: str = ""


class _Key(NamedTuple):
    """A key of a flavor, and the answers for the values that are offered for it."""

    key: str
    answers: list[_Answer]

    def says(self, instead_of_not_known: _Says) -> set[_Says]:
        said = {answer.says for answer in self.answers}
        return {instead_of_not_known if each is _Says.NOT_KNOWN else each for each in said}


def _verdict(keys: list[_Key], instead_of_not_known: _Says) -> NovaVerdict:
    said = [key.says(instead_of_not_known) for key in keys]
    passes = all(_Says.MATCHES in each for each in said)
    if not any(_Says.RAISES in each for each in said):
        return NovaVerdict(Outcome.PASSES if passes else Outcome.REJECTS)
    # Of a key, the first value that matches ends the search; of a flavor, the first key without.
    rejects = any(each <= {_Says.DIFFERS} for each in said)
    outcome = Outcome.MAY_ABORT if passes or rejects else Outcome.ABORTS
    return NovaVerdict(outcome, _first(keys, _Says.RAISES))


def _first(keys: list[_Key], wanted: _Says) -> str:
    found = (
        f"key {key.key!r}: {answer.why}"
        for key in keys
        for answer in key.answers
        if answer.says is wanted
    )
    return next(found, "")


def _offers(aggregates: Iterable[Aggregate]) -> dict[str, list[str]]:
    offers: dict[str, set[str]] = {}
    for aggregate in aggregates:
        for key, text in aggregate.metadata.items():
            offers.setdefault(key, set()).update(map(str.strip, text.split(",")))
    return {key: sorted(values) for key, values in offers.items()}


@functools.lru_cache(maxsize=65536)
def _answer(text: str, value: str) -> _Answer:
    plain, words = text.strip(), text.split()
    if words[:1] == [OR]:
        return _of_junction(text, words, value)
    expression = Expression.parse(text)
    if plain in SENTINELS or Literal(plain) in expression.alternatives:
        return _match(text == value)  # with the white space around it, that no value has
    if len(words) == 1:  # an operator without operand
        return _match(False)
    if expression.faults or any(isinstance(part, Numbers) for part in expression.alternatives):
        return _of_numbers(expression, words[1], value)
    return _match(expression.admits(value))


def _match(matches: bool) -> _Answer:  # noqa: FBT001  (it is the value that is named)
    return _Answer(_Says.MATCHES if matches else _Says.DIFFERS)


def _of_junction(text: str, words: list[str], value: str) -> _Answer:
    if len(words) == 1:
        return _Answer(_Says.RAISES, ends_in(text, value, IndexError("pop from empty list")))
    if set(words[::2]) != {OR}:
        return _Answer(_Says.NOT_KNOWN, f"{text!r} has not one word between two {OR!r}")
    return _match(value in words[1::2])


def _of_numbers(expression: Expression, operand: str, value: str) -> _Answer:
    for word in (value, operand):
        try:
            float(word)
        except ValueError as error:
            return _Answer(_Says.RAISES, ends_in(str(expression), value, error))
    for word in (value, operand):
        if finite_number(word) is None:
            return _Answer(_Says.NOT_KNOWN, f"{word!r} is no finite number")
    return _match(expression.admits(value))
