"""The HTTP API of instance tags, as OpenStack's clients know it: a WSGI application.

``application`` is the one that a WSGI server is told to run, by the configuration where oslo.config
finds it; ``make_application`` makes another one, over any service.

A server hands over the path with its percent signs decoded. So a slash in the name of a tag cannot
be told from one between segments: whatever follows ``/tags/`` is one name, and with a slash in it
it is malformed. Nothing is normalised: a tag ``..`` is one, though clients may normalise it away.
What is left then, ``/servers/{id}/tags/`` or ``/servers/{id}/``, does nothing.
"""

import json
import math
import threading
import urllib.parse
import uuid
from collections.abc import Iterable, Mapping
from typing import Any, NoReturn
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import falcon
from oslo_config import cfg
from oslo_log import log as logging

from steelyard import conf as options
from steelyard import errors
from steelyard.tags import configured, openapi, schemas
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.callers import Trust, caller
from steelyard.tags.service import Caller, TagService
from steelyard.tags.states import Status
from steelyard.tags.watch import Watch

LOG = logging.getLogger(__name__)

REQUEST_ID = "X-Openstack-Request-Id"

_MISCONFIGURED = "the service of tags cannot work as it is configured; its log says why"
_UNREACHABLE = "the database cannot be asked; ask again later"
# What lies behind is the operator's affair: it is in the log, under the id of the request.
_INTERNAL = "something has gone wrong inside; the log has it under {}"
_BEHIND: Mapping[type[errors.ServiceError], tuple[int, str]] = {
    errors.WrongBackend: (
        500,
        "the backend of the service does not fit its database, and nothing was changed; the log "
        "says more under {}",
    ),
    errors.BackendRefused: (
        502,
        "the backend has refused; list the tags to see what is there ({})",
    ),
    errors.OutcomeUnknown: (
        503,
        "the backend has not answered: it may do yet what it was asked; list the tags later ({})",
    ),
    # A database that fails may do so after the backend has been asked: nobody knows either.
    errors.ServiceError: (
        503,
        "the database cannot be asked; list the tags later to see what is there ({})",
    ),
}


def make_application(service: TagService, conf: cfg.ConfigOpts | None = None) -> WSGIApplication:
    """The application over a service; BadRequest if the options contradict each other."""
    group = options.register_tags(conf)
    trust = Trust.parse(group.trusted_proxies, group.system_proxies)
    app = falcon.App(middleware=[_Gate(group.max_body)])
    given = service, trust, _Bodies(group.max_body)
    app.add_route("/servers", _Servers(*given))
    app.add_route("/servers/{server}/tags", _Tags(*given))
    app.add_route("/servers/{server}/tags/{tag:path}", _Tag(*given))
    app.add_route("/openapi.json", _Description(trust))
    app.set_error_serializer(_tell_of_http)
    app.add_error_handler(Exception, _tell_nothing)
    app.add_error_handler(errors.SteelyardError, _tell)
    app.add_error_handler(errors.ServiceError, _tell_of_services)
    return app


_building = threading.Lock()
_built: list[WSGIApplication] = []


