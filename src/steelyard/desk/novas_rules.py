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
        keys = {
            key: _answers(text, offers.get(bare, ()))
            for key, bare, text in demands(extra_specs)
            if bare != key or ":" not in key
        }
        # What is not known about a value matters only where the verdict hangs on it.
        best, worst = (
            _outcome([answers.said(stand_in) for answers in keys.values()])
            for stand_in in (_Says.MATCHES, _Says.DIFFERS)
        )
        if best is not worst:
            return NovaVerdict(Outcome.NOT_KNOWN, _first(keys, _Says.NOT_KNOWN))
        raises = best in (Outcome.ABORTS, Outcome.MAY_ABORT)
        return NovaVerdict(best, _first(keys, _Says.RAISES) if raises else "")


class _Says(enum.Enum):
    """What Nova says of a flavor's text and one value that is offered."""

    MATCHES = enum.auto()
    DIFFERS = enum.auto()
    RAISES = enum.auto()
    NOT_KNOWN = enum.auto()


class _Answer(NamedTuple):
    says: _Says
    why: str = ""


class _Answers:
    """What Nova says of a flavor's text and each of the values that are offered."""

    def __init__(self, text: str, values: tuple[str, ...]) -> None:
        self.each = [_answer(text, value) for value in values]
        said = frozenset(answer.says for answer in self.each)
        known = said - {_Says.NOT_KNOWN}
        self._known, self._all_known = known, known == said

    def said(self, stand_in: _Says) -> frozenset[_Says]:
        """All that is said, with a word in the stead of what is not known."""
        return self._known if self._all_known else self._known | {stand_in}


def _outcome(said: list[frozenset[_Says]]) -> Outcome:
    """Nova's answer from what is said about each key."""
    passes = all(_Says.MATCHES in each for each in said)
    if not any(_Says.RAISES in each for each in said):
        return Outcome.PASSES if passes else Outcome.REJECTS
    # For a key, the first value that matches ends the search; for a flavor, the first key that
    # has none. What raises may come behind it.
    rejects = any(each <= {_Says.DIFFERS} for each in said)
    return Outcome.MAY_ABORT if passes or rejects else Outcome.ABORTS


def _first(keys: Mapping[str, _Answers], wanted: _Says) -> str:
    return next(
        f"key {key!r}: {answer.why}"
        for key, answers in keys.items()
        for answer in answers.each
        if answer.says is wanted
    )


def _offers(aggregates: Iterable[Aggregate]) -> dict[str, tuple[str, ...]]:
    """The values that Nova reads for each key."""
    offers: dict[str, set[str]] = {}
    for aggregate in aggregates:
        for key, text in aggregate.metadata.items():
            offers.setdefault(key, set()).update(map(str.strip, text.split(",")))
    return {key: tuple(sorted(values)) for key, values in offers.items()}


_answers = functools.lru_cache(maxsize=65536)(_Answers)


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
        return _of_numbers(text, words[1], value)
    return _match(expression.admits(value))


def _match(matches: bool) -> _Answer:  # noqa: FBT001  (it is the value that is named)
    return _Answer(_Says.MATCHES if matches else _Says.DIFFERS)


def _of_junction(text: str, words: list[str], value: str) -> _Answer:
    if len(words) == 1:
        return _Answer(_Says.RAISES, ends_in(text, value, IndexError("pop from empty list")))
    if set(words[::2]) != {OR}:
        return _Answer(_Says.NOT_KNOWN, _not_one_word(text))
    return _match(value in words[1::2])


def _not_one_word(text: str) -> str:
    return f"{text!r} has other than one word between two {OR!r}, and Nova reads every second word"


def _of_numbers(text: str, operand: str, value: str) -> _Answer:
    for word in (value, operand):
        try:
            float(word)
        except ValueError as error:
            return _Answer(_Says.RAISES, ends_in(text, value, error))
    for word in (value, operand):
        if finite_number(word) is None:
            return _Answer(_Says.NOT_KNOWN, f"{word!r} is no finite number")
    return _match(Expression.parse(text).admits(value))
