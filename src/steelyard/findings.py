"""Findings of checks and doctors."""

import dataclasses
import enum
from collections.abc import Mapping
from typing import Any


class Severity(enum.StrEnum):
    """The severities of findings, the most severe first."""

    ERROR = "error"
    """Something does not work as it stands."""
    WARNING = "warning"
    """Something works, but probably not as intended."""
    NOTE = "note"
    """Something to know that needs no correction."""


class Check(enum.StrEnum):
    """The checks that yield findings: of clouds, of Nova configurations, and of tag services."""

    MALFORMED_VALUE = "malformed-value"
    DOUBTFUL_VALUE = "doubtful-value"
    UNRECOGNISED_FLAG = "unrecognised-flag"
    MISPLACED_FLAG = "misplaced-flag"
    EXPRESSION_NOT_FORCED = "expression-not-forced"
    SCOPE_NOT_FORCED = "scope-not-forced"
    NEAR_MISS_KEY = "near-miss-key"
    NEAR_MISS_VALUE = "near-miss-value"
    NEAR_MISS_TRAIT = "near-miss-trait"
    NOT_OFFERED = "not-offered"
    FITS_NO_HOST = "fits-no-host"
    NO_ROOM = "no-room"
    UNREACHABLE_HOST = "unreachable-host"
    EMPTY_AGGREGATE = "empty-aggregate"
    CONTRADICTORY_AGGREGATES = "contradictory-aggregates"
    CONTRADICTORY_TRAITS = "contradictory-traits"
    MALFORMED_REQUEST = "malformed-request"
    KEY_NOVA_READS = "key-nova-reads"
    REFUSED_BY_NOVA = "refused-by-nova"
    GROUP_VIOLATION = "group-violation"
    MISPLACED_SERVER = "misplaced-server"
    OVERCOMMITTED_HOST = "overcommitted-host"
    STALE_ACCEPTANCE = "stale-acceptance"

    INVALID_OPTION = "invalid-option"
    UNKNOWN_OPTION = "unknown-option"
    UNKNOWN_PLUGIN = "unknown-plugin"
    DUPLICATE_PLUGIN = "duplicate-plugin"
    NOVA_FILTERS_MISSING = "nova-filters-missing"
    NOVA_WEIGHERS_MISSING = "nova-weighers-missing"
    FILTER_NOT_AVAILABLE = "filter-not-available"
    FILTER_NOT_ENABLED = "filter-not-enabled"
    DEFAULT_FILTERS_LEFT_OUT = "default-filters-left-out"
    CONFLICTING_FILTERS = "conflicting-filters"
    UNSCOPED_KEYS = "unscoped-keys"
    WEIGHERS_NOT_LOADED = "weighers-not-loaded"
    SOFT_POLICY_IGNORED = "soft-policy-ignored"
    SOFT_POLICY_REFUSED = "soft-policy-refused"

    INSECURE_FILE = "insecure-file"
    INEFFECTIVE_OPTION = "ineffective-option"
    NO_TRUSTED_PROXIES = "no-trusted-proxies"
    DATABASE_FAILED = "database-failed"
    WRONG_SCHEMA = "wrong-schema"
    BACKEND_FAILED = "backend-failed"
    TRIAL_BACKEND = "trial-backend"
    WRONG_BACKEND = "wrong-backend"
    OLD_OPERATION = "old-operation"
    NOT_RECONCILED = "not-reconciled"
    BROKER_FAILED = "broker-failed"
    NO_DISPATCHER = "no-dispatcher"
    DEAD_LETTERS = "dead-letters"


class SubjectKind(enum.StrEnum):
    """The kinds of things that findings are about."""

    FLAVOR = "flavor"
    AGGREGATE = "aggregate"
    HOST = "host"
    SERVER = "server"
    GROUP = "group"
    OPTION = "option"
    SERVICE = "service"
    FILE = "file"


@dataclasses.dataclass(frozen=True, slots=True)
class Subject:
    """One thing that a finding is about, or one key of it.

    The key is an extra spec of a flavor, or a key of an aggregate's metadata.
    """

    kind: SubjectKind
    name: str
    key: str | None = None

    def __str__(self) -> str:
        if self.key is None:
            return f"{self.kind} {self.name!r}"
        return f"{self.kind} {self.name!r}, {_KEYS.get(self.kind, 'key')} {self.key!r}"


_KEYS = {SubjectKind.FLAVOR: "extra spec"}


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """A problem, with its subject and its remedy.

    ``check`` and ``subject`` identify a finding across runs. ``file`` and ``line`` are the place to
    change, None if it is unknown. ``details`` has the facts of the message, for programs.
    """

    severity: Severity
    check: Check
    subject: Subject
    message: str
    remedy: str
    file: str | None = None
    line: int | None = None
    details: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)

    def as_dict(self) -> dict[str, Any]:
        """Return the finding as a dictionary, for output in JSON and YAML."""
        subject = {"kind": str(self.subject.kind), "name": self.subject.name}
        return {
            "severity": str(self.severity),
            "check": str(self.check),
            "subject": {**subject, "key": self.subject.key},
            "message": self.message,
            "remedy": self.remedy,
            "file": self.file,
            "line": self.line,
            "details": dict(self.details),
        }
