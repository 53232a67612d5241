"""Services that are asked over HTTP, through a session of keystoneauth's."""

from typing import Any

from steelyard import errors, extras

ERRORS = {
    400: errors.BadRequest,
    401: errors.NoAccess,
    403: errors.Forbidden,
    404: errors.NotFound,
    406: errors.MicroversionTooLow,
}
"""What OpenStack's services mean by the statuses of their answers."""

_MOST_SHOWN = 300


class Service:
    """What is asked; ``name`` says what it is, and ``extra`` brings what asking it needs.

    ``session`` is a keystoneauth1 session, or an adapter that knows the endpoint already.
    """

    def __init__(self, name: str, extra: str, session: Any, **endpoint_filter: Any) -> None:
        self._name = name
        adapter, exceptions = _keystoneauth(name, extra)
        if not callable(getattr(session, "request", None)):
            raise errors.BadRequest(
                f"{session!r:.200} is no session of keystoneauth1; to ask {name}, make one"
            )
        if not isinstance(session, adapter.Adapter):
            session = adapter.Adapter(session, **endpoint_filter)
        self._adapter = session
        self._failures = exceptions.ClientException

    def ask(self, method: str, url: str, body: Any = None, **more: Any) -> Any:
        """The answer, whatever its status; NoAccess if there is none."""
        if body is not None:
            more["json"] = body
        try:
            return self._adapter.request(url, method, raise_exc=False, **more)
        except self._failures as error:
            raise errors.NoAccess(f"asking {self._name} has failed: {error}") from error

    def content(self, answer: Any) -> Any:
        """What the answer says, read as JSON."""
        try:
            return answer.json()
        except (ValueError, RecursionError):
            raise self.stranger(f"does not answer with JSON, but {text(answer)}") from None

    def stranger(self, what: str) -> errors.ServiceError:
        """The error for an answer that such a service would not give."""
        return errors.ServiceError(f"what is asked {what}; is this {self._name}?")


def text(answer: Any) -> str:
    """The text of an answer, as a line to show."""
    return line(answer.text)


def line(said: Any) -> str:
    """What a service says: on one line, no longer than fits, without what a terminal obeys."""
    words = " ".join(str(said or "").split())
    shown = words if len(words) <= _MOST_SHOWN else f"{words[:_MOST_SHOWN]}…"
    return "".join(each if each.isprintable() else ascii(each)[1:-1] for each in shown)


def _keystoneauth(name: str, extra: str) -> tuple[Any, Any]:
    with extras.required(extra, f"a request to {name}"):
        from keystoneauth1 import adapter, exceptions  # noqa: PLC0415  (an extra)
    return adapter, exceptions
