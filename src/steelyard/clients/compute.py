"""A client of Nova's listings over HTTP."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from steelyard import errors
from steelyard.clients import sessions
from steelyard.text import strict_json

MICROVERSION = "2.64"
"""The microversion of all requests that name no other; Nova supports it since Rocky."""

ValueT = TypeVar("ValueT")
Parse = Callable[[Mapping[str, Any]], ValueT]


class Compute:
    """A client of Nova that only reads.

    ``session`` is a keystoneauth1 session or adapter. Each method reads the listing at ``path``:
    ``key`` is the field of the answer that contains the records, and ``parse`` converts one record
    to a value. A malformed answer raises ServiceError.
    """

    def __init__(self, session: Any) -> None:
        self._service = sessions.Service("Nova", "placement", session, service_type="compute")

    def newest(self, microversions: Sequence[str]) -> str:
        """Return the first of these microversions that Nova supports, or MICROVERSION if none.

        Sends a small request for each that is tried.
        """
        for each in microversions:
            answer = self._service.ask(
                "GET", "/flavors", headers=_headers(each), params={"limit": 1}
            )
            if answer.status_code != 406:
                return each
        return MICROVERSION

    def listing(self, path: str, key: str, parse: Parse[ValueT], **query: Any) -> list[ValueT]:
        """Return the values of a listing that is not paged."""
        return [parsed for _, parsed in self._page_of(path, key, parse, query)]

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
        return self._service.unexpected(f"the same page of {path} twice")

    def _page_of(
        self,
        path: str,
        key: str,
        parse: Parse[ValueT],
        query: Mapping[str, Any],
        microversion: str = MICROVERSION,
    ) -> list[tuple[str, ValueT]]:
        answer = self._get(path, query, microversion)
        try:
            records = list(answer[key])
        except (LookupError, TypeError) as error:
            raise self._unexpected(path, key, error, answer) from error
        return [self._parsed(path, key, parse, record) for record in records]

    def _parsed(self, path: str, key: str, parse: Parse[ValueT], record: Any) -> tuple[str, ValueT]:
        try:
            return str(record["id"]), parse(record)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise self._unexpected(path, key, error, _identity(record)) from error

    def _unexpected(self, path: str, key: str, error: Exception, what: Any) -> errors.ServiceError:
        return self._service.unexpected(
            f"invalid {key} in {path} ({type(error).__name__}: {sessions.line(error)}; in "
            f"{what!r:.200})"
        )

    def _get(self, path: str, query: Mapping[str, Any], microversion: str) -> Any:
        answer = self._service.ask("GET", path, headers=_headers(microversion), params=dict(query))
        if answer.status_code != 200:
            kind = sessions.ERRORS.get(answer.status_code, errors.ServiceError)
            raise kind(f"Nova answered {answer.status_code} to {path}: {_reason(answer)}")
        return self._service.content(answer)


def _headers(microversion: str) -> dict[str, str]:
    return {"OpenStack-API-Version": f"compute {microversion}"}


def _identity(record: Any) -> Any:
    """Return the fields that identify the record, or the whole record if it has none."""
    if not isinstance(record, Mapping):
        return record
    names = ("id", "name", "hypervisor_hostname")
    return {name: record[name] for name in names if name in record} or record


def _reason(answer: Any) -> str:
    """Return the message of Nova's error, or the text of the answer if it has no message."""
    try:
        (message,) = (fault["message"] for fault in strict_json.loads(answer.content).values())
    except (ValueError, LookupError, TypeError, AttributeError):
        message = sessions.text(answer)
    return sessions.line(message) or "no reason given"
