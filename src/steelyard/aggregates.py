"""Flavor extra specs against aggregate metadata.

Two checks, both on one host and all of its aggregates:

1. The host's aggregates together must offer what a flavor wants in an extra spec.
2. The flavor must have each key that a *forced* aggregate requires.

A :class:`Judge` reduces each aggregate to a few bits for one flavor. The bits of a host are those
of its aggregates or-ed together, and they decide.
"""

import dataclasses
import fnmatch
import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from steelyard.attributes import read
from steelyard.expressions import Expression
from steelyard.verdict import PASSED, Verdict

SCOPE = "aggregate_instance_extra_specs:"
FORCE_KEY = "force_metadata_check"

_TRUE = frozenset({"1", "t", "true", "on", "y", "yes"})
_FALSE = frozenset({"0", "f", "false", "off", "n", "no"})

_NAMED_AT_MOST = 3
_UNDECIDED = " (whether numbers, text orders and parts of text meet is not decided)"

Metadata = Mapping[str, Any]
Content = frozenset[tuple[str, str]]


def texts(mapping: Metadata) -> dict[str, str]:
    """Return the mapping with every value as text.

    A key that is not text, or whose value is None, counts as missing.
    """
    return {
        key: str(value)
        for key, value in mapping.items()
        if value is not None and isinstance(key, str)
    }


def content(mapping: Metadata) -> Content:
    """What the mapping says, as a value that can be compared and kept."""
    return frozenset(texts(mapping).items())


def flag(text: str) -> bool | None:
    """The truth value that the text spells, or None."""
    word = text.strip().lower()
    return True if word in _TRUE else False if word in _FALSE else None


@dataclasses.dataclass(frozen=True, slots=True)
class Demand:
    """One extra spec of a flavor."""

    key: str
    expression: Expression
    optional: bool
    """Whether a host none of whose aggregates has the key is spared this demand."""

    @classmethod
    def parse(cls, key: str, text: str) -> "Demand":
        scoped = key.startswith(SCOPE)
        return cls(
            key.removeprefix(SCOPE),
            Expression.parse(text),
            optional=":" in key and not scoped,
        )

    @property
    def lenient(self) -> bool:
        """Whether a host can satisfy this demand by not having the key."""
        return self.optional or self.expression.admits_absence

    def barred_by(self, offers: Iterable[Expression]) -> bool:
        """Return whether an aggregate with these offers makes the host count as having the key."""
        if self.expression.admits_absence:
            return not all(offer.admits_absence for offer in offers)
        return True


@dataclasses.dataclass(frozen=True, slots=True)
class ForcedTerms:
    """The metadata of a forced aggregate, read as expressions.

    A key has one expression for each spelling, with the scope and without.
    """

    offers: dict[str, list[Expression]]
    required: dict[str, list[Expression]]
    """The offers without the ignored keys: a flavor must have each of these keys."""

    @classmethod
    def parse(cls, metadata: Content, ignored_keys: tuple[str, ...]) -> "ForcedTerms":
        """Return the terms of this metadata, from a cache if they were parsed before."""
        return _forced_terms(metadata, ignored_keys)

    @property
    def faults(self) -> list[tuple[str, str]]:
        """Each key whose value is malformed, and the fault."""
        return [
            (key, fault)
            for key, expressions in self.offers.items()
            for expression in expressions
            for fault in expression.faults
        ]


@functools.lru_cache(maxsize=1024)
def _forced_terms(metadata: Content, ignored_keys: tuple[str, ...]) -> ForcedTerms:
    offers: dict[str, list[Expression]] = {}
    for written, text in sorted(metadata):
        key = written.removeprefix(SCOPE)
        if key != FORCE_KEY:
            offers.setdefault(key, []).append(Expression.parse_list(text))
    required = {key: offers[key] for key in offers if not is_ignored(key, ignored_keys)}
    return ForcedTerms(offers, required)


def is_ignored(key: str, ignored_keys: Iterable[str]) -> bool:
    """Return whether one of the patterns matches the key, which is given without the scope."""
    return any(fnmatch.fnmatchcase(key, pattern) for pattern in ignored_keys)


def _voids(offer: Expression) -> bool:
    """Return whether no value counts that the host's other aggregates offer for the key."""
    return offer.forbids or bool(offer.faults)


class _Said(NamedTuple):
    """The name and the metadata of one aggregate, as text."""

    name: str
    metadata: dict[str, str]


