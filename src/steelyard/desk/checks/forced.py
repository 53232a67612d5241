"""Forced aggregates that have hosts in common, and want what does not go together."""

import collections
import itertools
from collections.abc import Iterator

from steelyard.aggregates import ForcedTerms
from steelyard.desk.checks.finding import Finding, listed
from steelyard.desk.checks.subject import Subject
from steelyard.expressions import Expression
from steelyard.severity import Severity


def contradictions(subject: Subject) -> Iterator[Finding]:
    """Each pair of forced aggregates on a host, and each key about which they contradict."""
    for (one, other), hosts in _pairs(subject).items():
        for key, first, second in _apart(subject.forced[one], subject.forced[other]):
            never = first.admits_absence or second.admits_absence
            fits = "no flavor fits" if never else "only a flavor that admits both fits"
            yield Finding(
                Severity.ERROR if never else Severity.WARNING,
                "contradictory-aggregates",
                f"aggregates {one!r} and {other!r}, key {key!r}",
                f"both are forced and have the hosts {listed(hosts)}; one wants {str(first)!r}, "
                f"the other {str(second)!r}: {fits} there",
                "let each host be in one of them, or let both want the same",
            )


def _pairs(subject: Subject) -> dict[tuple[str, str], list[str]]:
    """The pairs of forced aggregates that have hosts in common, with these hosts."""
    memberships: dict[str, list[str]] = collections.defaultdict(list)
    for name in subject.forced:
        for host in dict.fromkeys(subject.cloud.aggregates[name].hosts):
            memberships[host].append(name)
    pairs: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
    for host, names in memberships.items():
        for pair in itertools.combinations(names, 2):
            pairs[pair].append(host)
    return pairs


def _apart(one: ForcedTerms, other: ForcedTerms) -> Iterator[tuple[str, Expression, Expression]]:
    """The keys that both demand, and what they demand, where nothing satisfies both."""
    for key in one.conditions.keys() & other.conditions.keys():
        for first, second in itertools.product(one.conditions[key], other.conditions[key]):
            malformed = first.faults or second.faults  # which another check says
            if not (malformed or first.undecided(second) or first.compatible(second)):
                yield key, first, second
