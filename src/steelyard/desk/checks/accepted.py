"""Findings that somebody has looked at and accepted, kept in a file."""

import dataclasses
from collections.abc import Iterable
from typing import Any

from steelyard import errors
from steelyard.desk.checks.finding import Check, Finding
from steelyard.severity import Severity

REQUIRED = ("Check", "Where")
_ALLOWED = (*REQUIRED, "Severity", "Why", "Remedy", "Because")


@dataclasses.dataclass(frozen=True)
class Accepted:
    """The accepted findings, each by its check and its place; ``name`` is that of the file."""

    name: str
    places: frozenset[tuple[str, str]]

    @classmethod
    def parse(cls, name: str, content: Any) -> "Accepted":
        """What a file says that has findings as the command lists them, in JSON or YAML."""
        if not isinstance(content, list):
            raise errors.BadRequest(
                f"{name}: expected a list of findings, as 'steelyard check -f json' writes it"
            )
        return cls(name, frozenset(_place(name, entry) for entry in content))

    def without(self, findings: Iterable[Finding]) -> list[Finding]:
        """The findings that are not accepted, and a note on each acceptance without a finding."""
        found = list(findings)
        there = {(finding.check, finding.where) for finding in found}
        left = [finding for finding in found if (finding.check, finding.where) not in self.places]
        return left + [self._stale(*place) for place in sorted(self.places - there)]

    def _stale(self, check: str, where: str) -> Finding:
        return Finding(
            Severity.NOTE,
            Check.ACCEPTED_IN_VAIN,
            where,
            f"{self.name} accepts {check!r} here, which is not found any more",
            f"remove it from {self.name}",
        )


def _place(name: str, entry: Any) -> tuple[str, str]:
    if not isinstance(entry, dict):
        raise errors.BadRequest(f"{name}: {entry!r:.80} is no finding: it has no {REQUIRED[0]!r}")
    for key in entry:
        if key not in _ALLOWED:
            raise errors.BadRequest(f"{name}: unknown key {key!r}{errors.near(str(key), _ALLOWED)}")
    check, where = (_text(name, entry, key) for key in REQUIRED)
    known = list(map(str, Check))
    if check not in known:
        raise errors.BadRequest(f"{name}: there is no check {check!r}{errors.near(check, known)}")
    return check, where


def _text(name: str, entry: dict[str, Any], key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str):
        raise errors.BadRequest(
            f"{name}: {entry!r:.80} has {value!r} for {key!r}; required are the texts "
            f"{' and '.join(map(repr, REQUIRED))}"
        )
    return value
