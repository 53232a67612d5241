"""The form of the changelog, that of Keep a Changelog."""

import re

from steelyard import __version__
from support.repository import DOCS

TEXT = (DOCS / "changelog.rst").read_text()
CHANGES = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


def headings(underline: str) -> list[str]:
    return re.findall(rf"^(.+)\n{re.escape(underline)}{{3,}}$", TEXT, re.MULTILINE)


def test_changelog_has_a_section_for_unreleased_changes_or_this_version() -> None:
    newest = headings("=")[1]
    assert newest == "Unreleased" or newest.split()[0] == __version__


def test_changelog_dates_every_release() -> None:
    releases = headings("=")[1:]
    for release in releases:
        assert release == "Unreleased" or re.fullmatch(r"\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d", release)


def test_changelog_groups_changes_by_kind() -> None:
    kinds = headings("-")
    assert kinds
    assert set(kinds) <= CHANGES
