"""The HTTP API of instance tags, in the style of OpenStack: a WSGI application.

WSGI servers run ``application``, which reads the configuration that oslo.config finds.
``make_application`` makes an application over a given service.

WSGI servers decode the percent-encoded path, so a slash in the name of a tag looks like one between
segments. Everything after ``/tags/`` is therefore one name, and a name with a slash is invalid.
Paths are not normalised: ``..`` is a valid tag. A client may normalise it away; the request for
``/servers/{id}/tags/`` or ``/servers/{id}/`` that remains changes nothing.
"""

import urllib.parse
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import falcon
from oslo_config import cfg
from oslo_log import log as logging

from steelyard import conf as options
from steelyard import errors
from steelyard.tags import configured
from steelyard.tags.http import openapi, policy, queries, schemas
from steelyard.tags.http.callers import caller
from steelyard.tags.http.faults import FaultReason
from steelyard.tags.http.policy import TagPolicy
from steelyard.tags.jobs.watch import Watch
from steelyard.tags.monitoring import resources
from steelyard.tags.monitoring.metrics import SERVICE
from steelyard.tags.monitoring.vitals import Vitals
from steelyard.tags.service import Caller, TagService
from steelyard.tags.states.values import Instance, Status
from steelyard.web import faults, metrics
from steelyard.web.callers import Trust
from steelyard.web.configured import ConfiguredApplication
from steelyard.web.documents import PublicDocument
from steelyard.web.error_answers import ErrorAnswers, HttpFault
from steelyard.web.openapi import PATH, JsonSchema
from steelyard.web.requests import Bodies, Gate, json_bytes

LOG = logging.getLogger(__name__)

_TRUST = (f"trusted_proxies in [{options.TAGS_GROUP}]", f"system_proxies in [{options.TAGS_GROUP}]")


class _TagErrors(ErrorAnswers):
    """The answers to errors, in the form of OpenStack Compute."""

    service = "the tag service"
    realm = "tags"
    unreachable = HttpFault(
        503, "the database is unreachable; try again later", FaultReason.DATABASE_UNREACHABLE
    )
    outdated = HttpFault(
        503,
        "the tables of tags are missing or outdated; correct the database URL of the service, or "
        "run 'steelyard db upgrade --schema tags --url URL'",
        FaultReason.UPGRADE_NEEDED,
    )
    behind: ClassVar[Mapping[type[errors.ServiceError], HttpFault]] = {
        errors.WrongBackend: HttpFault(
            500,
            "the tag service uses the wrong backend for its database, and nothing was changed; see "
            "{} in its log",
        ),
        errors.BackendUnreachable: HttpFault(
            503,
            "the backend is unreachable, and nothing was changed; try again later ({})",
            FaultReason.BACKEND_UNREACHABLE,
        ),
        errors.BackendRefused: HttpFault(
            502, "the backend refused the request; list the tags to see the result ({})"
        ),
        errors.OutcomeUnknown: HttpFault(
            503,
            "the backend did not answer, and may still apply the request; list the tags later ({})",
            FaultReason.OUTCOME_UNKNOWN,
        ),
        errors.UpgradeNeeded: outdated,
        # A transaction may be aborted after a job was submitted.
        errors.TransactionAborted: HttpFault(
            503,
            "the database aborted the transaction; list the tags to see the result, and retry "
            "later ({})",
            FaultReason.TRANSACTION_ABORTED,
        ),
        # The database may have failed after a job was submitted, so this outcome is unknown, too.
        errors.ServiceError: HttpFault(
            503,
            "the database is unreachable; list the tags later to see the result ({})",
            FaultReason.DATABASE_UNREACHABLE,
        ),
    }

    def reason(self, error: errors.SteelyardError) -> str | None:
        failed = isinstance(error, errors.AdditionFailed)
        return FaultReason.ADDITION_FAILED if failed else None

    def body(self, fault: HttpFault, request_id: str) -> dict[str, Any]:
        return faults.fault(fault.status, fault.message, fault.reason)


_ERRORS = _TagErrors()


def make_application(service: TagService, conf: cfg.ConfigOpts | None = None) -> WSGIApplication:
    """Return the application over a service; raise BadRequest for contradictory options."""
    group = options.register_tags(conf)
    trust = Trust.parse(group.trusted_proxies, group.system_proxies, names=_TRUST)
    registry = metrics.registry()
    counted = metrics.RequestMetrics(SERVICE, registry)
    gates: list[Any] = [counted, Gate(group.max_body)]
    app = falcon.App(middleware=gates)
    given = service, trust, Bodies(group.max_body), TagPolicy(conf)
    app.add_route("/servers", _Servers(*given))
    app.add_route("/servers/{server}", _Server(*given))
    app.add_route("/servers/{server}/tags", _Tags(*given))
    app.add_route("/servers/{server}/tags/{tag:path}", _Tag(*given))
    app.add_route(PATH, PublicDocument(openapi.description(trust)))
    vitals = Vitals(service.store, configured.broker(conf))
    resources.add_routes(app, vitals, registry, needs_broker=False)
    _ERRORS.register(app)
    return app


