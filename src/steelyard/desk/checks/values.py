"""Values that are malformed, doubtful, or taken for something else than is meant."""

from collections.abc import Iterator

from steelyard.aggregates import FORCE_KEY, SCOPE, flag
from steelyard.desk.checks.finding import Check, Finding, of_aggregate, of_flavor
from steelyard.desk.checks.subject import Subject, is_plain
from steelyard.expressions import Expression
from steelyard.severity import Severity


def of_flavors(subject: Subject) -> Iterator[Finding]:
    """Extra specs whose value is malformed or doubtful."""
    for asked in subject.asked_of_aggregates:
        where = of_flavor(asked.flavor, asked.written)
        yield from _problems(where, asked.demand.expression, "the flavor fits no host")


def of_forced_aggregates(subject: Subject) -> Iterator[Finding]:
    """Metadata of forced aggregates whose value is malformed or doubtful."""
    for offer in subject.offered:
        if offer.forced:
            demanded = offer.key in subject.forced[offer.aggregate].required
            until = f"no flavor {'' if demanded else 'with the key '}fits its hosts"
            where = of_aggregate(offer.aggregate, offer.written)
            yield from _problems(where, offer.expression, until)


def _problems(where: str, expression: Expression, until: str) -> Iterator[Finding]:
    for fault in expression.faults:
        remedy = f"correct the value; until then {until}"
        yield Finding(Severity.ERROR, Check.MALFORMED_VALUE, where, fault, remedy)
    for note in expression.notes:
        remedy = "write the value so that it can mean one thing only"
        yield Finding(Severity.WARNING, Check.DOUBTFUL_VALUE, where, note, remedy)


def flags(subject: Subject) -> Iterator[Finding]:
    """Flags that say neither yes nor no."""
    for name, aggregate in subject.cloud.aggregates.items():
        text = aggregate.metadata.get(FORCE_KEY)
        if text is not None and flag(text) is None:
            yield Finding(
                Severity.WARNING,
                Check.UNRECOGNISED_FLAG,
                of_aggregate(name, FORCE_KEY),
                f"{text!r} is neither true nor false, so the aggregate is not forced",
                "write 'true' or 'false'",
            )


def misplaced_flags(subject: Subject) -> Iterator[Finding]:
    """Flags in flavors, where they mean nothing to us, and to Nova are keys as any other."""
    for name, flavor in subject.cloud.flavors.items():
        for key in flavor.extra_specs:
            if key.removeprefix(SCOPE) == FORCE_KEY:
                yield Finding(
                    Severity.WARNING,
                    Check.MISPLACED_FLAG,
                    of_flavor(name, key),
                    "the flag belongs to aggregates; in a flavor it is not looked at",
                    "take it out of the flavor",
                )


def taken_literally(subject: Subject) -> Iterator[Finding]:
    """Expressions and scopes in aggregates that are not forced, where they mean nothing."""
    for offer in subject.offered:
        if offer.forced or subject.is_ignored(offer.key):
            continue
        where = of_aggregate(offer.aggregate, offer.written)
        if offer.written.startswith(SCOPE):
            yield Finding(
                Severity.WARNING,
                Check.SCOPE_NOT_FORCED,
                where,
                f"the aggregate is not forced, so its key is taken with the scope {SCOPE!r}, and "
                f"no flavor's key is",
                f"call the key {offer.written.removeprefix(SCOPE)!r}",
            )
        for part in offer.expression.text.split(","):
            if part.strip() and not is_plain(Expression.parse(part)):
                yield Finding(
                    Severity.WARNING,
                    Check.EXPRESSION_NOT_FORCED,
                    where,
                    f"the aggregate is not forced, so {part.strip()!r} is taken literally",
                    f"separate literal values by commas, or set {FORCE_KEY} to 'true'",
                )
