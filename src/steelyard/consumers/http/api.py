"""The HTTP API of consumers: the part of Placement's API at microversion 1.38 that stores them.

WSGI servers run ``application``, which reads the configuration that oslo.config finds.
``make_application`` makes an application over a given store.
"""

import email.utils
import urllib.parse
from collections.abc import Iterable, Mapping
from typing import Any, ClassVar
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import falcon
from oslo_config import cfg

from steelyard import conf as options
from steelyard import errors
from steelyard.consumers import names
from steelyard.consumers.http import openapi, rights
from steelyard.consumers.store import ConsumerStore
from steelyard.sql.configured import database_url
from steelyard.web import callers, faults, health
from steelyard.web.callers import Identity, Trust
from steelyard.web.configured import ConfiguredApplication
from steelyard.web.documents import PublicDocument
from steelyard.web.error_answers import ErrorAnswers, HttpFault, RefusedRequest
from steelyard.web.microversions import Microversions
from steelyard.web.openapi import PATH as DESCRIPTION
from steelyard.web.requests import JSON, Bodies, Gate, json_bytes

_SERVICE = "placement"
VERSION = "1.38"
"""The only microversion of the API: the one that brought consumer types to Placement."""

_ROOT = "/"
# Requests for these need no identity of the caller.
_PUBLIC = frozenset({_ROOT, health.PATH, DESCRIPTION})

# Placement's codes of errors.
_UNDEFINED = "placement.undefined_code"
_CONCURRENT_UPDATE = "placement.concurrent_update"

_DISCOVERY = {
    "versions": [
        {
            "id": "v1.0",
            "min_version": VERSION,
            "max_version": VERSION,
            "status": "CURRENT",
            "links": [{"rel": "self", "href": ""}],
        }
    ]
}


class _ConsumerErrors(ErrorAnswers):
    """The answers to errors, in the form of Placement."""

    service = "the consumer service"
    realm = "placement"
    unreachable = HttpFault(503, "the database is unreachable; try again later")
    outdated = HttpFault(
        503,
        "the tables of consumers are missing or outdated; correct the database URL of the service, "
        "or run 'steelyard db upgrade --url URL'",
    )
    behind: ClassVar[Mapping[type[errors.ServiceError], HttpFault]] = {
        errors.CannotBeKept: HttpFault(
            500, "the database cannot store a value in the request; see {} in the log"
        ),
        errors.UpgradeNeeded: outdated,
        errors.TransactionAborted: HttpFault(
            503, "the database aborted the transaction, and nothing was changed; retry later ({})"
        ),
        errors.ServiceError: HttpFault(
            503,
            "the database is unreachable; try again later, and read the allocations before a write "
            "is repeated ({})",
        ),
    }

    def body(self, fault: HttpFault, request_id: str) -> dict[str, Any]:
        code = fault.reason or _UNDEFINED
        return faults.error_list(fault.status, fault.message, code, request_id, fault.details)

    def reason(self, error: errors.SteelyardError) -> str | None:
        return _CONCURRENT_UPDATE if isinstance(error, errors.ConcurrentUpdate) else None


_ERRORS = _ConsumerErrors()


def make_application(store: ConsumerStore, conf: cfg.ConfigOpts | None = None) -> WSGIApplication:
    """Return the application over a store; raise BadRequest for invalid options.

    The options are those of ``[steelyard_consumers]``, by default of the global configuration.
    """
    group = options.register_consumers(conf)
    named = f"trusted_proxies in [{options.CONSUMERS_GROUP}]"
    trust = Trust.parse(group.trusted_proxies, names=(named, ""))
    gates: list[Any] = [
        Gate(group.max_body),
        _Authentication(trust),
        Microversions(_SERVICE, VERSION),
        _Routes(),
        _MediaTypes(),
    ]
    app = falcon.App(middleware=gates)
    bodies = Bodies(group.max_body)
    app.add_route(_ROOT, PublicDocument(_DISCOVERY))
    app.add_route("/allocations", _Allocations(store, bodies))
    app.add_route("/allocations/{consumer_uuid}", _Consumer(store, bodies))
    app.add_route("/usages", _Usages(store))
    app.add_route("/reshaper", _Reshaper(store, bodies))
    app.add_route(health.PATH, health.Health({"database": store.require_tables}))
    app.add_route(DESCRIPTION, PublicDocument(openapi.description(trust)))
    _ERRORS.register(app)
    return app


def _configured(conf: cfg.ConfigOpts) -> WSGIApplication:
    """Return the configured application."""
    options.register_consumers(conf)
    store = ConsumerStore(database_url(conf, options.CONSUMERS_GROUP))
    options.warn_of_unknown(conf, options.CONSUMERS_GROUP)
    return make_application(store, conf)


