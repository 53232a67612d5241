"""Forced aggregates that have hosts in common, and want what does not go together."""

import collections
import itertools
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from steelyard.desk.checks.finding import Check, Finding
from steelyard.desk.checks.subject import Subject, literals
from steelyard.desk.wording import listed
from steelyard.expressions import ABSENT, Expression
from steelyard.severity import Severity
from steelyard.string_sets import Literal


class _Wanted(NamedTuple):
    """What one forced aggregate wants for a key."""

    aggregate: str
    expression: Expression


def contradictions(subject: Subject) -> Iterator[Finding]:
    """Each key about which the forced aggregates of a host contradict each other."""
    for (key, names), hosts in _together(subject).items():
        wanted = [
            _Wanted(name, expression)
            for name in sorted(names)
            for expression in subject.forced[name].conditions[key]
        ]
        if not _contradict([each.expression for each in wanted]):
            continue
        suits = any(_suits(stated, wanted) for stated in _stated(subject, key))
        says = "; ".join(f"{name!r} wants {str(expression)!r}" for name, expression in wanted)
        yield Finding(
            Severity.WARNING if suits else Severity.ERROR,
            Check.CONTRADICTORY_AGGREGATES,
            f"aggregates {', '.join(map(repr, sorted(names)))}, key {key!r}",
            f"all are forced and have the hosts {listed(hosts)}; {says}: only a flavor that "
            f"admits each of them fits there, and {'not all do' if suits else 'none does'}",
            "let each host be in one of them, let them want the same, or let flavors admit each "
            "of them, as in '<or> a <or> b'",
        )


def _together(subject: Subject) -> dict[tuple[str, frozenset[str]], list[str]]:
    """The keys that forced aggregates demand of the same hosts, with these aggregates and hosts."""
    memberships: dict[str, list[str]] = collections.defaultdict(list)
    for name in subject.forced:
        for host in dict.fromkeys(subject.cloud.aggregates[name].hosts):
            memberships[host].append(name)
    found: dict[tuple[str, frozenset[str]], list[str]] = collections.defaultdict(list)
    for host, names in memberships.items():
        demanding: dict[str, list[str]] = collections.defaultdict(list)
        for name in names:
            for key in subject.forced[name].conditions:
                demanding[key].append(name)
        for key, those in demanding.items():
            found[key, frozenset(those)].append(host)
    return found


def _contradict(wanted: Sequence[Expression]) -> bool:
    """Whether no value, and not its absence either, is in all of what is wanted."""
    if any(each.faults for each in wanted):  # which another check says
        return False
    pairs = list(itertools.combinations(wanted, 2))
    if any(one.undecided(other) for one, other in pairs):
        return False
    if any(not one.compatible(other) for one, other in pairs):
        return True
    if not all(_is_listed(each) for each in wanted):
        return False
    values = {word for each in wanted for word in literals(each)}
    return not any(all(each.admits(value) for each in wanted) for value in (None, *values))


def _is_listed(expression: Expression) -> bool:
    return all(isinstance(part, Literal) for part in expression.alternatives)


def _stated(subject: Subject, key: str) -> Iterator[list[Expression]]:
    """What each flavor says of the key; of one that says nothing, its absence."""
    stated: dict[str, list[Expression]] = {name: [] for name in subject.cloud.flavors}
    for asked in subject.asked:
        if asked.demand.key == key:
            stated[asked.flavor].append(asked.demand.expression)
    return (expressions or [ABSENT] for expressions in stated.values())


def _suits(stated: Sequence[Expression], wanted: Sequence[_Wanted]) -> bool:
    return all(each.expression.compatible(said) for each in wanted for said in stated)
