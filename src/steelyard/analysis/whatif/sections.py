"""The differences as titled lists, for the text of the command and for the page."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from steelyard.analysis.whatif.consequences import Consequences
from steelyard.cloud import Server
from steelyard.findings import Check, Finding


class ListedDifference(NamedTuple):
    """An entry of a list: the subject, and its difference."""

    name: str
    text: str


class Section(NamedTuple):
    """A list of differences of one kind."""

    key: str
    title: str
    entries: Sequence[ListedDifference]


def sections(found: Consequences) -> list[Section]:
    """Return the lists of servers, violations and findings, without empty ones."""
    violations = found.findings.of(violations=True)
    others = found.findings.of(violations=False)
    # Misplaced servers have a list of their own.
    new = [each for each in others.new if each.check is not Check.MISPLACED_SERVER]
    listed = [
        Section(
            "displaced",
            "servers that must move",
            [
                ListedDifference(_named(each.server), f"{each.server.host} -> {each.to}")
                for each in found.displaced
            ],
        ),
        Section(
            "stranded",
            "servers that must move and that no host fits",
            [ListedDifference(_placed(each.server), each.cause) for each in found.stranded],
        ),
        Section(
            "misplaced",
            "servers that their own host would reject",
            [ListedDifference(_placed(each.server), each.reason) for each in found.misplaced],
        ),
        Section("violated", "new violations of server groups", _entries(violations.new)),
        Section("complied", "resolved violations of server groups", _entries(violations.resolved)),
        Section("found", "new findings", _entries(new)),
        Section("resolved", "resolved findings", _entries(others.resolved)),
    ]
    return [section for section in listed if section.entries]


def _named(server: Server) -> str:
    return f"{server.name} ({server.flavor.name})"


def _placed(server: Server) -> str:
    return f"{_named(server)} on {server.host}"


def _entries(findings: Iterable[Finding]) -> list[ListedDifference]:
    return [
        ListedDifference(f"{each.severity}: {each.check}: {each.subject}", each.message)
        for each in findings
    ]
