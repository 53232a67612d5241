"""What each part of a request needs of Placement, which numbers its abilities."""

import re
from collections.abc import Iterable

from steelyard import errors

Needs = Iterable[tuple[str, str]]

_MICROVERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")

# What can be asked of GET /resource_providers, and since when.
PROVIDERS = {
    "member_of": "1.3",
    "resources": "1.4",
    "in_tree": "1.14",
    "required": "1.18",
}
# The same of GET /allocation_candidates, which itself came with 1.10.
CANDIDATES_THEMSELVES = "1.10"
CANDIDATES = {
    "limit": "1.16",
    "required": "1.17",
    "member_of": "1.21",
    "numbered groups": "1.25",
    "in_tree": "1.31",
    "named groups": "1.33",
    "root_required": "1.35",
    "same_subtree": "1.36",
}
# Of both.
FORBIDDEN_TRAITS = "1.22"
REPEATED_MEMBER_OF = "1.24"
FORBIDDEN_AGGREGATES = "1.32"
ANY_TRAITS = "1.39"

LATEST = "1.39"
"""The newest whose rules are known here."""


def number(microversion: str) -> tuple[int, int]:
    """The microversion as numbers, which compare as it does."""
    match = _MICROVERSION.fullmatch(LATEST if microversion == "latest" else str(microversion))
    if match is None:
        raise errors.BadRequest(
            f"{microversion!r} is no microversion; write one such as {LATEST!r}, or 'latest'"
        )
    major, minor = match.groups()
    return int(major), int(minor)


def reaches(microversion: str, needed: str) -> bool:
    return number(microversion) >= number(needed)


def lowest(base: str, needs: Needs) -> str:
    """The lowest microversion that has all that is needed."""
    return max([base, *(needed for _, needed in needs)], key=number)


def require(microversion: str, base: str, needs: Needs) -> None:
    """Raises MicroversionTooLow, which says what needs more than this microversion has."""
    missing = [
        f"{part} needs {needed}" for part, needed in needs if not reaches(microversion, needed)
    ]
    if not reaches(microversion, base):
        missing.insert(0, f"the request itself needs {base}")
    if missing:
        raise errors.MicroversionTooLow(
            f"with microversion {microversion} this cannot be asked: {'; '.join(missing)}"
        )
