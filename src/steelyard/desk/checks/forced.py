"""Forced aggregates that forbid a key for which another aggregate of a host has a value."""

import collections
from collections.abc import Iterator
from typing import NamedTuple

from steelyard.desk.checks.finding import Check, Finding
from steelyard.desk.checks.subject import Offered, Subject
from steelyard.desk.wording import listed
from steelyard.severity import Severity


class _Offers(NamedTuple):
    """The offers for one key by the aggregates that some hosts share."""

    key: str
    offers: tuple[Offered, ...]


def contradictions(subject: Subject) -> Iterator[Finding]:
    """Yield each key that one aggregate of a host forbids and another one offers."""
    for (key, offers), hosts in _shared(subject).items():
        forbidding = [each for each in offers if each.expression.forbids]
        offering = [each for each in offers if each.expression.alternatives]
        if not any(one.aggregate != two.aggregate for one in forbidding for two in offering):
            continue
        unusable = any(
            each.forced and not each.expression.admits_absence and not subject.is_ignored(key)
            for each in offering
        )
        yield Finding(
            Severity.ERROR if unusable else Severity.WARNING,
            Check.CONTRADICTORY_AGGREGATES,
            f"aggregates {', '.join(sorted({repr(each.aggregate) for each in offers}))}, "
            f"key {key!r}",
            f"{_said(forbidding, 'forbids')}, {_said(offering, 'offers')}, on hosts "
            f"{listed(hosts)}: "
            + ("no flavor fits there" if unusable else "no flavor that wants a value fits there"),
            "remove the key from one of them, or put the hosts into one of them only",
        )


def _shared(subject: Subject) -> dict[_Offers, list[str]]:
    """Return the hosts whose aggregates have the same offers for a key."""
    by_aggregate: dict[str, list[Offered]] = collections.defaultdict(list)
    for offer in subject.offered:
        by_aggregate[offer.aggregate].append(offer)
    memberships: dict[str, list[str]] = collections.defaultdict(list)
    for name, aggregate in subject.cloud.aggregates.items():
        for host in dict.fromkeys(aggregate.hosts):
            memberships[host].append(name)
    shared: dict[_Offers, list[str]] = collections.defaultdict(list)
    for host, names in memberships.items():
        offers: dict[str, list[Offered]] = collections.defaultdict(list)
        for name in names:
            for offer in by_aggregate[name]:
                offers[offer.key].append(offer)
        for key, those in offers.items():
            shared[_Offers(key, tuple(those))].append(host)
    return shared


def _said(offers: list[Offered], verb: str) -> str:
    return " and ".join(f"{each.aggregate!r} {verb} {str(each.expression)!r}" for each in offers)
