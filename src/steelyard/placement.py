"""A Placement that answers over HTTP: what it speaks, what it says, what its errors mean.

The session is keystoneauth's: made from clouds.yaml by openstacksdk, from a service's own
configuration, or in a test from a Placement in the same process.
"""

from typing import Any

from steelyard import errors

SERVICE_TYPE = "placement"

_ERRORS = {404: errors.NotFound, 409: errors.Conflict}


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
            versions = self.send("GET", "/", "1.0")["versions"]
            self._newest = str(versions[0]["max_version"])
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
        if answer.status_code >= 400:
            raise _error(answer)
        return answer.json() if answer.content else None


def _error(answer: Any) -> errors.SteelyardError:
    """The error that stands for this answer, with what Placement says of it."""
    kind = _ERRORS.get(answer.status_code)
    if kind is None:
        kind = errors.BadRequest if answer.status_code < 500 else errors.ServiceError
    try:
        (said, *_) = answer.json()["errors"]
        detail = " ".join(str(said["detail"]).split())
    except (ValueError, KeyError, TypeError):
        detail = " ".join(str(answer.text).split()) or "no reason given"
    return kind(f"Placement answered {answer.status_code}: {detail}")
