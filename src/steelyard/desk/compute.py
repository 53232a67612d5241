"""A Nova that answers over HTTP: its listings, page by page, and what its errors mean."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from steelyard import errors, sessions

MICROVERSION = "2.64"
"""The oldest in which everything is shown that is asked for here; Rocky's Nova speaks it."""

ValueT = TypeVar("ValueT")
Parse = Callable[[Mapping[str, Any]], ValueT]


class Compute:
    """A client that only reads. ``session`` is a keystoneauth1 session, or an adapter."""

    def __init__(self, session: Any) -> None:
        self._service = sessions.Service("a Nova", "placement", session, service_type="compute")

    def listing(self, path: str, key: str, parse: Parse[ValueT], **query: Any) -> list[ValueT]:
        """What is listed all at once."""
        return [parsed for _, parsed in self._page_of(path, key, parse, query)]

    def by_marker(
        self, path: str, key: str, parse: Parse[ValueT], **query: Any
    ) -> Iterator[ValueT]:
        """What is listed in pages, of which each begins behind the last one of the page before."""
        # Until there is nothing more: a page may be short for other reasons.
        markers = set()
        while page := self._page_of(path, key, parse, query):
            query["marker"] = page[-1][0]
            if query["marker"] in markers:
                raise self._same_again(path)
            markers.add(query["marker"])
            yield from (parsed for _, parsed in page)

    def by_offset(
        self, path: str, key: str, parse: Parse[ValueT], **query: Any
    ) -> Iterator[ValueT]:
        """What is listed in pages, of which each begins at a number."""
        before = None
        while page := self._page_of(path, key, parse, query):
            ids = [uuid for uuid, _ in page]
            if ids == before:
                raise self._same_again(path)
            before = ids
            yield from (parsed for _, parsed in page)
            query["offset"] = query.get("offset", 0) + len(page)

    def _same_again(self, path: str) -> errors.ServiceError:
        return self._service.stranger(f"gives the same page of {path} again and again")

    def _page_of(
        self, path: str, key: str, parse: Parse[ValueT], query: Mapping[str, Any]
    ) -> list[tuple[str, ValueT]]:
        answer = self._get(path, query)
        try:
            records = list(answer[key])
        except (LookupError, TypeError) as error:
            raise self._something_else(path, key, error, answer) from error
        return [self._parsed(path, key, parse, record) for record in records]

    def _parsed(self, path: str, key: str, parse: Parse[ValueT], record: Any) -> tuple[str, ValueT]:
        try:
            return str(record["id"]), parse(record)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise self._something_else(path, key, error, _called(record)) from error

    def _something_else(
        self, path: str, key: str, error: Exception, what: Any
    ) -> errors.ServiceError:
        return self._service.stranger(
            f"answers to {path} with something else than {key} ({type(error).__name__}: "
            f"{sessions.line(error)}; in {what!r:.200})"
        )

    def _get(self, path: str, query: Mapping[str, Any]) -> Any:
        headers = {"OpenStack-API-Version": f"compute {MICROVERSION}"}
        answer = self._service.ask("GET", path, headers=headers, params=dict(query))
        if answer.status_code != 200:
            kind = sessions.ERRORS.get(answer.status_code, errors.ServiceError)
            raise kind(f"Nova answered {answer.status_code} to {path}: {_reason(answer)}")
        return self._service.content(answer)


def _called(record: Any) -> Any:
    """What is enough of a record to find it by."""
    if not isinstance(record, Mapping):
        return record
    names = ("id", "name", "hypervisor_hostname")
    return {name: record[name] for name in names if name in record} or record


def _reason(answer: Any) -> str:
    """The message of Nova's errors, which is under a name for the kind, or the text."""
    try:
        (said,) = (fault["message"] for fault in answer.json().values())
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        said = sessions.text(answer)
    return sessions.line(said) or "no reason given"
