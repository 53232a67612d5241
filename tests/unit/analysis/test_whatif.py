"""The consequences of a change, and what is worse."""

import dataclasses
from typing import Any

import pytest

from steelyard.analysis.whatif.consequences import (
    Consequences,
    Displaced,
    NewlyMisplaced,
    Stranded,
)
from steelyard.analysis.whatif.findings import FindingChanges
from steelyard.analysis.whatif.flavors import FlavorChange
from steelyard.cloud import Cloud, Flavor, Server
from steelyard.findings import Check, Finding, Severity, Subject, SubjectKind

SERVER = Server("u", "s", Flavor("f", 1, 1, 1), "h")
NOTHING = Consequences(Cloud({}), Cloud({}), (), (), (), (), FindingChanges((), ()))


def finding(check: Check, severity: Severity) -> Finding:
    return Finding(severity, check, Subject(SubjectKind.GROUP, "g"), "message", "remedy")


@pytest.mark.parametrize(
    ("numbers", "is_worse", "is_worse_if_strict"),
    [
        ((2, 1, 5, 4), False, True),
        ((2, 2, 5, 4), False, True),
        ((1, 2, 5, 4), False, True),
        ((1, 2, 4, 5), False, False),
        ((1, 0, 4, 0), True, True),
        ((0, 0, 0, 0), False, False),
        ((None, 0, None, 0), False, False),
        ((1, None, 1, None), False, True),
    ],
)
def test_flavor_is_worse(
    numbers: tuple[int, int, int, int], is_worse: bool, is_worse_if_strict: bool
) -> None:
    found = dataclasses.replace(NOTHING, flavors=(FlavorChange("f", *numbers),))
    assert found.is_worse() == is_worse
    assert found.is_worse(strict=True) == is_worse_if_strict


@pytest.mark.parametrize(
    ("changes", "is_worse"),
    [
        ({}, False),
        ({"displaced": (Displaced(SERVER, "other"),)}, False),
        ({"stranded": (Stranded(SERVER, "cause"),)}, True),
        ({"misplaced": (NewlyMisplaced(SERVER, "reason"),)}, True),
    ],
)
def test_server_is_worse(changes: dict[str, Any], is_worse: bool) -> None:
    assert dataclasses.replace(NOTHING, **changes).is_worse() == is_worse


@pytest.mark.parametrize(
    ("check", "severity", "is_worse"),
    [
        (Check.GROUP_VIOLATION, Severity.WARNING, True),
        (Check.FITS_NO_HOST, Severity.ERROR, True),
        (Check.NO_ROOM, Severity.WARNING, False),
    ],
)
def test_only_new_findings_are_worse(check: Check, severity: Severity, is_worse: bool) -> None:
    each = (finding(check, severity),)
    new = dataclasses.replace(NOTHING, findings=FindingChanges(each, ()))
    resolved = dataclasses.replace(NOTHING, findings=FindingChanges((), each))
    assert (new.is_worse(), resolved.is_worse()) == (is_worse, False)


def test_findings_are_divided_into_violations_and_others() -> None:
    violation = finding(Check.GROUP_VIOLATION, Severity.ERROR)
    other = finding(Check.NO_ROOM, Severity.WARNING)
    found = FindingChanges((violation, other), (other,))
    assert found.of(violations=True) == FindingChanges((violation,), ())
    assert found.of(violations=False) == FindingChanges((other,), (other,))