class Judge:
    """One flavor's extra specs, ready to be compared with the aggregates of many hosts.

    ``ignored_keys`` are patterns of keys that forced aggregates do not require. ``warn`` is called
    for every malformed value, each time it is met. ``only_text`` is False once metadata has had a
    value that is not text.
    """

    def __init__(
        self,
        extra_specs: Content,
        ignored_keys: tuple[str, ...] = (),
        warn: Callable[[str], None] = lambda message: None,
    ) -> None:
        self._ignored_keys = ignored_keys
        self._warn = warn
        self.only_text = True
        self._demands = [
            Demand.parse(key, text)
            for key, text in sorted(extra_specs)
            if key.removeprefix(SCOPE) != FORCE_KEY
        ]
        self._keys = frozenset(demand.key for demand in self._demands)
        for demand in self._demands:
            for fault in demand.expression.faults:
                warn(f"flavor extra spec {demand.key!r} cannot be satisfied: {fault}")
        # The bits of an aggregate, for n demands:
        #   i       it offers a value that demand i admits;
        #   n + i   the host has the key of demand i, and does not count as absent;
        #   2n + i  its value for the key of demand i voids all offers of the host;
        #   3n      it requires a key that the flavor does not have.
        count = len(self._demands)
        self._count = count
        self._all = (1 << count) - 1
        self._lenient = sum(1 << i for i, demand in enumerate(self._demands) if demand.lenient)
        self._literal_bits = [
            (demand.key, _LiteralBits(demand, 1 << i, 1 << count + i))
            for i, demand in enumerate(self._demands)
        ]
        self._forced_bits = functools.lru_cache(maxsize=1024)(self._compute_forced_bits)

    def bits(self, metadata: Metadata, aggregate: object = None) -> int:
        """Return what an aggregate with this metadata contributes to the verdict on its hosts."""
        if FORCE_KEY in metadata and self._is_forced(metadata, aggregate):
            return self._bits_of_forced(metadata, aggregate)
        bits = 0
        try:
            for key, literal_bits in self._literal_bits:
                text = metadata.get(key)
                if text is not None:
                    bits |= literal_bits[text]
                    if type(text) is not str:
                        self.only_text = False
        except TypeError:  # a value that is no text and cannot be hashed either
            self.only_text = False
            return self.bits(texts(metadata), aggregate)
        return bits

    def passes(self, bits: int) -> bool:
        """Return whether a host passes, given the bits of its aggregates or-ed together."""
        return not bits >> 3 * self._count and self._satisfied(bits) == self._all

    def _satisfied(self, bits: int) -> int:
        """Return the bits of the demands that the host satisfies."""
        offered = bits & ~(bits >> 2 * self._count)
        absent = self._lenient & ~(bits >> self._count)
        return (offered | absent) & self._all

    def examine(self, aggregates: Sequence[tuple[str, Metadata]]) -> Verdict:
        """The verdict on a host in these aggregates, each given by name and metadata."""
        return next(self.rejections(aggregates), PASSED)

    def rejections(self, aggregates: Sequence[tuple[str, Metadata]]) -> Iterator[Verdict]:
        """Everything that keeps a host in these aggregates from passing."""
        named = sorted((name, sorted(texts(metadata).items())) for name, metadata in aggregates)
        said = [_Said(name, dict(items)) for name, items in named]
        bits = functools.reduce(operator.or_, (self.bits(each.metadata, each) for each in said), 0)
        return iter(()) if self.passes(bits) else self._rejections(bits, said)

    def _is_forced(self, metadata: Metadata, aggregate: object) -> bool:
        value = metadata[FORCE_KEY]
        if not isinstance(value, str):
            self.only_text = False
        forced = flag(str(value))
        if forced is None and value is not None:
            self._warn(
                f"{_called(aggregate)} has {FORCE_KEY!r} = {str(value)!r}, which is not "
                f"understood, so it is not forced; write 'true' or 'false'"
            )
        return bool(forced)

    def _bits_of_forced(self, metadata: Metadata, aggregate: object) -> int:
        said = content(metadata)
        if any(not isinstance(value, str) for value in metadata.values()):
            self.only_text = False
        for key, fault in ForcedTerms.parse(said, self._ignored_keys).faults:
            self._warn(
                f"{_called(aggregate)} is forced, and its {key!r} cannot be satisfied: {fault}"
            )
        return self._forced_bits(said)

    def _compute_forced_bits(self, metadata: Content) -> int:
        terms = ForcedTerms.parse(metadata, self._ignored_keys)
        bits = 0
        for i, demand in enumerate(self._demands):
            offers = terms.offers.get(demand.key)
            if offers:
                bits |= any(map(demand.expression.meets, offers)) << i
                bits |= demand.barred_by(offers) << self._count + i
                bits |= any(map(_voids, offers)) << 2 * self._count + i
        return bits | any(self._missing(terms)) << 3 * self._count

    def _missing(self, terms: ForcedTerms) -> Iterator[tuple[str, Expression]]:
        """Yield each key that a forced aggregate requires and the flavor does not have."""
        for key, expressions in terms.required.items():
            if key not in self._keys:
                for expression in expressions:
                    if not expression.admits_absence:
                        yield key, expression

    def _rejections(self, bits: int, aggregates: list[_Said]) -> Iterator[Verdict]:
        satisfied = self._satisfied(bits)
        for i, demand in enumerate(self._demands):
            if not satisfied >> i & 1:
                yield self._unmet(demand, aggregates)
        for name, metadata in aggregates:
            if flag(metadata.get(FORCE_KEY, "")):
                terms = ForcedTerms.parse(content(metadata), self._ignored_keys)
                for key, expression in self._missing(terms):
                    yield _required(name, key, expression)

    def _unmet(self, demand: Demand, aggregates: list[_Said]) -> Verdict:
        if demand.expression.faults:
            return Verdict.rejected(
                f"key {demand.key!r}: flavor's value is malformed: {demand.expression.faults[0]}"
            )
        wanted = f"key {demand.key!r}: flavor wants {str(demand.expression)!r}"
        wanted += "".join(f" (note that {note})" for note in demand.expression.notes)
        offers = list(self._offers(demand.key, aggregates))
        if not offers:
            return Verdict.rejected(f"{wanted}, no aggregate of the host has the key")
        decisive = _decisive(demand.expression, offers)
        reason = f"{wanted}, " + _listed(
            [_offered(name, offer, demand.expression) for name, offer in decisive]
        )
        one = len({name for name, _ in decisive}) == 1
        if one or any(_voids(offer) for _, offer in decisive):
            return Verdict.rejected(reason)
        undecided = any(demand.expression.undecided(offer) for _, offer in decisive)
        return Verdict.rejected(
            reason, f"{wanted}, other values are offered{_UNDECIDED if undecided else ''}"
        )

    def _offers(self, key: str, aggregates: list[_Said]) -> Iterator[tuple[str, Expression]]:
        for name, metadata in aggregates:
            if flag(metadata.get(FORCE_KEY, "")):
                terms = ForcedTerms.parse(content(metadata), self._ignored_keys)
                for expression in terms.offers.get(key, ()):
                    yield name, expression
            elif key in metadata:
                yield name, Expression.literals(metadata[key])