def application(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
    """The configured application; it is built for the first request, after a server has forked."""
    if not _built:
        with _building:
            if not _built:
                try:
                    _built.append(_configured())
                except errors.ServiceError as error:  # another time it may be there
                    LOG.warning("The service of tags cannot work yet: %s", error)
                    return _Refusing(503, _UNREACHABLE)(environ, start_response)
    return _built[0](environ, start_response)


def _configured() -> WSGIApplication:
    """The application of the configuration; one that serves nobody where that is wrong."""
    try:
        conf = _configuration()
        service = configured.service(conf)
        app = make_application(service, conf)
        if isinstance(service.backend, MemoryBackend):
            LOG.warning(
                "the backend memory is for trying out: each process has one of its own; name "
                "another, as backend in [%s]",
                options.TAGS_GROUP,
            )
            # Nobody else can look after its jobs.
            group = conf[options.TAGS_GROUP]
            Watch(service, group.marks_kept).every(group.poll_interval).begin()
        return app
    except errors.ServiceError:
        raise
    except (errors.SteelyardError, cfg.Error) as error:
        LOG.error("The service of tags cannot work; correct this, and restart it: %s", error)
        return _Refusing(500, _MISCONFIGURED)


class _Refusing:
    """An application that serves nobody."""

    def __init__(self, status: int, message: str) -> None:
        self._status = falcon.code_to_http_status(status)
        self._body = _json({schemas.FAULTS[status]: {"code": status, "message": message}})

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        headers = {
            "Content-Type": "application/json",
            "Content-Length": str(len(self._body)),
            REQUEST_ID: _request_id(),
        }
        start_response(self._status, list(headers.items()))
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [self._body]


def _configuration() -> cfg.ConfigOpts:
    """The global configuration, which is read now unless who embeds us has done so."""
    conf = cfg.CONF
    if "config_file" not in conf:
        logging.register_options(conf)
        conf([], project="steelyard")
        logging.setup(conf, "steelyard")
    return conf


class _Gate:
    """Refuses what is not even to be looked at, and gives each request its id."""

    def __init__(self, most: int) -> None:
        self._most = most

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        resp.set_header(REQUEST_ID, _request_id())
        try:
            req.env["PATH_INFO"].encode("latin-1").decode("utf-8")
        except UnicodeDecodeError:
            raise falcon.HTTPBadRequest(description="the path is not UTF-8") from None
        if req.path.startswith("//"):  # the router would not mind
            raise falcon.HTTPNotFound
        if (req.content_length or 0) > self._most:
            raise _too_large(self._most)


def _request_id() -> str:
    return f"req-{uuid.uuid4()}"


def _too_large(most: int) -> falcon.HTTPError:
    return falcon.HTTPContentTooLarge(description=f"a request has at most {most} bytes")


class _Bodies:
    """Reads the bodies of requests, as far as they may go."""

    def __init__(self, most: int) -> None:
        self._most = most

    def read(self, req: falcon.Request, schema: schemas.Schema) -> Any:
        """What the body says, which is as the schema has it."""
        _check_media_type(req.content_type or "")
        data = self._bytes(req)
        try:
            return schemas.check(_parsed(data), schema)
        except RecursionError:  # in reading it, or in saying what is wrong with it
            raise errors.BadRequest("the body is nested too deeply") from None

    def _bytes(self, req: falcon.Request) -> bytes:
        length, rest = req.content_length, req.env["wsgi.input"]
        if length is not None:
            data: bytes = rest.read(length)
        elif req.env.get("wsgi.input_terminated"):
            data = rest.read(self._most + 1)
        elif req.get_header("Transfer-Encoding"):
            raise errors.BadRequest(
                "the body comes in chunks, and the server does not tell where they end: send it "
                "with a Content-Length"
            )
        else:
            data = b""
        if len(data) > self._most:
            raise _too_large(self._most)
        return data


def _check_media_type(said: str) -> None:
    kind, parameters = falcon.parse_header(said)
    charset = parameters.get("charset", "utf-8")
    if kind.lower() != "application/json" or charset.lower() != "utf-8":
        raise falcon.HTTPUnsupportedMediaType(
            description=f"the body is said to be {said!a:.100}; send Content-Type: application/json"
        )


def _parsed(data: bytes) -> object:
    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_object,
            parse_constant=_no_number,
            parse_float=_number,
        )
    except ValueError as error:
        raise errors.BadRequest(f"the body is no JSON: {error}") from error


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has the same name twice")
    return found


def _number(text: str) -> float:
    return float(text) if math.isfinite(float(text)) else _no_number(text)


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number there")


class _Resource:
    """What is done in the name of who calls."""

    def __init__(self, service: TagService, trust: Trust, bodies: _Bodies) -> None:
        self._service = service
        self._trust = trust
        self._bodies = bodies

    def _asking(self, req: falcon.Request) -> Caller:
        try:
            return caller(req.env, self._trust)
        except errors.Unauthorized as error:
            LOG.info("%a is refused: %s", req.env.get("REMOTE_ADDR"), error)
            raise


class _Servers(_Resource):
    """Servers as a whole."""

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        asking = self._asking(req)
        body = self._bodies.read(req, schemas.new_server(asking.owner))
        asked = body["server"]
        server = asked.get("id", str(uuid.uuid4()))
        # Also where nobody knows whether it will come to be: then it shows there.
        resp.set_header("Location", urllib.parse.quote(f"{req.root_path}/servers/{server}/tags"))
        instance, there = self._service.create(asking, asked["name"], asked.get("tags", ()), server)
        resp.status = falcon.HTTP_202
        resp.data = _json({"server": {"id": instance.id, "name": instance.name, **_said(there)}})


