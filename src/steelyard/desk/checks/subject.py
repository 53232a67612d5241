"""What is checked: a cloud's flavors and aggregates, read once for all checks."""

import dataclasses
import functools
from collections.abc import Iterator, Mapping

from steelyard.aggregates import FORCE_KEY, SCOPE, Demand, ForcedTerms, content, flag, is_ignored
from steelyard.expressions import Expression
from steelyard.scheduler import Aggregate, Cloud
from steelyard.string_sets import Literal


@dataclasses.dataclass(frozen=True, slots=True)
class Asked:
    """One extra spec of a flavor, under the key as it is written."""

    flavor: str
    written: str
    demand: Demand


@dataclasses.dataclass(frozen=True, slots=True)
class Offered:
    """What one aggregate says under one key of its metadata, as it is written."""

    aggregate: str
    written: str
    key: str
    expression: Expression
    forced: bool


@dataclasses.dataclass(frozen=True)
class Subject:
    """A cloud, and the patterns of keys that forced aggregates do not demand."""

    cloud: Cloud
    ignored_keys: tuple[str, ...]

    @functools.cached_property
    def asked(self) -> list[Asked]:
        """What the flavors ask of aggregates, and of other parts of Nova."""
        return [
            Asked(flavor.name, key, Demand.parse(key, text))
            for flavor in self.cloud.flavors.values()
            for key, text in flavor.extra_specs.items()
            if key.removeprefix(SCOPE) != FORCE_KEY
        ]

    @functools.cached_property
    def asked_of_aggregates(self) -> list[Asked]:
        """What the flavors ask of aggregates: what is in a namespace only where one knows it."""
        known = {each.key for each in self.offered}
        return [
            asked for asked in self.asked if not asked.demand.optional or asked.demand.key in known
        ]

    @functools.cached_property
    def forced(self) -> dict[str, ForcedTerms]:
        """What each forced aggregate says, by its name."""
        return {
            name: ForcedTerms.parse(content(aggregate.metadata), self.ignored_keys)
            for name, aggregate in self.cloud.aggregates.items()
            if flag(aggregate.metadata.get(FORCE_KEY, ""))
        }

    @functools.cached_property
    def offered(self) -> list[Offered]:
        """What the aggregates offer."""
        return [
            offer for aggregate in self.cloud.aggregates.values() for offer in self._of(aggregate)
        ]

    @functools.cached_property
    def offers(self) -> Mapping[str, list[Expression]]:
        """What the aggregates offer, by key."""
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
    """Whether the text means just itself: no sentinel, no operator, no junction."""
    return expression.alternatives == {Literal(expression.text.strip())} and (
        not expression.admits_absence
    )


def literals(expression: Expression) -> list[str]:
    """The words among the alternatives, in their order."""
    return sorted(part.text for part in expression.alternatives if isinstance(part, Literal))
