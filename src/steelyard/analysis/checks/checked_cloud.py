"""The flavors and aggregates of a cloud, parsed once for all checks."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping

from steelyard._string_sets import Literal
from steelyard.aggregates import FORCE_KEY, SCOPE, Demand, ForcedTerms, content, flag, is_ignored
from steelyard.cloud import Aggregate, Cloud
from steelyard.expressions import Expression
from steelyard.findings import Subject, SubjectKind


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """One extra spec of a flavor. ``written`` is the key as it is in the flavor."""

    flavor: str
    written: str
    demand: Demand

    @property
    def subject(self) -> Subject:
        return Subject(SubjectKind.FLAVOR, self.flavor, self.written)


@dataclasses.dataclass(frozen=True, slots=True)
class Offered:
    """One key of an aggregate's metadata with its value.

    ``written`` is the key as it is in the metadata, ``key`` the key that flavors are compared with.
    """

    aggregate: str
    written: str
    key: str
    expression: Expression
    forced: bool

    @property
    def subject(self) -> Subject:
        return Subject(SubjectKind.AGGREGATE, self.aggregate, self.written)


@dataclasses.dataclass(frozen=True)
class CheckedCloud:
    """A cloud, and the patterns of keys that forced aggregates do not require."""

    cloud: Cloud
    ignored_keys: tuple[str, ...]

    @functools.cached_property
    def asked(self) -> list[Asked]:
        """All extra specs of all flavors, whether aggregates or other parts of Nova read them."""
        return [
            Asked(flavor.name, key, Demand.parse(key, text))
            for flavor in self.cloud.flavors.values()
            for key, text in flavor.extra_specs.items()
            if key.removeprefix(SCOPE) != FORCE_KEY
        ]

    @functools.cached_property
    def asked_of_aggregates(self) -> list[Asked]:
        """The extra specs that aggregates are compared with.

        A namespaced key is one of them only if an aggregate has it.
        """
        known = {each.key for each in self.offered}
        return [
            asked for asked in self.asked if not asked.demand.optional or asked.demand.key in known
        ]

    @functools.cached_property
    def forced(self) -> dict[str, ForcedTerms]:
        """The terms of each forced aggregate, by its name."""
        return {
            name: ForcedTerms.parse(content(aggregate.metadata), self.ignored_keys)
            for name, aggregate in self.cloud.aggregates.items()
            if flag(aggregate.metadata.get(FORCE_KEY, ""))
        }

    @functools.cached_property
    def offered(self) -> list[Offered]:
        """The metadata of all aggregates, without the key that forces them."""
        return [
            offer for aggregate in self.cloud.aggregates.values() for offer in self._of(aggregate)
        ]

    @functools.cached_property
    def offers(self) -> Mapping[str, list[Expression]]:
        """The values that aggregates offer, by key."""
        found: dict[str, list[Expression]] = {}
        for offer in self.offered:
            found.setdefault(offer.key, []).append(offer.expression)
        return found

    def is_ignored(self, key: str) -> bool:
        """Return whether forced aggregates do not require the key, given without the scope."""
        return is_ignored(key, self.ignored_keys)

    def _of(self, aggregate: Aggregate) -> Iterator[Offered]:
        forced = aggregate.name in self.forced
        for written, text in aggregate.metadata.items():
            key = written.removeprefix(SCOPE) if forced else written
            if key != FORCE_KEY:
                expression = Expression.parse_list(text) if forced else Expression.literals(text)
                yield Offered(aggregate.name, written, key, expression, forced)


def is_plain(expression: Expression) -> bool:
    """Return whether the text is literal: no sentinel, no operator, no junction."""
    return expression.alternatives == {Literal(expression.text.strip())} and (
        not expression.admits_absence
    )


def literals(expression: Expression) -> list[str]:
    """Return the literal words among the alternatives, sorted."""
    return sorted(part.text for part in expression.alternatives if isinstance(part, Literal))
