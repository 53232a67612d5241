"""A client of Nova over HTTP, which only reads."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from steelyard import errors, microversions
from steelyard.clients.reading import Parse, ServiceReader, ValueT

MICROVERSION = "2.64"
"""The microversion of all requests that name no other; Nova supports it since Rocky."""

_HEADER = "OpenStack-API-Version"
_NO_QUERY: Mapping[str, Any] = {}
_SMALL: tuple[str, Mapping[str, Any]] = ("/flavors", {"limit": 1})
"""The path and the query of a small request, which Nova permits to everybody."""


class Compute:
    """A client of Nova that only reads.

    ``session`` is a keystoneauth1 session or adapter. Methods read the answer to ``path``: ``key``
    is the field of the answer that contains the record or the records, and ``parse`` converts one
    record to a value. A malformed answer raises ServiceError.
    """

    def __init__(self, session: Any) -> None:
        self._reader = ServiceReader("Nova", session, "compute")

    def newest(self, candidates: Sequence[str]) -> str:
        """Return the first of these microversions that Nova supports, or MICROVERSION if none.

        Sends a small request for each that is tried.
        """
        for each in candidates:
            if self._reader.ask(*_SMALL, _headers(each)).status_code != 406:
                return each
        return MICROVERSION

    def supported(self) -> str:
        """Return the newest microversion that Nova supports; sends a small request."""
        stated = self._reader.answer(*_SMALL, _headers("latest")).headers.get(_HEADER) or ""
        newest = None
        if "latest" not in stated:
            newest = microversions.of_service(stated, "compute", (0, 0))
        if newest is None:
            raise self._reader.unexpected(
                f"expected its newest microversion in the header {_HEADER}, got {stated!r:.100}"
            )
        return ".".join(map(str, newest))

    def one(
        self, path: str, key: str, parse: Parse[ValueT], microversion: str = MICROVERSION
    ) -> ValueT:
        """Return the value of a single record; raise NotFound if it does not exist."""

        def of_answer(answer: Any) -> ValueT:
            return parse(answer[key])

        answer = self._reader.content(path, _NO_QUERY, _headers(microversion))
        return self._reader.parsed(path, key, of_answer, answer)

    def listing(
        self,
        path: str,
        key: str,
        parse: Parse[ValueT],
        microversion: str = MICROVERSION,
        **query: Any,
    ) -> list[ValueT]:
        """Return the values of a listing that is not paged, or of one page."""
        records = self._reader.records(path, key, query, _headers(microversion))
        return [self._reader.parsed(path, key, parse, record) for record in records]

    def by_marker(
        self,
        path: str,
        key: str,
        parse: Parse[ValueT],
        microversion: str = MICROVERSION,
        **query: Any,
    ) -> Iterator[ValueT]:
        """Yield the values of a listing that is paged by a marker, the id of the last record."""
        # Stop only at an empty page: a short page need not be the last one.
        markers = set()
        while page := self._page_of(path, key, parse, query, microversion):
            query["marker"] = page[-1][0]
            if query["marker"] in markers:
                raise self._repeated_page(path)
            markers.add(query["marker"])
            yield from (parsed for _, parsed in page)

    def by_offset(
        self, path: str, key: str, parse: Parse[ValueT], **query: Any
    ) -> Iterator[ValueT]:
        """Yield the values of a listing that is paged by an offset, a number of records."""
        before = None
        while page := self._page_of(path, key, parse, query):
            ids = [uuid for uuid, _ in page]
            if ids == before:
                raise self._repeated_page(path)
            before = ids
            yield from (parsed for _, parsed in page)
            query["offset"] = query.get("offset", 0) + len(page)

    def _repeated_page(self, path: str) -> errors.ServiceError:
        return self._reader.unexpected(f"the same page of {path} twice")

    def _page_of(
        self,
        path: str,
        key: str,
        parse: Parse[ValueT],
        query: Mapping[str, Any],
        microversion: str = MICROVERSION,
    ) -> list[tuple[str, ValueT]]:
        def identified(record: Any) -> tuple[str, ValueT]:
            return str(record["id"]), parse(record)

        return self.listing(path, key, identified, microversion, **query)


def _headers(microversion: str) -> dict[str, str]:
    return {_HEADER: f"compute {microversion}"}
