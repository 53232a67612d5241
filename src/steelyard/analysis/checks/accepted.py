"""Accepted findings, read from a file."""

import dataclasses
import enum
from collections.abc import Collection
from typing import Any, TypeVar

from steelyard import errors
from steelyard.findings import Check, Finding, Severity, Subject, SubjectKind
from steelyard.text import spelling

_Member = TypeVar("_Member", bound=enum.StrEnum)

_OF_FILE = ("summary", "findings")
_OF_FINDING = (*(field.name for field in dataclasses.fields(Finding)), "because")
_OF_SUBJECT = tuple(field.name for field in dataclasses.fields(Subject))


@dataclasses.dataclass(frozen=True)
class Accepted:
    """Accepted findings, identified by check and subject. ``file`` is their source."""

    file: str
    identities: frozenset[tuple[Check, Subject]]

    @classmethod
    def parse(cls, file: str, content: Any) -> "Accepted":
        """Return the findings in the parsed content of a file.

        The content has the form that ``steelyard check -f json`` prints. Raises BadRequest for any
        other.
        """
        if not isinstance(content, dict) or not isinstance(content.get("findings"), list):
            raise errors.BadRequest(
                f"{file}: expected a list 'findings', as 'steelyard check -f json' writes it"
            )
        _require_known(file, content, _OF_FILE)
        return cls(file, frozenset(_identity(file, entry) for entry in content["findings"]))

    def without(self, findings: Collection[Finding]) -> list[Finding]:
        """Return the findings that are not accepted, and a note for each stale acceptance."""
        found = {(finding.check, finding.subject) for finding in findings}
        stale = sorted(self.identities - found, key=lambda each: (each[0], str(each[1])))
        return [
            *(each for each in findings if (each.check, each.subject) not in self.identities),
            *(self._stale(*identity) for identity in stale),
        ]

    def _stale(self, check: Check, subject: Subject) -> Finding:
        return Finding(
            Severity.NOTE,
            Check.STALE_ACCEPTANCE,
            subject,
            f"{self.file} accepts {str(check)!r} here, but the check no longer finds it",
            f"remove it from {self.file}",
            file=self.file,
            details={"check": str(check)},
        )


def _identity(file: str, entry: Any) -> tuple[Check, Subject]:
    if not isinstance(entry, dict):
        raise errors.BadRequest(f"{file}: invalid finding {entry!r:.80}: expected a mapping")
    _require_known(file, entry, _OF_FINDING)
    check = _member(file, entry, "check", Check)
    subject = entry.get("subject")
    if not isinstance(subject, dict):
        raise errors.BadRequest(
            f"{file}: invalid 'subject' {subject!r:.80} in {entry!r:.80}: expected a mapping with "
            f"'kind' and 'name'"
        )
    _require_known(file, subject, _OF_SUBJECT)
    kind = _member(file, subject, "kind", SubjectKind)
    key = None if subject.get("key") is None else _text(file, subject, "key")
    return check, Subject(kind, _text(file, subject, "name"), key)


def _require_known(file: str, entry: dict[Any, Any], known: Collection[str]) -> None:
    for key in entry:
        if key not in known:
            raise errors.BadRequest(
                f"{file}: unknown key {key!r}{spelling.near(str(key), known)}", key
            )


def _member(file: str, entry: dict[Any, Any], key: str, members: type[_Member]) -> _Member:
    text, known = _text(file, entry, key), list(map(str, members))
    if text not in known:
        raise errors.BadRequest(f"{file}: no {key} {text!r}{spelling.near(text, known)}", text)
    return members(text)


def _text(file: str, entry: dict[Any, Any], key: str) -> str:
    value = entry.get(key)
    if not isinstance(value, str):
        raise errors.BadRequest(
            f"{file}: invalid {key!r} {value!r:.80} in {entry!r:.80}: expected text"
        )
    return value
