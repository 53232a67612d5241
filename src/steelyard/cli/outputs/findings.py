"""The output of the commands that list findings."""

import abc
import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.cli.commands import Listed, Listing
from steelyard.cli.outputs import columns, formats
from steelyard.findings import Finding, Severity
from steelyard.text.wording import counted

_FOUND = 1
_COLUMNS = ("Severity", "Check", "Subject", "Message", "Remedy", "File", "Line")
"""The columns as text. The keys of a finding in JSON correspond to them."""


@dataclasses.dataclass(frozen=True)
class Report:
    """The findings of a command, and the number of examined things of each kind."""

    findings: Sequence[Finding]
    examined: Mapping[str, int]

    @property
    def status(self) -> int:
        """The exit status, which notes do not affect."""
        return _FOUND if len(self.findings) > self._of(Severity.NOTE) else 0

    @property
    def summary(self) -> dict[str, int]:
        return {
            "findings": len(self.findings),
            **{f"{severity}s": self._of(severity) for severity in Severity},
            **{f"{kind}s": count for kind, count in self.examined.items()},
        }

    def __str__(self) -> str:
        found = counted(len(self.findings), "finding") if self.findings else "nothing found"
        *others, last = (counted(count, kind) for kind, count in self.examined.items())
        return f"{found} in {' and '.join(filter(None, (', '.join(others), last)))}"

    def _of(self, severity: Severity) -> int:
        return sum(finding.severity is severity for finding in self.findings)


class FindingsListing(Listing):
    """A command that lists findings, by default as blocks of text."""

    @abc.abstractmethod
    def examine(self, parsed_args: argparse.Namespace) -> Report:
        """Examine the input and return the report."""

    @property
    def formatter_default(self) -> str:
        return formats.TEXT

    def _load_formatter_plugins(self) -> Any:
        return formats.with_text(super()._load_formatter_plugins(), formats.FindingBlocks)

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return (*_COLUMNS, "Details") if parsed_args.formatter in formats.DOCUMENTS else _COLUMNS

    def result(self, parsed_args: argparse.Namespace) -> Listed:
        report = self.examine(parsed_args)
        keys = list(map(columns.key, self.column_names(parsed_args)))
        structured = parsed_args.formatter in formats.DOCUMENTS
        cells = [
            each.as_dict() if structured else {**each.as_dict(), "subject": str(each.subject)}
            for each in report.findings
        ]
        return Listed(
            kind="findings",
            rows=[tuple(each[key] for key in keys) for each in cells],
            summary=report.summary,
            told=[str(report)],
            status=report.status,
        )
