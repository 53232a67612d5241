"""The health of a service, for load balancers and monitoring."""

from collections.abc import Callable, Mapping

import falcon
from oslo_log import log as logging

from steelyard import errors
from steelyard.web.openapi import JsonSchema, object_schema
from steelyard.web.requests import json_bytes

LOG = logging.getLogger(__name__)

PATH = "/health"

_OK = "ok"


def schema(*numbers: str) -> JsonSchema:
    """Return the JSON Schema of the answer of a service that reports these numbers."""
    return object_schema(
        healthy={"type": "boolean"},
        checks={
            "type": "object",
            "additionalProperties": {"enum": ["ok", "upgrade needed", "failed"]},
        },
        **{name: {"type": ["number", "null"]} for name in numbers},
    )


class Health:
    """A resource that runs checks by name. It needs no identity of the caller.

    A check raises an error of steelyard if it fails. Callers see only which checks failed, and
    which of them an upgrade of the tables would cure; the reasons are in the log. The service is
    healthy if the ``checks`` pass. ``others`` are reported only: the service works without these
    systems. ``numbers`` are reported, too, with null for a number that cannot be read.
    """

    def __init__(
        self,
        checks: Mapping[str, Callable[[], None]],
        others: Mapping[str, Callable[[], None]] | None = None,
        numbers: Mapping[str, Callable[[], float]] | None = None,
    ) -> None:
        self._checks = checks
        self._others = others or {}
        self._numbers = numbers or {}

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        needed = {name: _checked(name, check) for name, check in self._checks.items()}
        others = {name: _checked(name, check) for name, check in self._others.items()}
        numbers = {name: _read(name, read) for name, read in self._numbers.items()}
        healthy = set(needed.values()) <= {_OK}
        resp.status = falcon.HTTP_200 if healthy else falcon.HTTP_503
        resp.data = json_bytes({"healthy": healthy, "checks": {**needed, **others}, **numbers})
        resp.set_header("Cache-Control", "no-store")

    on_head = on_get


def _checked(name: str, check: Callable[[], None]) -> str:
    try:
        check()
    except errors.SteelyardError as error:
        LOG.warning("Health check '%s' failed: %a", name, str(error))
        return "upgrade needed" if isinstance(error, errors.UpgradeNeeded) else "failed"
    return _OK


def _read(name: str, read: Callable[[], float]) -> float | None:
    try:
        return read()
    except errors.SteelyardError as error:
        LOG.debug("Cannot read '%s': %a", name, str(error))
        return None