class _LiteralBits(dict[str, int]):
    """The bits of one demand for each text that unforced aggregates have under its key."""

    _MOST = 4096

    def __init__(self, demand: Demand, met: int, barred: int) -> None:
        super().__init__()
        self._demand = demand
        self._met = met
        self._barred = barred

    def __missing__(self, text: Any) -> int:
        # Unforced aggregates never offer absence, so each that has the key bars the demand.
        bits = self._barred
        if any(map(self._demand.expression.admits, map(str.strip, str(text).split(",")))):
            bits |= self._met
        if len(self) >= self._MOST:
            self.clear()
        if type(text) is str:  # 1, 1.0 and True would be the same key, but are not the same text
            self[text] = bits
        return bits


def _decisive(
    wanted: Expression, offers: list[tuple[str, Expression]]
) -> list[tuple[str, Expression]]:
    """Return the offers, by aggregate, that keep a host from satisfying what is wanted."""
    void = [each for each in offers if _voids(each[1])] if wanted.alternatives else []
    if not wanted.admits_absence:
        return void or offers
    return [each for each in offers if each in void or not each[1].admits_absence]


def _required(name: str, key: str, expression: Expression) -> Verdict:
    if expression.faults:
        return Verdict.rejected(
            f"key {key!r}: value of forced aggregate {name!r} is malformed: {expression.faults[0]}"
        )
    wants = f"forced aggregate {name!r} wants {str(expression)!r}"
    wants += "".join(f" (note that {note})" for note in expression.notes)
    return Verdict.rejected(f"key {key!r}: {wants}, flavor does not have the key")


def _called(aggregate: object) -> str:
    name = read(aggregate, "name")
    return "an aggregate" if name is None else f"aggregate {str(name)!r}"


def _offered(name: str, offer: Expression, wanted: Expression) -> str:
    if offer.faults:
        return f"value of forced aggregate {name!r} is malformed: {offer.faults[0]}"
    if offer.forbids:
        return f"aggregate {name!r} offers {str(offer)!r}, which forbids the key"
    undecided = _UNDECIDED if wanted.undecided(offer) else ""
    return f"aggregate {name!r} offers {str(offer)!r}{undecided}"


def _listed(items: list[str]) -> str:
    listed = "; ".join(items[:_NAMED_AT_MOST])
    more = len(items) - _NAMED_AT_MOST
    return f"{listed}; and {more} more" if more > 0 else listed
