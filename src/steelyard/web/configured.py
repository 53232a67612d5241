"""WSGI applications that read their configuration at the first request."""

import threading
from collections.abc import Callable, Iterable
from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

import falcon
from oslo_config import cfg
from oslo_log import log as logging

from steelyard import errors
from steelyard.text import logs
from steelyard.web.error_answers import ErrorAnswers, HttpFault
from steelyard.web.requests import JSON, REQUEST_ID, json_bytes, request_id

LOG = logging.getLogger(__name__)


class ConfiguredApplication:
    """An application that is built at the first request, because servers fork before that.

    If the configuration is wrong, it answers every request with an error. While the database is
    unreachable or needs an upgrade, each request tries again to build it.
    """

    def __init__(
        self, build: Callable[[cfg.ConfigOpts], WSGIApplication], answers: ErrorAnswers
    ) -> None:
        self._build = build
        self._answers = answers
        self._building = threading.Lock()
        self._built: WSGIApplication | None = None

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        return (self._built or self._application())(environ, start_response)

    def _application(self) -> WSGIApplication:
        with self._building:
            if self._built is None:
                try:
                    self._built = self._configured()
                except errors.ServiceError as error:  # the next request tries again
                    LOG.warning("Cannot start %s yet: %s", self._answers.service, error)
                    return _Refusing(self._answers, self._answers.at_start(error))
            return self._built

    def _configured(self) -> WSGIApplication:
        """Return the configured application; raise ServiceError if the database cannot be used."""
        service = self._answers.service
        try:
            return self._build(_configuration())
        except errors.ServiceError:
            raise
        except (errors.SteelyardError, cfg.Error) as error:
            LOG.error(
                "Cannot start %s; correct its configuration and restart it: %s", service, error
            )
            return _Refusing(
                self._answers, HttpFault(500, f"{service} is misconfigured; see its log")
            )


class _Refusing:
    """An application that answers every request with the same error."""

    def __init__(self, answers: ErrorAnswers, fault: HttpFault) -> None:
        self._answers = answers
        self._fault = fault

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        identity = request_id()
        body = json_bytes(self._answers.body(self._fault, identity))
        headers = {
            "Content-Type": JSON,
            "Content-Length": str(len(body)),
            REQUEST_ID: identity,
        }
        start_response(falcon.code_to_http_status(self._fault.status), list(headers.items()))
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [body]


def _configuration() -> cfg.ConfigOpts:
    """Return the global configuration; read it unless the embedding program has done so."""
    conf = cfg.CONF
    if "config_file" not in conf:
        logging.register_options(conf)
        conf([], project="steelyard")
        logging.setup(conf, "steelyard")
        for handler in logging.getLogger(None).logger.handlers:
            handler.setFormatter(logs.EscapingFormatter(handler.formatter))
    return conf
