"""Answers of HTTP services to errors, with and without details, and their log lines."""

import abc
import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar

import falcon
from oslo_log import log as logging

from steelyard import errors
from steelyard.web.requests import REQUEST_ID, json_bytes

LOG = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class HttpFault:
    """An error as a client sees it. ``reason`` and ``details`` are for programs."""

    status: int
    message: str
    reason: str | None = None
    details: Mapping[str, str] = dataclasses.field(default_factory=dict)


class RefusedRequest(Exception):
    """A request that a service refuses with this error."""

    def __init__(self, fault: HttpFault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class ErrorAnswers(abc.ABC):
    """The answers of a service to errors.

    Clients see no details of internal errors and of the systems behind the service: these are in
    the log, under the id of the request. A subclass defines the form of the bodies.
    """

    service: ClassVar[str]
    """The name of the service in messages, such as "the tag service"."""

    realm: ClassVar[str]
    """The realm of the service in the header ``WWW-Authenticate``."""

    unreachable: ClassVar[HttpFault]
    """The answer until the service has reached its database for the first time."""

    outdated: ClassVar[HttpFault]
    """The answer while the tables are missing or outdated."""

    behind: ClassVar[Mapping[type[errors.ServiceError], HttpFault]]
    """The answers to errors of the systems behind the service, the most specific classes first.

    ``{}`` in a message stands for the id of the request. ServiceError itself must be included.
    """

    @abc.abstractmethod
    def body(self, fault: HttpFault, request_id: str) -> Mapping[str, Any]:
        """Return the body of an answer."""

    def reason(self, error: errors.SteelyardError) -> str | None:
        """Return the reason of an error about the request itself, for programs."""
        return None

    def at_start(self, error: errors.ServiceError) -> HttpFault:
        """Return the answer while this error keeps the service from starting."""
        return self.outdated if isinstance(error, errors.UpgradeNeeded) else self.unreachable

    def register(self, app: "falcon.App[Any, Any]") -> None:
        """Let the application answer all errors."""
        app.set_error_serializer(self._answer_http_error)
        app.add_error_handler(Exception, self._answer_internal_error)
        app.add_error_handler(RefusedRequest, self._answer_refused_request)
        app.add_error_handler(errors.SteelyardError, self._answer_request_error)
        app.add_error_handler(errors.ServiceError, self._answer_service_error)

    def answer(self, resp: falcon.Response, fault: HttpFault) -> None:
        """Answer with the error."""
        resp.status = falcon.code_to_http_status(fault.status)
        resp.data = json_bytes(self.body(fault, str(resp.get_header(REQUEST_ID))))

    def _answer_http_error(
        self, req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError
    ) -> None:
        """Answer with an error that Falcon or the middleware raised."""
        unsupported = f"unsupported path or method: {req.path!a:.100}; see /openapi.json"
        self.answer(resp, HttpFault(error.status_code, error.description or unsupported))

    def _answer_refused_request(
        self, _req: falcon.Request, resp: falcon.Response, error: RefusedRequest, _params: object
    ) -> None:
        self.answer(resp, error.fault)

    def _answer_request_error(
        self,
        req: falcon.Request,
        resp: falcon.Response,
        error: errors.SteelyardError,
        _params: object,
    ) -> None:
        """Answer with an error about the request itself."""
        if error.status is None:
            self._answer_internal_error(req, resp, error, _params)
            return
        details = _details(error)
        self.answer(resp, HttpFault(error.status, error.message, self.reason(error), details))
        if error.status == 401:
            LOG.info("Refused a request from %a: %s", req.env.get("REMOTE_ADDR"), error)
            resp.set_header("WWW-Authenticate", f'Keystone realm="{self.realm}"')

    def _answer_service_error(
        self,
        req: falcon.Request,
        resp: falcon.Response,
        error: errors.ServiceError,
        _params: object,
    ) -> None:
        """Log an error of a system behind the service, and answer without its details."""
        fault = next(self.behind[kind] for kind in self.behind if isinstance(error, kind))
        LOG.warning("%s: %s: %a", _request_line(req, resp), type(error).__name__, str(error))
        message = fault.message.format(resp.get_header(REQUEST_ID))
        self.answer(resp, dataclasses.replace(fault, message=message))

    def _answer_internal_error(
        self, req: falcon.Request, resp: falcon.Response, error: Exception, _params: object
    ) -> None:
        """Log an unexpected error, and answer without its details."""
        LOG.error("%s: internal error", _request_line(req, resp), exc_info=error)
        where = f"{resp.get_header(REQUEST_ID)} in the log of {self.service}"
        self.answer(resp, HttpFault(500, f"internal error; see {where}"))


def _details(error: errors.SteelyardError) -> dict[str, str]:
    if isinstance(error, errors.UnsupportedMicroversion):
        return {"max_version": error.newest, "min_version": error.oldest}
    return {}


def _request_line(req: falcon.Request, resp: falcon.Response) -> str:
    """Return the request for the log, on one line and in ASCII, whatever its path."""
    return f"{resp.get_header(REQUEST_ID)} {req.method} {req.path!a:.300}"
