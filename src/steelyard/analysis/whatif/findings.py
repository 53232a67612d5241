"""The findings that changes add, worsen or resolve."""

import dataclasses
from collections.abc import Hashable, Iterable
from typing import Any

from steelyard.analysis.checks import fits
from steelyard.findings import Check, Finding


@dataclasses.dataclass(frozen=True, slots=True)
class FindingChanges:
    """The findings that a change adds, and those that it resolves."""

    new: tuple[Finding, ...]
    resolved: tuple[Finding, ...]

    def of(self, *, violations: bool) -> "FindingChanges":
        """Return only the violations of group policies, or only the other findings."""
        return FindingChanges(
            *(
                tuple(each for each in found if _is_violation(each) == violations)
                for found in (self.new, self.resolved)
            )
        )


def difference(before: Iterable[Finding], after: Iterable[Finding]) -> FindingChanges:
    """Return the findings that are new or worse, and those that are resolved."""
    sides = (list(before), list(after))
    earlier, later = (
        {key: value for each in found for key, value in _parts(each).items()} for found in sides
    )
    identities = {(each.check, each.subject) for each in sides[1]}
    new, resolved = [], []
    for each in sides[1]:
        parts = _parts(each)
        worse = [key for key in parts if key not in earlier or parts[key] > earlier[key]]
        if worse:
            new.append(_of_hosts(each, worse))
    for each in sides[0]:
        gone = [key for key in _parts(each) if key not in later]
        if each.check is Check.UNREACHABLE_HOST and gone:
            resolved.append(_of_hosts(each, gone))
        elif each.check is not Check.UNREACHABLE_HOST and (
            (each.check, each.subject) not in identities
        ):
            resolved.append(each)
    return FindingChanges(tuple(new), tuple(resolved))


def _parts(finding: Finding) -> dict[Hashable, float]:
    """Return the parts of a finding that may be there without the others.

    The number of a part says how bad it is.
    """
    details, identity = finding.details, (finding.check, finding.subject)
    match finding.check:
        case Check.UNREACHABLE_HOST:
            return dict.fromkeys(((finding.check, host) for host in details["hosts"]), 0.0)
        case Check.GROUP_VIOLATION:
            return dict.fromkeys(((*identity, each["uuid"]) for each in details["servers"]), 0.0)
        case Check.OVERCOMMITTED_HOST:
            return {
                (*identity, each["resource_class"]): each["allocated"] - each["limit"]
                for each in details["resources"]
            }
    return {identity: 0.0}


def _of_hosts(finding: Finding, parts: Iterable[Any]) -> Finding:
    """Return the finding about these parts only, if it is about unreachable hosts."""
    if finding.check is not Check.UNREACHABLE_HOST:
        return finding
    hosts = [host for _, host in parts]
    return fits.unreachable(hosts, finding.details["nearest_flavor"], finding.details["reasons"])


def _is_violation(finding: Finding) -> bool:
    return finding.check is Check.GROUP_VIOLATION