class _Tags(_Resource):
    """All tags of a server."""

    def on_get(self, req: falcon.Request, resp: falcon.Response, server: str) -> None:
        resp.data = _json(_said(self._service.tags(self._asking(req), server)))

    on_head = on_get

    def on_put(self, req: falcon.Request, resp: falcon.Response, server: str) -> None:
        asking = self._asking(req)
        asked = self._bodies.read(req, schemas.tags(asking.owner))
        resp.data = _json(_said(self._service.replace(asking, server, asked["tags"])))

    def on_delete(self, req: falcon.Request, resp: falcon.Response, server: str) -> None:
        self._service.clear(self._asking(req), server)
        resp.status = falcon.HTTP_204


class _Tag(_Resource):
    """One tag of a server."""

    def on_get(self, req: falcon.Request, resp: falcon.Response, server: str, tag: str) -> None:
        status = self._service.status(self._asking(req), server, tag)
        resp.set_header("Tag-Status", status.value)
        resp.status = falcon.HTTP_204

    on_head = on_get

    def on_put(self, req: falcon.Request, resp: falcon.Response, server: str, tag: str) -> None:
        new = self._service.add(self._asking(req), server, tag)
        resp.status = falcon.HTTP_201 if new else falcon.HTTP_204
        if new:
            resp.set_header("Location", urllib.parse.quote(req.root_path + req.path))

    def on_delete(self, req: falcon.Request, resp: falcon.Response, server: str, tag: str) -> None:
        self._service.delete(self._asking(req), server, tag)
        resp.status = falcon.HTTP_204


class _Description:
    """What there is to ask for; anybody may know."""

    def __init__(self, trust: Trust) -> None:
        self._data = _json(openapi.description(trust))

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        resp.data = self._data

    on_head = on_get


def _said(there: Mapping[str, Status]) -> dict[str, Any]:
    return {"tags": list(there), "statuses": dict(there)}


def _json(said: Any) -> bytes:
    """In ASCII: nothing in it reads otherwise than it is written."""
    return json.dumps(said).encode("ascii")


def _tell_of_http(req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError) -> None:
    """What Falcon has found wrong, and _Gate and _Bodies."""
    nowhere = f"{req.path!a:.100} cannot be asked for like this; /openapi.json says what can"
    _answer(resp, error.status_code, error.description or nowhere)


def _tell(
    req: falcon.Request, resp: falcon.Response, error: errors.SteelyardError, _params: object
) -> None:
    """What has been raised on purpose, about what was asked for."""
    if error.status is None:
        _tell_nothing(req, resp, error, _params)
        return
    _answer(resp, error.status, str(error))
    if error.status == 401:
        resp.set_header("WWW-Authenticate", 'Keystone realm="tags"')


def _tell_of_services(
    req: falcon.Request, resp: falcon.Response, error: errors.ServiceError, _params: object
) -> None:
    """What has been raised on purpose, about what lies behind."""
    status, said = next(_BEHIND[kind] for kind in _BEHIND if isinstance(error, kind))
    LOG.warning("%s: %s: %a", _asked(req, resp), type(error).__name__, str(error))
    _answer(resp, status, said.format(resp.get_header(REQUEST_ID)))


def _tell_nothing(
    req: falcon.Request, resp: falcon.Response, error: Exception, _params: object
) -> None:
    """What nobody has foreseen."""
    LOG.error("%s: this should not have happened", _asked(req, resp), exc_info=error)
    _answer(resp, 500, _INTERNAL.format(resp.get_header(REQUEST_ID)))


def _asked(req: falcon.Request, resp: falcon.Response) -> str:
    """The request as the log has it: whatever is in its path, on one line and in ASCII."""
    return f"{resp.get_header(REQUEST_ID)} {req.method} {req.path!a:.300}"


def _answer(resp: falcon.Response, status: int, message: str) -> None:
    resp.status = falcon.code_to_http_status(status)
    resp.data = _json({schemas.FAULTS[status]: {"code": status, "message": message}})
