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

SCHEMA: JsonSchema = object_schema(
    healthy={"type": "boolean"},
    checks={"type": "object", "additionalProperties": {"enum": ["ok", "upgrade needed", "failed"]}},
)
"""The JSON Schema of the answer."""


class Health:
    """A resource that runs checks by name. It needs no identity of the caller.

    A check raises an error of steelyard if it fails. Callers see only which checks failed, and
    which of them an upgrade of the tables would cure; the reasons are in the log.
    """

    def __init__(self, checks: Mapping[str, Callable[[], None]]) -> None:
        self._checks = checks

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        checks = {name: self._checked(name) for name in self._checks}
        healthy = set(checks.values()) <= {_OK}
        resp.status = falcon.HTTP_200 if healthy else falcon.HTTP_503
        resp.data = json_bytes({"healthy": healthy, "checks": checks})
        resp.set_header("Cache-Control", "no-store")

    on_head = on_get

    def _checked(self, name: str) -> str:
        try:
            self._checks[name]()
        except errors.SteelyardError as error:
            LOG.warning("Health check '%s' failed: %a", name, str(error))
            return "upgrade needed" if isinstance(error, errors.UpgradeNeeded) else "failed"
        return _OK
