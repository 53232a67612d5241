"""The query strings of requests for lists of servers."""

import dataclasses
import urllib.parse
from collections.abc import Mapping

from steelyard import errors
from steelyard.tags.database.listing import LARGEST_PAGE
from steelyard.tags.names import SERVER_ID, TAG_FILTERS, TagFilter

LIMIT = "limit"
MARKER = "marker"
_KNOWN = (*TAG_FILTERS, LIMIT, MARKER)


@dataclasses.dataclass(frozen=True, slots=True)
class ListQuery:
    """A request for a page of servers: its parameters, and their meaning."""

    given: Mapping[str, str]
    wanted: TagFilter
    size: int
    after: str

    def next(self, last: str) -> str:
        """Return the query string for the next page, after the server with the id ``last``."""
        return urllib.parse.urlencode({**self.given, MARKER: last})


def parse(query: str) -> ListQuery:
    """Return the request in a query string; raise BadRequest if it is invalid.

    A limit above the size of the largest page is lowered to it, as in OpenStack.
    """
    given = _parameters(query)
    wanted = TagFilter.parse({key: given[key] for key in TAG_FILTERS if key in given})
    return ListQuery(given, wanted, _size(given.get(LIMIT)), _after(given.get(MARKER)))


def _parameters(query: str) -> dict[str, str]:
    try:
        query.encode("ascii")
        pairs = urllib.parse.parse_qsl(query, keep_blank_values=True, errors="strict")
    except UnicodeError:
        raise errors.BadRequest(
            "invalid query string: expected percent-encoded UTF-8", query
        ) from None
    found = dict(pairs)
    for key in found:
        if key not in _KNOWN:
            raise errors.BadRequest(
                f"unknown parameter {key!r:.100}: expected {', '.join(_KNOWN)}", key
            )
    if len(found) < len(pairs):
        raise errors.BadRequest(
            "repeated parameter: give each once; commas separate the tags in one"
        )
    return found


def _size(text: str | None) -> int:
    if text is None:
        return LARGEST_PAGE
    # int() would accept signs, underscores, spaces and digits of other scripts.
    if not (text.isascii() and text.isdigit() and len(text) <= 9 and int(text)):
        raise errors.BadRequest(
            f"invalid {LIMIT} {text!r:.100}: expected a whole number from 1 up", text
        )
    return min(int(text), LARGEST_PAGE)


def _after(text: str | None) -> str:
    if text is None:
        return ""
    if not SERVER_ID.fullmatch(text):
        raise errors.BadRequest(
            f"invalid {MARKER} {text!r:.100}: expected the id of a server, which the next page "
            f"begins after",
            text,
        )
    return text
