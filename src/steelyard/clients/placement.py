"""A client of Placement over HTTP.

The session is one of keystoneauth1. openstacksdk creates it from clouds.yaml, a service from its
own configuration, and a test for a Placement in the same process.
"""

from typing import Any

from steelyard import errors, microversions
from steelyard.clients import sessions
from steelyard.text import strict_json

SERVICE_TYPE = "placement"

_ERRORS = sessions.ERRORS | {409: errors.Conflict}
# Codes in the bodies of Placement's errors, from microversion 1.23 on.
_CONCURRENT_UPDATE = "placement.concurrent_update"
_WITHOUT_CODE = "placement.undefined_code"


class Placement:
    """A client of one Placement; each request has a microversion of its own.

    ``session`` is a keystoneauth1 adapter, such as ``openstack.connect(cloud=…).placement``, or a
    session. A session has no region: pass ``region_name`` and ``interface`` with it.
    """

    def __init__(self, session: Any, **endpoint_filter: Any) -> None:
        self._service = sessions.Service(
            "Placement", "placement", session, service_type=SERVICE_TYPE, **endpoint_filter
        )
        self._newest: str | None = None

    @property
    def newest(self) -> str:
        """The newest microversion that this Placement supports.

        It is requested at the first use, and again after Placement has rejected a microversion.
        """
        if self._newest is None:
            answer = self.send("GET", "/", "latest")
            try:
                (version, *_) = answer["versions"]
                self._newest = str(version["max_version"])
                microversions.number(self._newest)
            except (KeyError, TypeError, ValueError, errors.BadRequest):
                self._newest = None
                raise self._service.unexpected(
                    f"expected its microversions, got {answer!r:.200}"
                ) from None
        return self._newest

    def send(
        self,
        method: str,
        url: str,
        microversion: str,
        body: Any = None,
        conflict: type[errors.Conflict] = errors.Conflict,
    ) -> Any:
        """Send a request, and return the JSON of the answer, or None if the answer is empty.

        Raises the error that matches the answer's status, and NoAccess if there is no answer.
        ``conflict`` is the error for a 409 without a specific error code.
        """
        headers = {"OpenStack-API-Version": f"{SERVICE_TYPE} {microversion}"}
        answer = self._service.ask(method, url, body, headers=headers)
        if not 200 <= answer.status_code < 300:
            if answer.status_code == 406:
                self._newest = None  # another version may be running now
            raise _error(answer, conflict)
        return self._service.content(answer) if answer.content else None


def _error(answer: Any, conflict: type[errors.Conflict]) -> errors.SteelyardError:
    """Return the error for this answer, with the reason that it gives."""
    kind = _ERRORS.get(answer.status_code, errors.ServiceError)
    if kind is errors.Conflict:
        conflicts: dict[str | None, type[errors.Conflict]] = {
            _CONCURRENT_UPDATE: errors.ConcurrentUpdate,
            _WITHOUT_CODE: conflict,
        }
        kind = conflicts.get(_code(answer), errors.Conflict)
    return kind(f"Placement answered {answer.status_code}: {_reason(answer)}")


def _code(answer: Any) -> str | None:
    """Return Placement's code of the error, or None if the answer has none."""
    try:
        code: str = strict_json.loads(answer.content)["errors"][0]["code"]
    except (ValueError, LookupError, TypeError):
        return None
    return code


def _reason(answer: Any) -> str:
    """Return the reason in an error of Placement or keystonemiddleware, or else the text."""
    try:
        body = strict_json.loads(answer.content)
        reason = body["errors"][0]["detail"] if "errors" in body else body["error"]["message"]
    except (ValueError, LookupError, TypeError):
        reason = sessions.text(answer)
    return sessions.line(reason) or "no reason given"