def _configured(conf: cfg.ConfigOpts) -> WSGIApplication:
    """Return the configured application."""
    service = configured.service(conf)
    app = make_application(service, conf)
    if service.backend.in_process:
        LOG.warning(
            "Backend '%s' is only for trials, because each process has its own: set another "
            "backend in [%s]",
            service.backend.identity().driver,
            options.TAGS_GROUP,
        )
        # No other process can poll its jobs.
        group = options.register_tags(conf)
        Watch(service.jobs, group.marks_kept).every(group.poll_interval).begin()
    return app


_application = ConfiguredApplication(_configured, _ERRORS)


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer a request with the configured application."""
    return _application(environ, start_response)


class _Resource:
    """A resource whose methods act on behalf of the caller."""

    def __init__(self, service: TagService, trust: Trust, bodies: Bodies, rules: TagPolicy) -> None:
        self._service = service
        self._trust = trust
        self._bodies = bodies
        self._policy = rules

    def _asking(self, req: falcon.Request, rule: str, server: str | None = None) -> Caller:
        """Return the caller, if the policy allows the request.

        Raises NotFound for a server that is not of the caller's project, whatever the policy.
        """
        asking = caller(req.env, self._trust)
        if server is not None:
            self._service.instance(asking, server)
        self._policy.require(rule, asking, asking.project)
        return asking

    def _body(self, req: falcon.Request, schema: JsonSchema) -> Any:
        return schemas.check(self._bodies.read(req), schema)


class _Servers(_Resource):
    """All servers of the caller's project."""

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        asking = self._asking(req, policy.READ)
        query = queries.parse(req.query_string)
        # One more than requested shows whether there is a next page.
        found = self._service.servers(asking, query.wanted, query.size + 1, query.after)
        listed = found[: query.size]
        body: dict[str, Any] = {
            "servers": [_server_body(each.instance, each.statuses) for each in listed]
        }
        if len(found) > len(listed):
            following = f"{req.root_path}/servers?{query.next(listed[-1].instance.id)}"
            body["servers_links"] = [{"rel": "next", "href": following}]
        resp.data = json_bytes(body)

    on_head = on_get

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        asking = self._asking(req, policy.CREATE)
        body = self._body(req, schemas.new_server(asking.owner))
        asked = body["server"]
        server = asked.get("id", str(uuid.uuid4()))
        # Set it for errors, too: if the outcome is unknown, the client can find the server there.
        resp.set_header("Location", urllib.parse.quote(f"{req.root_path}/servers/{server}/tags"))
        instance, there = self._service.create(asking, asked["name"], asked.get("tags", ()), server)
        resp.status = falcon.HTTP_202
        resp.data = json_bytes({"server": _server_body(instance, there)})


class _Server(_Resource):
    """One server."""

    def on_delete(self, req: falcon.Request, resp: falcon.Response, server: str) -> None:
        self._service.unregister(self._asking(req, policy.UNREGISTER, server), server)
        resp.status = falcon.HTTP_204


class _Tags(_Resource):
    """All tags of a server."""

    def on_get(self, req: falcon.Request, resp: falcon.Response, server: str) -> None:
        resp.data = json_bytes(
            _tags_body(self._service.tags(self._asking(req, policy.READ, server), server))
        )

    on_head = on_get

    def on_put(self, req: falcon.Request, resp: falcon.Response, server: str) -> None:
        asking = self._asking(req, policy.WRITE, server)
        asked = self._body(req, schemas.tags(asking.owner))
        resp.data = json_bytes(_tags_body(self._service.replace(asking, server, asked["tags"])))

    def on_delete(self, req: falcon.Request, resp: falcon.Response, server: str) -> None:
        self._service.clear(self._asking(req, policy.WRITE, server), server)
        resp.status = falcon.HTTP_204


class _Tag(_Resource):
    """One tag of a server."""

    def on_get(self, req: falcon.Request, resp: falcon.Response, server: str, tag: str) -> None:
        status = self._service.status(self._asking(req, policy.READ, server), server, tag)
        resp.set_header("Tag-Status", status.value)
        resp.status = falcon.HTTP_204

    on_head = on_get

    def on_put(self, req: falcon.Request, resp: falcon.Response, server: str, tag: str) -> None:
        new = self._service.add(self._asking(req, policy.WRITE, server), server, tag)
        resp.status = falcon.HTTP_201 if new else falcon.HTTP_204
        if new:
            resp.set_header("Location", urllib.parse.quote(req.root_path + req.path))

    def on_delete(self, req: falcon.Request, resp: falcon.Response, server: str, tag: str) -> None:
        self._service.delete(self._asking(req, policy.WRITE, server), server, tag)
        resp.status = falcon.HTTP_204


def _server_body(instance: Instance, there: Mapping[str, Status]) -> dict[str, Any]:
    return {
        "id": instance.id,
        "name": instance.name,
        "project": instance.project,
        "user": instance.user,
        **_tags_body(there),
    }


def _tags_body(there: Mapping[str, Status]) -> dict[str, Any]:
    return {"tags": list(there), "statuses": dict(there)}