_application = ConfiguredApplication(_configured, _ERRORS)


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """Answer a request with the configured application."""
    return _application(environ, start_response)


class _Authentication:
    """The middleware that identifies the caller of each request that needs an identity."""

    def __init__(self, trust: Trust) -> None:
        self._trust = trust

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        if req.path not in _PUBLIC:
            req.context.caller = callers.identity(req.env, self._trust)


class _Routes:
    """The middleware that answers 404 and 405 where Placement does and Falcon does not.

    Falcon matches an empty consumer, and answers OPTIONS itself.
    """

    def process_resource(
        self,
        req: falcon.Request,
        resp: falcon.Response,
        resource: object,
        params: Mapping[str, str],
    ) -> None:
        if "" in params.values():
            raise falcon.HTTPNotFound
        allowed = [name for name in falcon.HTTP_METHODS if hasattr(resource, f"on_{name.lower()}")]
        if req.method not in allowed:
            raise falcon.HTTPMethodNotAllowed(allowed)


class _MediaTypes:
    """The middleware that checks the media types of requests, as Placement does."""

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        if req.content_length and not req.content_type:
            raise errors.BadRequest("missing header Content-Type: the request has a body")

    def process_resource(
        self, req: falcon.Request, resp: falcon.Response, _resource: object, _params: object
    ) -> None:
        if req.method == "GET" and req.path not in _PUBLIC and not req.client_accepts_json:
            raise RefusedRequest(
                HttpFault(406, f"cannot answer in {req.accept!a:.100}: expected {JSON} in Accept")
            )


class _Usages:
    """The usage of a project, or of one of its users, by consumer type."""

    def __init__(self, store: ConsumerStore) -> None:
        self._store = store

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        query = _query(req)
        rights.require_reader(_caller(req), query.get("project_id"))
        if "project_id" not in query:
            raise errors.BadRequest("missing query parameter 'project_id'")
        if query.get("consumer_type") == names.PLACEMENTS_UNKNOWN:
            query["consumer_type"] = names.UNKNOWN.name
        _show(resp, self._store.usages(**query))


class _Writable:
    """A resource that administrators and services write."""

    def __init__(self, store: ConsumerStore, bodies: Bodies) -> None:
        self._store = store
        self._bodies = bodies

    def _body(self, req: falcon.Request) -> Any:
        rights.require_administrator(_caller(req))
        return self._bodies.read(req)


class _Consumer(_Writable):
    """The allocations of one consumer."""

    def on_get(self, req: falcon.Request, resp: falcon.Response, consumer_uuid: str) -> None:
        rights.require_administrator(_caller(req))
        _show(resp, self._store.get_allocations(consumer_uuid))

    def on_put(self, req: falcon.Request, resp: falcon.Response, consumer_uuid: str) -> None:
        self._store.put_allocations(consumer_uuid, self._body(req))
        resp.status = falcon.HTTP_204

    def on_delete(self, req: falcon.Request, resp: falcon.Response, consumer_uuid: str) -> None:
        rights.require_administrator(_caller(req))
        self._store.delete_allocations(consumer_uuid)
        resp.status = falcon.HTTP_204


class _Allocations(_Writable):
    """The allocations of several consumers."""

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        self._store.post_allocations(self._body(req))
        resp.status = falcon.HTTP_204


class _Reshaper(_Writable):
    """The allocations of several consumers, in the form of a reshape."""

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        self._store.reshape(self._body(req))
        resp.status = falcon.HTTP_204


def _caller(req: falcon.Request) -> Identity:
    found: Identity = req.context.caller
    return found


def _query(req: falcon.Request) -> dict[str, str]:
    """Return the parameters of the query; the last one applies if one is repeated."""
    try:
        found = dict(
            urllib.parse.parse_qsl(req.query_string, keep_blank_values=True, errors="strict")
        )
    except ValueError as error:
        raise errors.BadRequest(f"invalid query: {error}") from None
    for name in found.keys() - set(openapi.PARAMETERS):
        raise errors.BadRequest(
            f"unknown query parameter {name!a:.100}: expected {', '.join(openapi.PARAMETERS)}"
        )
    return found


def _show(resp: falcon.Response, body: Mapping[str, Any]) -> None:
    resp.data = json_bytes(body)
    # As Placement answers since microversion 1.15. The store does not record times.
    resp.set_header("Cache-Control", "no-cache")
    resp.set_header("Last-Modified", email.utils.formatdate(usegmt=True))
