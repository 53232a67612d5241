"""A Placement that answers over HTTP: what it speaks, what it says, what its errors mean.

The session is keystoneauth's: made from clouds.yaml by openstacksdk, from a service's own
configuration, or in a test from a Placement in the same process.
"""

from typing import Any

from steelyard import errors, microversions

SERVICE_TYPE = "placement"

_ERRORS = {
    400: errors.BadRequest,
    404: errors.NotFound,
    406: errors.MicroversionTooLow,
    409: errors.Conflict,
}


class Placement:
    """A client that sends each request with one microversion, which both sides know.

    ``session`` is a keystoneauth1 session, or an adapter that knows the endpoint already.
    """

    def __init__(self, session: Any, **endpoint_filter: Any) -> None:
        try:
            from keystoneauth1 import adapter, exceptions  # noqa: PLC0415  (an extra)
        except ModuleNotFoundError:
            raise errors.MissingExtra(
                "asking a Placement needs keystoneauth1: "
                "python3 -m pip install 'steelyard[placement]'"
            ) from None
        if not isinstance(session, adapter.Adapter):
            session = adapter.Adapter(session, service_type=SERVICE_TYPE, **endpoint_filter)
        self._adapter = session
        self._failures = exceptions.ClientException
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
                raise errors.ServiceError(
                    f"what is asked does not say which microversions it speaks, but "
                    f"{answer!r:.200}; is this a Placement?"
                ) from None
        return self._newest

    def send(self, method: str, url: str, microversion: str, body: Any = None) -> Any:
        """What Placement answers, read as JSON; its errors become ours."""
        try:
            answer = self._adapter.request(
                url,
                method,
                raise_exc=False,
                headers={"OpenStack-API-Version": f"{SERVICE_TYPE} {microversion}"},
                **({} if body is None else {"json": body}),
            )
        except self._failures as error:
            raise errors.ServiceError(f"Placement cannot be asked: {error}") from error
        if not 200 <= answer.status_code < 300:
            if answer.status_code == 406:
                self._newest = None  # it is not what it was: ask again
            raise _error(answer)
        if not answer.content:
            return None
        try:
            return answer.json()
        except ValueError:
            raise errors.ServiceError(
                f"what is asked does not answer with JSON, but {_text(answer):.200}; "
                f"is this a Placement?"
            ) from None


def _error(answer: Any) -> errors.SteelyardError:
    """The error that stands for this answer, with the reason that it gives."""
    kind = _ERRORS.get(answer.status_code, errors.ServiceError)
    return kind(f"Placement answered {answer.status_code}: {_reason(answer)}")


def _reason(answer: Any) -> str:
    """The detail of Placement's errors, the message of keystonemiddleware's, or the text."""
    try:
        body = answer.json()
        said = body["errors"][0]["detail"] if "errors" in body else body["error"]["message"]
    except (ValueError, LookupError, TypeError):
        said = _text(answer)
    return " ".join(str(said or "").split()) or "no reason given"


def _text(answer: Any) -> str:
    return " ".join(str(answer.text).split())
