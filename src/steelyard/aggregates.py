"""The match between flavor extra specs and aggregate metadata.

A host passes if both of these hold:

1. The host's aggregates together satisfy each extra spec of the flavor.
2. The flavor has each key that is required by a *forced* aggregate of the host.

For one flavor, a :class:`Judge` reduces each aggregate to an integer of a few bits. The bits of a
host's aggregates, ORed together, decide whether the host passes.
"""

import dataclasses
import fnmatch
import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from steelyard.attributes import read
from steelyard.expressions import Expression, Fault
from steelyard.verdict import PASSED, Verdict

SCOPE = "aggregate_instance_extra_specs:"
FORCE_KEY = "force_metadata_check"

_TRUE = frozenset({"1", "t", "true", "on", "y", "yes"})
_FALSE = frozenset({"0", "f", "false", "off", "n", "no"})

_NAMED_AT_MOST = 3
_UNDECIDED = " (operators that cannot be compared count as incompatible)"

Metadata = Mapping[str, Any]
Content = frozenset[tuple[str, str]]


def texts(mapping: Metadata) -> dict[str, str]:
    """Return the mapping with every value as text.

    Keys that are not text, and keys whose value is None, are left out.
    """
    return {
        key: str(value)
        for key, value in mapping.items()
        if value is not None and isinstance(key, str)
    }


def content(mapping: Metadata) -> Content:
    """Return the keys and values of the mapping, both as text, as a hashable value."""
    return frozenset(texts(mapping).items())


def flag(text: str) -> bool | None:
    """Return the truth value of a word such as ``true`` or ``off``; None for any other text."""
    word = text.strip().lower()
    return True if word in _TRUE else False if word in _FALSE else None


@dataclasses.dataclass(frozen=True, slots=True)
class Demand:
    """One extra spec of a flavor."""

    key: str
    expression: Expression
    optional: bool
    """Whether a host satisfies this demand if none of its aggregates has the key."""

    @classmethod
    def parse(cls, key: str, text: str) -> "Demand":
        # Keys of other scopes, such as hw:cpu_policy, are mostly meant for other components.
        scoped = key.startswith(SCOPE)
        return cls(
            key.removeprefix(SCOPE),
            Expression.parse(text),
            optional=":" in key and not scoped,
        )

    @property
    def lenient(self) -> bool:
        """Whether a host without the key satisfies this demand."""
        return self.optional or self.expression.admits_absence

    def barred_by(self, offers: Iterable[Expression]) -> bool:
        """Return whether an aggregate with these offers counts as having the key.

        If the demand admits absence, an aggregate whose offers all admit absence does not count.
        """
        if self.expression.admits_absence:
            return not all(offer.admits_absence for offer in offers)
        return True


@dataclasses.dataclass(frozen=True, slots=True)
class ForcedTerms:
    """The metadata of a forced aggregate, parsed as expressions.

    A key that is written both with and without the scope has two expressions.
    """

    offers: dict[str, list[Expression]]
    required: dict[str, list[Expression]]
    """The offers without those of ignored keys.

    The flavor must have these keys, except those whose expressions admit absence.
    """

    @classmethod
    def parse(cls, metadata: Content, ignored_keys: tuple[str, ...]) -> "ForcedTerms":
        """Return the terms of this metadata; recent results are cached."""
        return _forced_terms(metadata, ignored_keys)

    @property
    def faults(self) -> list[tuple[str, Fault]]:
        """The malformed values, as pairs of a key and a fault of its value."""
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
    """Return whether a pattern matches the key, which is given without the scope."""
    return any(fnmatch.fnmatchcase(key, pattern) for pattern in ignored_keys)


def _voids(offer: Expression) -> bool:
    """Return whether this offer cancels all values that the host's aggregates offer for the key."""
    return offer.forbids or bool(offer.faults)


class _Aggregate(NamedTuple):
    """One aggregate, with its metadata as text."""

    name: str
    metadata: dict[str, str]


