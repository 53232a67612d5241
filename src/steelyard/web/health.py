"""The health of a service, for load balancers and monitoring."""

from collections.abc import Callable, Mapping

import falcon
from oslo_log import log as logging

from steelyard import errors
from steelyard.web.openapi import JsonSchema, object_schema
from steelyard.web.requests import json_bytes

LOG = logging.getLogger(__name__)

PATH = "/health"

SCHEMA: JsonSchema = object_schema(
    healthy={"type": "boolean"},
    checks={"type": "object", "additionalProperties": {"enum": ["ok", "failed"]}},
)
"""The JSON Schema of the answer."""


class Health:
    """A resource that runs checks by name. It needs no identity of the caller.

    A check raises an error of steelyard if it fails. Callers see only which checks failed; the
    reasons are in the log.
    """

    def __init__(self, checks: Mapping[str, Callable[[], None]]) -> None:
        self._checks = checks

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        passed = {name: self._passes(name) for name in self._checks}
        healthy = all(passed.values())
        resp.status = falcon.HTTP_200 if healthy else falcon.HTTP_503
        checks = {name: "ok" if good else "failed" for name, good in passed.items()}
        resp.data = json_bytes({"healthy": healthy, "checks": checks})
        resp.set_header("Cache-Control", "no-store")

    on_head = on_get

    def _passes(self, name: str) -> bool:
        try:
            self._checks[name]()
        except errors.SteelyardError as error:
            LOG.warning("Health check '%s' failed: %a", name, str(error))
            return False
        return True
