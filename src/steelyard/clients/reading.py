"""Requests that read from a service, with answers that are parsed into values."""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from steelyard import errors
from steelyard.clients import sessions
from steelyard.text import strict_json

ValueT = TypeVar("ValueT")
Parse = Callable[[Any], ValueT]


class ServiceReader:
    """A reader of the records of one service.

    ``session`` is a keystoneauth1 session or adapter. A malformed answer raises ServiceError.
    """

    def __init__(self, name: str, session: Any, service_type: str) -> None:
        self._name = name
        self._service = sessions.Service(name, "placement", session, service_type=service_type)

    def ask(self, path: str, query: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
        """Send a GET request, and return the answer, whatever its status."""
        return self._service.ask("GET", path, headers=dict(headers), params=dict(query))

    def answer(self, path: str, query: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
        """Return the answer to a GET request; raise the error that matches its status."""
        answer = self.ask(path, query, headers)
        if answer.status_code != 200:
            kind = sessions.ERRORS.get(answer.status_code, errors.ServiceError)
            raise kind(f"{self._name} answered {answer.status_code} to {path}: {_reason(answer)}")
        return answer

    def content(self, path: str, query: Mapping[str, Any], headers: Mapping[str, str]) -> Any:
        """Return the JSON of the answer; raises the errors of ``answer``."""
        return self._service.content(self.answer(path, query, headers))

    def records(
        self, path: str, key: str, query: Mapping[str, Any], headers: Mapping[str, str]
    ) -> list[Any]:
        """Return the list in the field ``key`` of the answer."""
        answer = self.content(path, query, headers)
        try:
            return list(answer[key])
        except (LookupError, TypeError) as error:
            raise self._invalid(path, key, error, answer) from error

    def parsed(self, path: str, key: str, parse: Parse[ValueT], record: Any) -> ValueT:
        """Return the value of a record of the answer to ``path``; ``key`` names it in errors."""
        try:
            return parse(record)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise self._invalid(path, key, error, _identity(record)) from error

    def unexpected(self, why: str) -> errors.ServiceError:
        """Return the error for an answer that the service itself would not send."""
        return self._service.unexpected(why)

    def _invalid(self, path: str, key: str, error: Exception, what: Any) -> errors.ServiceError:
        return self.unexpected(
            f"invalid {key} in {path} ({type(error).__name__}: {sessions.line(error)}; in "
            f"{what!r:.200})"
        )


def _identity(record: Any) -> Any:
    """Return the fields that identify the record, or the whole record if it has none."""
    if not isinstance(record, Mapping):
        return record
    names = ("id", "name", "hypervisor_hostname")
    return {name: record[name] for name in names if name in record} or record


def _reason(answer: Any) -> str:
    """Return the message of an error of OpenStack, or the text of the answer if it has none."""
    try:
        (message,) = (fault["message"] for fault in strict_json.loads(answer.content).values())
    except (ValueError, LookupError, TypeError, AttributeError):
        message = sessions.text(answer)
    return sessions.line(message) or "no reason given"