class Judge:
    """A flavor's extra specs, compared with the aggregates of many hosts.

    ``ignored_keys`` are patterns (see :mod:`fnmatch`) of keys that forced aggregates do not
    require. ``warn`` is called with a message for each malformed value, and again whenever the
    value is read again.
    """

    def __init__(
        self,
        extra_specs: Content,
        ignored_keys: tuple[str, ...] = (),
        warn: Callable[[str], None] = lambda message: None,
    ) -> None:
        self._ignored_keys = ignored_keys
        self._warn = warn
        self._demands = [
            Demand.parse(key, text)
            for key, text in sorted(extra_specs)
            if key.removeprefix(SCOPE) != FORCE_KEY
        ]
        self._keys = frozenset(demand.key for demand in self._demands)
        for demand in self._demands:
            for fault in demand.expression.faults:
                warn(f"Flavor extra spec {demand.key!r} cannot be satisfied: {fault}")
        # The bits of an aggregate, for n demands:
        #   i       it offers a value that demand i admits;
        #   n + i   it counts as having the key of demand i;
        #   2n + i  its value cancels all offers of the host for the key of demand i;
        #   3n      it requires a key that is missing from the flavor.
        count = len(self._demands)
        self._count = count
        self._all = (1 << count) - 1
        self._lenient = sum(1 << i for i, demand in enumerate(self._demands) if demand.lenient)
        self._literal_bits = [
            (demand.key, _LiteralBits(demand, 1 << i, 1 << count + i))
            for i, demand in enumerate(self._demands)
        ]
        self._forced_bits = functools.lru_cache(maxsize=1024)(self._compute_forced_bits)

    def is_concerned(self, metadata: Metadata) -> bool:
        """Return whether an aggregate with this metadata can change the verdict on a host."""
        return FORCE_KEY in metadata or not self._keys.isdisjoint(metadata)

    def bits(self, metadata: Metadata, aggregate: object = None) -> int:
        """Return the bits of an aggregate with this metadata.

        ``aggregate`` is the object that warnings name.
        """
        if FORCE_KEY in metadata and self._is_forced(metadata, aggregate):
            return self._bits_of_forced(metadata, aggregate)
        bits = 0
        try:
            for key, literal_bits in self._literal_bits:
                text = metadata.get(key)
                if text is not None:
                    bits |= literal_bits[text]
        except TypeError:  # an unhashable value, such as a list
            return self.bits(texts(metadata), aggregate)
        return bits

    def passes(self, bits: int) -> bool:
        """Return whether a host passes, given the bits of its aggregates ORed together."""
        return not self.lacks_required_key(bits) and self._satisfied(bits) == self._all

    def unmet(self, bits: int) -> int:
        """Return how many extra specs of the flavor a host with these bits does not satisfy."""
        return (self._all & ~self._satisfied(bits)).bit_count()

    def lacks_required_key(self, bits: int) -> bool:
        """Return whether the flavor lacks a key that a host with these bits requires."""
        return bool(bits >> 3 * self._count)

    def _satisfied(self, bits: int) -> int:
        """Return the bits of the demands that the host satisfies."""
        offered = bits & ~(bits >> 2 * self._count)
        absent = self._lenient & ~(bits >> self._count)
        return (offered | absent) & self._all

    def examine(self, aggregates: Sequence[tuple[str, Metadata]]) -> Verdict:
        """Return the verdict on a host in these aggregates, each given by name and metadata."""
        return next(self.rejections(aggregates), PASSED)

    def rejections(self, aggregates: Sequence[tuple[str, Metadata]]) -> Iterator[Verdict]:
        """Return all rejections of a host in these aggregates; none if it passes."""
        named = sorted((name, sorted(texts(metadata).items())) for name, metadata in aggregates)
        as_text = [_Aggregate(name, dict(items)) for name, items in named]
        each_bits = (self.bits(each.metadata, each) for each in as_text)
        bits = functools.reduce(operator.or_, each_bits, 0)
        return iter(()) if self.passes(bits) else self._rejections(bits, as_text)

    def _is_forced(self, metadata: Metadata, aggregate: object) -> bool:
        value = metadata[FORCE_KEY]
        forced = flag(str(value))
        if forced is None and value is not None:
            self._warn(
                f"{_label(aggregate)} is not forced: invalid {FORCE_KEY!r} = {str(value)!r}: "
                f"expected 'true' or 'false'"
            )
        return bool(forced)

    def _bits_of_forced(self, metadata: Metadata, aggregate: object) -> int:
        pairs = content(metadata)
        for key, fault in ForcedTerms.parse(pairs, self._ignored_keys).faults:
            self._warn(
                f"{_label(aggregate)} is forced, but its key {key!r} cannot be satisfied: {fault}"
            )
        return self._forced_bits(pairs)

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
        """Yield each key that a forced aggregate requires and the flavor lacks.

        The key comes with its expression.
        """
        for key, expressions in terms.required.items():
            if key not in self._keys:
                for expression in expressions:
                    if not expression.admits_absence:
                        yield key, expression

    def _rejections(self, bits: int, aggregates: list[_Aggregate]) -> Iterator[Verdict]:
        satisfied = self._satisfied(bits)
        for i, demand in enumerate(self._demands):
            if not satisfied >> i & 1:
                yield self._unmet(demand, aggregates)
        for name, metadata in aggregates:
            if flag(metadata.get(FORCE_KEY, "")):
                terms = ForcedTerms.parse(content(metadata), self._ignored_keys)
                for key, expression in self._missing(terms):
                    yield _required(name, key, expression)

    def _unmet(self, demand: Demand, aggregates: list[_Aggregate]) -> Verdict:
        if demand.expression.faults:
            return Verdict.rejected(
                f"key {demand.key!r}: flavor's value is malformed: {demand.expression.faults[0]}",
                key=demand.key,
            )
        wanted = f"key {demand.key!r}: flavor wants {str(demand.expression)!r}"
        wanted += "".join(f" (note that {note})" for note in demand.expression.notes)
        offers = list(self._offers(demand.key, aggregates))
        if not offers:
            return Verdict.rejected(
                f"{wanted}, no aggregate of the host has the key", key=demand.key
            )
        decisive = _decisive(demand.expression, offers)
        reason = f"{wanted}, " + _listed(
            [_offered(name, offer, demand.expression) for name, offer in decisive]
        )
        one = len({name for name, _ in decisive}) == 1
        if one or any(_voids(offer) for _, offer in decisive):
            return Verdict.rejected(reason, key=demand.key)
        undecided = any(demand.expression.undecided(offer) for _, offer in decisive)
        return Verdict.rejected(
            reason,
            f"{wanted}, other values are offered{_UNDECIDED if undecided else ''}",
            key=demand.key,
        )

    def _offers(self, key: str, aggregates: list[_Aggregate]) -> Iterator[tuple[str, Expression]]:
        for name, metadata in aggregates:
            if flag(metadata.get(FORCE_KEY, "")):
                terms = ForcedTerms.parse(content(metadata), self._ignored_keys)
                for expression in terms.offers.get(key, ()):
                    yield name, expression
            elif key in metadata:
                yield name, Expression.literals(metadata[key])


