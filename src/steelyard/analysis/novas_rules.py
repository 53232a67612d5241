"""Nova's rules as far as steelyard knows them, for use without an installed Nova.

A flavor's value is parsed in steelyard's own language and then evaluated as Nova evaluates it:
sentinels are ordinary words, metadata is literal even in forced aggregates, namespaced keys are
skipped, and a malformed number raises. For other malformed values, Nova's answer is not known.
"""

import enum
import functools
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from steelyard._string_sets import Literal, Numbers, finite_number
from steelyard.cloud import Aggregate
from steelyard.expressions import ANY, FORBIDDEN, OPTIONAL, OR, Expression
from steelyard.scheduler.rules import NovaAnswer, NovaVerdict, demands, ends_in

SENTINELS = frozenset({ANY, OPTIONAL, FORBIDDEN})


class OwnRules:
    """Steelyard's own knowledge of Nova's rules."""

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
        # An unknown result matters only if the verdict depends on it, so compute the outcome once
        # as if all unknown results matched and once as if none did.
        best, worst = (
            _outcome([answers.results(stand_in) for answers in keys.values()])
            for stand_in in (_Result.MATCHES, _Result.DIFFERS)
        )
        if best is not worst:
            return NovaVerdict(NovaAnswer.NOT_KNOWN, _first(keys, _Result.NOT_KNOWN))
        raises = best in (NovaAnswer.ABORTS, NovaAnswer.MAY_ABORT)
        return NovaVerdict(best, _first(keys, _Result.RAISES) if raises else "")


class _Result(enum.Enum):
    """The result of Nova's comparison of a flavor's text with one offered value."""

    MATCHES = enum.auto()
    DIFFERS = enum.auto()
    RAISES = enum.auto()
    NOT_KNOWN = enum.auto()


class _Answer(NamedTuple):
    result: _Result
    why: str = ""


class _Answers:
    """The results of Nova's comparison of a flavor's text with each offered value."""

    def __init__(self, text: str, values: tuple[str, ...]) -> None:
        self.each = [_answer(text, value) for value in values]
        results = frozenset(answer.result for answer in self.each)
        known = results - {_Result.NOT_KNOWN}
        self._known, self._all_known = known, known == results

    def results(self, stand_in: _Result) -> frozenset[_Result]:
        """Return the set of results, with ``stand_in`` for those that are not known."""
        return self._known if self._all_known else self._known | {stand_in}


def _outcome(results: list[frozenset[_Result]]) -> NovaAnswer:
    """Return Nova's answer, given the set of results for each key."""
    passes = all(_Result.MATCHES in each for each in results)
    if not any(_Result.RAISES in each for each in results):
        return NovaAnswer.PASSES if passes else NovaAnswer.REJECTS
    # Nova stops at a key's first matching value, and at the first key that has none. The order is
    # not defined, so a comparison that raises may never run.
    rejects = any(each <= {_Result.DIFFERS} for each in results)
    return NovaAnswer.MAY_ABORT if passes or rejects else NovaAnswer.ABORTS


def _first(keys: Mapping[str, _Answers], wanted: _Result) -> str:
    return next(
        f"key {key!r}: {answer.why}"
        for key, answers in keys.items()
        for answer in answers.each
        if answer.result is wanted
    )


def _offers(aggregates: Iterable[Aggregate]) -> dict[str, tuple[str, ...]]:
    """Return the values that Nova reads for each key."""
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
        return _match(matches=text == value)  # Nova strips the value, but not the text
    if len(words) == 1:  # an operator without operand
        return _match(matches=False)
    if expression.faults or any(isinstance(part, Numbers) for part in expression.alternatives):
        return _of_numbers(text, words[1], value)
    return _match(matches=expression.admits(value))


def _match(*, matches: bool) -> _Answer:
    return _Answer(_Result.MATCHES if matches else _Result.DIFFERS)


def _of_junction(text: str, words: list[str], value: str) -> _Answer:
    if len(words) == 1:
        return _Answer(_Result.RAISES, ends_in(text, value, IndexError("pop from empty list")))
    if set(words[::2]) != {OR}:
        return _Answer(_Result.NOT_KNOWN, _not_one_word(text))
    return _match(matches=value in words[1::2])


def _not_one_word(text: str) -> str:
    return f"{text!r} is not words separated by {OR!r}, and Nova reads every second word"


def _of_numbers(text: str, operand: str, value: str) -> _Answer:
    for word in (value, operand):
        try:
            float(word)
        except ValueError as error:
            return _Answer(_Result.RAISES, ends_in(text, value, error))
    for word in (value, operand):
        if finite_number(word) is None:
            return _Answer(_Result.NOT_KNOWN, f"{word!r} is not a finite number")
    return _match(matches=Expression.parse(text).admits(value))
