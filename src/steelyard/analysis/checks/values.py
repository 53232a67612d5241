"""Checks for values that are malformed, ambiguous, or taken literally by mistake."""

from collections.abc import Iterator

from steelyard.aggregates import FORCE_KEY, SCOPE, flag
from steelyard.analysis.checks.checked_cloud import CheckedCloud, is_plain, literals
from steelyard.expressions import Expression
from steelyard.findings import Check, Finding, Severity, Subject, SubjectKind


def of_flavors(checked: CheckedCloud) -> Iterator[Finding]:
    """Yield extra specs whose value is malformed or ambiguous."""
    for asked in checked.asked_of_aggregates:
        yield from _problems(asked.subject, asked.demand.expression, "the flavor fits no host")


def of_forced_aggregates(checked: CheckedCloud) -> Iterator[Finding]:
    """Yield metadata of forced aggregates whose value is malformed or ambiguous."""
    for offer in checked.offered:
        if offer.forced:
            demanded = offer.key in checked.forced[offer.aggregate].required
            until = f"no flavor {'' if demanded else 'with the key '}fits its hosts"
            yield from _problems(offer.subject, offer.expression, until)


def _problems(subject: Subject, expression: Expression, until: str) -> Iterator[Finding]:
    details = {"value": expression.text}
    for fault in expression.faults:
        remedy = f"correct the value; until then {until}"
        yield Finding(
            Severity.ERROR, Check.MALFORMED_VALUE, subject, str(fault), remedy, details=details
        )
    for note in expression.notes:
        remedy = "write the value in an unambiguous form"
        yield Finding(
            Severity.WARNING, Check.DOUBTFUL_VALUE, subject, note, remedy, details=details
        )


def flags(checked: CheckedCloud) -> Iterator[Finding]:
    """Yield values of the forcing key that are neither true nor false."""
    for name, aggregate in checked.cloud.aggregates.items():
        text = aggregate.metadata.get(FORCE_KEY)
        if text is not None and flag(text) is None:
            yield Finding(
                Severity.WARNING,
                Check.UNRECOGNISED_FLAG,
                Subject(SubjectKind.AGGREGATE, name, FORCE_KEY),
                f"{text!r} is neither true nor false, so the aggregate is not forced",
                "write 'true' or 'false'",
                details={"value": text},
            )


def empty_aggregates(checked: CheckedCloud) -> Iterator[Finding]:
    """Yield aggregates without hosts."""
    for name, aggregate in checked.cloud.aggregates.items():
        if not aggregate.hosts:
            yield Finding(
                Severity.NOTE,
                Check.EMPTY_AGGREGATE,
                Subject(SubjectKind.AGGREGATE, name),
                "the aggregate has no hosts, so its metadata has no effect",
                "add its hosts, or delete the aggregate",
            )


def misplaced_flags(checked: CheckedCloud) -> Iterator[Finding]:
    """Yield forcing keys in flavors, where steelyard ignores them.

    Nova's own filter compares them like any other key.
    """
    for name, flavor in checked.cloud.flavors.items():
        for key in flavor.extra_specs:
            if key.removeprefix(SCOPE) == FORCE_KEY:
                yield Finding(
                    Severity.WARNING,
                    Check.MISPLACED_FLAG,
                    Subject(SubjectKind.FLAVOR, name, key),
                    "the key belongs to aggregates; steelyard ignores it in flavors",
                    "remove it from the flavor",
                )


def taken_literally(checked: CheckedCloud) -> Iterator[Finding]:
    """Yield expressions and scoped keys in aggregates that are not forced.

    Only forced aggregates interpret them.
    """
    for offer in checked.offered:
        if offer.forced or checked.is_ignored(offer.key):
            continue
        if offer.written.startswith(SCOPE):
            yield Finding(
                Severity.WARNING,
                Check.SCOPE_NOT_FORCED,
                offer.subject,
                f"the aggregate is not forced, so the scope {SCOPE!r} is part of its key, which no "
                f"flavor matches",
                f"rename the key to {offer.written.removeprefix(SCOPE)!r}",
            )
        for text in literals(offer.expression):
            if text and not is_plain(Expression.parse(text)):
                yield Finding(
                    Severity.WARNING,
                    Check.EXPRESSION_NOT_FORCED,
                    offer.subject,
                    f"the aggregate is not forced, so {text!r} is taken literally",
                    f"separate literal values by commas, or set {FORCE_KEY} to 'true'",
                    details={"value": text},
                )