class _LiteralBits(dict[str, int]):
    """The bits of one demand for each value of an unforced aggregate, computed on first access.

    When it is full, it is emptied.
    """

    _MOST = 4096

    def __init__(self, demand: Demand, met: int, barred: int) -> None:
        super().__init__()
        self._demand = demand
        self._met = met
        self._barred = barred

    def __missing__(self, text: Any) -> int:
        # An unforced aggregate never offers absence, so it always counts as having the key.
        bits = self._barred
        if any(map(self._demand.expression.admits, map(str.strip, str(text).split(",")))):
            bits |= self._met
        if len(self) >= self._MOST:
            self.clear()
        if type(text) is str:  # 1, 1.0 and True are equal as keys, but differ as text
            self[text] = bits
        return bits


def _decisive(
    wanted: Expression, offers: list[tuple[str, Expression]]
) -> list[tuple[str, Expression]]:
    """Return the offers that cause the rejection, each with the name of its aggregate."""
    void = [each for each in offers if _voids(each[1])] if wanted.alternatives else []
    if not wanted.admits_absence:
        return void or offers
    return [each for each in offers if each in void or not each[1].admits_absence]


def _required(name: str, key: str, expression: Expression) -> Verdict:
    if expression.faults:
        return Verdict.rejected(
            f"key {key!r}: value of forced aggregate {name!r} is malformed: {expression.faults[0]}",
            key=key,
        )
    wants = f"forced aggregate {name!r} wants {str(expression)!r}"
    wants += "".join(f" (note that {note})" for note in expression.notes)
    return Verdict.rejected(f"key {key!r}: {wants}, flavor does not have the key", key=key)


def _label(aggregate: object) -> str:
    name = read(aggregate, "name")
    return "An aggregate" if name is None else f"Aggregate {str(name)!r}"


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
