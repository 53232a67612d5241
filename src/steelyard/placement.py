"""A Placement that answers over HTTP: what it speaks, what it says, what its errors mean.

The session is keystoneauth's: made from clouds.yaml by openstacksdk, from a service's own
configuration, or in a test from a Placement in the same process.
"""

from typing import Any

from steelyard import errors, microversions, sessions

SERVICE_TYPE = "placement"

_ERRORS = sessions.ERRORS | {409: errors.Conflict}
# Placement says so in the bodies of its errors, from microversion 1.23 on.
_CONCURRENT_UPDATE = "placement.concurrent_update"


class Placement:
    """A client that sends each request with one microversion, which both sides know.

    ``session`` is a keystoneauth1 session, or an adapter that knows the endpoint already.
    """

    def __init__(self, session: Any, **endpoint_filter: Any) -> None:
        self._service = sessions.Service(
            "a Placement", "placement", session, service_type=SERVICE_TYPE, **endpoint_filter
        )
        self._newest: str | None = None

    @property
    def newest(self) -> str:
        """The newest microversion that this Placement speaks; asked once."""
        if self._newest is None:
            answer = self.send("GET", "/", "1.0")
            try:
                (version, *_) = answer["versions"]
                self._newest = str(version["max_version"])
                microversions.number(self._newest)
            except (KeyError, TypeError, ValueError, errors.BadRequest):
                self._newest = None
                raise self._service.stranger(
                    f"does not say which microversions it speaks, but {answer!r:.200}"
                ) from None
        return self._newest

    def send(self, method: str, url: str, microversion: str, body: Any = None) -> Any:
        """What Placement answers, read as JSON; its errors become ours."""
        headers = {"OpenStack-API-Version": f"{SERVICE_TYPE} {microversion}"}
        answer = self._service.ask(method, url, body, headers=headers)
        if not 200 <= answer.status_code < 300:
            if answer.status_code == 406:
                self._newest = None  # it is not what it was: ask again
            raise _error(answer)
        return self._service.content(answer) if answer.content else None


def _error(answer: Any) -> errors.SteelyardError:
    """The error that stands for this answer, with the reason that it gives."""
    kind = _ERRORS.get(answer.status_code, errors.ServiceError)
    if kind is errors.Conflict and _code(answer) == _CONCURRENT_UPDATE:
        kind = errors.ConcurrentUpdate
    return kind(f"Placement answered {answer.status_code}: {_reason(answer)}")


def _code(answer: Any) -> str | None:
    """What Placement calls the error; None where it has no name for it."""
    try:
        code: str = answer.json()["errors"][0]["code"]
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return code


def _reason(answer: Any) -> str:
    """The detail of Placement's errors, the message of keystonemiddleware's, or the text."""
    try:
        body = answer.json()
        said = body["errors"][0]["detail"] if "errors" in body else body["error"]["message"]
    except (ValueError, LookupError, TypeError, RecursionError):
        said = sessions.text(answer)
    return sessions.line(said) or "no reason given"
