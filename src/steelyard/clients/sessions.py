"""Requests to services over HTTP, through sessions of keystoneauth1."""

from typing import Any

from steelyard import errors, extras
from steelyard.text import strict_json
from steelyard.text.escapes import printable

ERRORS = {
    400: errors.BadRequest,
    401: errors.NoAccess,
    403: errors.Forbidden,
    404: errors.NotFound,
    406: errors.MicroversionTooLow,
}
"""The errors for the statuses of answers of OpenStack's services."""

_MOST_SHOWN = 300


class Service:
    """A service that receives requests over HTTP.

    ``name`` is the name of the service in errors, and ``extra`` is the extra that installs
    keystoneauth1. ``session`` is a keystoneauth1 session, or an adapter that knows the endpoint.
    """

    def __init__(self, name: str, extra: str, session: Any, **endpoint_filter: Any) -> None:
        self._name = name
        adapter, exceptions = _keystoneauth(name, extra)
        if not callable(getattr(session, "request", None)):
            raise errors.BadRequest(
                f"invalid session {session!r:.200} for {name}: expected one of keystoneauth1"
            )
        if not isinstance(session, adapter.Adapter):
            session = adapter.Adapter(session, **endpoint_filter)
        self._adapter = session
        self._failures = exceptions.ClientException

    def ask(self, method: str, url: str, body: Any = None, **more: Any) -> Any:
        """Send a request, and return the answer, whatever its status.

        Raises NoAccess if no answer arrives.
        """
        if body is not None:
            more["json"] = body
        try:
            return self._adapter.request(url, method, raise_exc=False, **more)
        except self._failures as error:
            raise errors.NoAccess(f"request to {self._name} failed: {reason(error)}") from error

    def content(self, answer: Any) -> Any:
        """Return the JSON of the answer; raise ServiceError if it is invalid."""
        try:
            return strict_json.loads(answer.content)
        except ValueError:
            raise self.unexpected(f"expected JSON, got {text(answer)}") from None

    def unexpected(self, why: str) -> errors.ServiceError:
        """Return the error for an answer that the service itself would not send."""
        return errors.ServiceError(
            f"unexpected answer from {self._name}: {why}; check its endpoint"
        )


def reason(error: BaseException) -> str:
    """Return the message of an error of keystoneauth1, ending with the system's reason if any.

    The original message ends with that of urllib3, which repeats the address.
    """
    quoted = cause = error.__cause__ or error.__context__
    while cause is not None and not (isinstance(cause, OSError) and cause.strerror):
        cause = cause.__cause__ or cause.__context__
    message = str(error)
    if cause is None or not message.endswith(str(quoted)):
        return message
    return message.removesuffix(str(quoted)) + str(cause.strerror)


def text(answer: Any) -> str:
    """Return the text of an answer as one line to show."""
    return line(answer.text)


def line(value: Any) -> str:
    """Return the value as one line to show, shortened and with control characters escaped."""
    words = " ".join(str(value or "").split())
    shown = words if len(words) <= _MOST_SHOWN else f"{words[:_MOST_SHOWN]}…"
    return printable(shown)


def _keystoneauth(name: str, extra: str) -> tuple[Any, Any]:
    with extras.required(extra, f"a request to {name}"):
        from keystoneauth1 import adapter, exceptions  # noqa: PLC0415  (an extra)
    return adapter, exceptions
