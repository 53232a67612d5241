"""The Placement microversions that the parts of a request need."""

import re
from collections.abc import Iterable

from steelyard import errors

Needs = Iterable[tuple[str, str]]
"""Parts of a request, each with the microversion that it needs."""

_MICROVERSION = re.compile(r"([0-9]{1,4})\.([0-9]{1,4})")

# The parameters of GET /resource_providers, with the microversions that added them.
PROVIDERS = {
    "member_of": "1.3",
    "resources": "1.4",
    "in_tree": "1.14",
    "required": "1.18",
}
# The same for GET /allocation_candidates, which was added in 1.10.
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
# Features of the parameters of both.
FORBIDDEN_TRAITS = "1.22"
REPEATED_MEMBER_OF = "1.24"
NESTED = "1.29"
"""The microversion from which on candidates may have several providers of one tree."""
FORBIDDEN_AGGREGATES = "1.32"
ANY_TRAITS = "1.39"

OLDEST = "1.0"
LATEST = "1.39"
"""The newest microversion that steelyard knows."""

_SERVICE = "placement"


def number(microversion: str) -> tuple[int, int]:
    """Return the microversion as a pair of numbers, for comparisons.

    ``latest`` stands for LATEST. Raises BadRequest if the microversion is invalid.
    """
    text = LATEST if microversion == "latest" else microversion
    # A float is invalid: 1.30 would become 1.3.
    match = _MICROVERSION.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise errors.BadRequest(
            f"invalid microversion {microversion!r}: expected one such as {LATEST!r}, or 'latest'",
            microversion,
        )
    major, minor = match.groups()
    return int(major), int(minor)


def requested(text: str) -> str:
    """Return the microversion that a client requests with this text.

    The text is a microversion or ``latest``, or the value of the header ``OpenStack-API-Version``,
    such as ``placement 1.22``. The last value for Placement counts; without one, the microversion
    is the oldest. Raises BadRequest if the text is malformed, and UnsupportedMicroversion if the
    microversion does not exist.
    """
    if isinstance(text, str) and len(text.split(None, 1)) == 2:
        found = of_service(text, _SERVICE, number(LATEST)) or number(OLDEST)
    else:
        found = number(text)
    version = ".".join(map(str, found))
    if not number(OLDEST) <= found <= number(LATEST):
        raise errors.UnsupportedMicroversion(
            f"unsupported microversion {version!r:.100}: expected {OLDEST!r} to {LATEST!r}, or "
            f"'latest'",
            text,
            oldest=OLDEST,
            newest=LATEST,
        )
    return version


def of_service(header: str, service: str, newest: tuple[int, int]) -> tuple[int, int] | None:
    """Return the last microversion that the header names for the service, or None.

    ``latest`` in the header stands for ``newest``. All numbers that Placement accepts are valid,
    for example with spaces around them. Raises BadRequest if the microversion is malformed.
    """
    for each in reversed(header.split(",")):
        words = each.split(None, 1)
        if len(words) == 2 and words[0].lower() == service:
            return _in_header(words[1].strip(), newest)
    return None


def _in_header(text: str, newest: tuple[int, int]) -> tuple[int, int]:
    if text == "latest":
        return newest
    try:
        major, minor = map(int, text.split(".", 1))
    except ValueError:
        expected = ".".join(map(str, newest))
        raise errors.BadRequest(
            f"invalid microversion {text!a:.100}: expected one such as {expected!r}, or 'latest'",
            text,
        ) from None
    return major, minor


def reaches(microversion: str, needed: str) -> bool:
    """Return whether the microversion is at least the needed one."""
    return number(microversion) >= number(needed)


def lowest(base: str, needs: Needs) -> str:
    """Return the lowest microversion, from ``base`` on, that meets all needs."""
    return max([base, *(needed for _, needed in needs)], key=number)


def require(microversion: str, base: str, needs: Needs) -> None:
    """Raise MicroversionTooLow, with all unmet needs, unless the microversion meets all needs."""
    missing = [
        f"{part} needs {needed}" for part, needed in needs if not reaches(microversion, needed)
    ]
    if not reaches(microversion, base):
        missing.insert(0, f"the request itself needs {base}")
    if missing:
        raise errors.MicroversionTooLow(
            f"microversion {microversion} is too low: {'; '.join(missing)}"
        )
