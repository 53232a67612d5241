"""A client of the HTTP API of tags.

An invalid name is rejected before anything is sent. Error answers of the service, and answers that
it would not send, raise errors of steelyard.
"""

import re
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from keystoneauth1 import exceptions, noauth, session
from urllib3.exceptions import MaxRetryError

from steelyard import errors
from steelyard.clients import sessions
from steelyard.tags.http.faults import FaultReason
from steelyard.tags.names import ANY_TAGS, Owner, TagFilter, check_name, check_names
from steelyard.tags.states.values import Status
from steelyard.text import strict_json
from steelyard.web import faults

SERVICE_TYPE = "instance-tags"
"""The type of the service in the catalogue of the session, if it has one."""

_SERVICE = "the tag service"
# Ids that can be sent in headers.
_ID = re.compile(r"[!-+\--~]{1,255}")
# Seconds. The default request_timeout of the service is shorter, so that the service answers first.
_TIMEOUT = 110.0

_ERRORS = {
    400: errors.BadRequest,
    401: errors.Unauthorized,
    403: errors.Forbidden,
    404: errors.NotFound,
    409: errors.Conflict,
    413: errors.BadRequest,
    502: errors.BackendRefused,
}
# The errors of answers with a reason that does not ask to list the tags later.
_ERRORS_BY_REASON: Mapping[tuple[int, str], type[errors.SteelyardError]] = {
    (404, FaultReason.ADDITION_FAILED): errors.AdditionFailed,
    (503, FaultReason.BACKEND_UNREACHABLE): errors.BackendUnreachable,
    (503, FaultReason.UPGRADE_NEEDED): errors.UpgradeNeeded,
}
# Statuses after which the request may have had an effect, unless the reason says otherwise.
_UNKNOWN = frozenset({503, 504})
# Other servers often answer requests for unknown paths with these statuses, so they count as the
# service's only with a body in its form.
_OURS_ALONE = frozenset({404, 502})


class TagsClient:
    """A client of the tag service on behalf of a project and a user.

    ``session_or_endpoint`` is a keystoneauth1 session or adapter, whose token names the caller, or
    a URL. For a URL, the service must trust this machine as a proxy; ``project`` and ``user`` are
    required, and ``owner`` can be ``system`` if the service lets this machine act as the system.
    """

    def __init__(
        self,
        session_or_endpoint: Any,
        project: str | None = None,
        user: str | None = None,
        owner: str | None = None,
    ) -> None:
        self._headers = _headers(project, user, owner)
        if isinstance(session_or_endpoint, str):
            if project is None or user is None:
                raise errors.BadRequest(
                    f"missing caller for the tag service at a URL: expected a project and a user, "
                    f"got {project!r:.100} and {user!r:.100}"
                )
            session_or_endpoint = _session(_check_endpoint(session_or_endpoint))
        self._service = sessions.Service(
            _SERVICE, "api", session_or_endpoint, service_type=SERVICE_TYPE
        )

    def list(self, server: str) -> dict[str, Any]:
        """Return the tags and their statuses: ``{"tags": […], "statuses": {tag: status}}``."""
        return self._tags(self._send("GET", _path(server), 200))

    def exists(self, server: str, tag: str) -> Status | None:
        """Return the status of the tag, or None if the server does not have it."""
        try:
            return self.status(server, tag)
        except errors.AdditionFailed:
            return None
        except errors.NotFound:
            # If the server is missing, and not only the tag, this raises NotFound again.
            found = self.list(server)["statuses"].get(tag)
            return None if found is None else Status(found)

    def status(self, server: str, tag: str) -> Status:
        """Return the status of the tag; raise NotFound if the server does not have it.

        This is AdditionFailed if the backend could not add the tag within the last hour.
        """
        answer = self._send("GET", _path(server, tag), 204)
        status = answer.headers.get("Tag-Status")
        try:
            return Status(status)
        except ValueError:
            raise self._service.unexpected(f"invalid header Tag-Status {status!r:.100}") from None

    def add(self, server: str, tag: str) -> bool:
        """Add a tag; return whether it was missing before."""
        answer = self._send("PUT", _path(server, tag), 201, 204)
        return bool(answer.status_code == 201)

    def delete(self, server: str, tag: str) -> None:
        """Delete a tag; raise NotFound if it is missing, and Conflict if it is PENDADD."""
        self._send("DELETE", _path(server, tag), 204)

    def replace(self, server: str, tags: Iterable[str]) -> dict[str, Any]:
        """Replace the ACTIVE tags with these, and return the tags that result as ``list`` does.

        PENDADD tags stay.
        """
        return self._tags(self._send("PUT", _path(server), 200, body={"tags": check_names(tags)}))

    def clear(self, server: str) -> None:
        """Delete all ACTIVE tags; PENDADD ones stay."""
        self._send("DELETE", _path(server), 204)

    def create(self, name: str, tags: Iterable[str] = (), id: str | None = None) -> dict[str, Any]:  # noqa: A002  (as in the body)
        """Create a server with these tags, and return it as ``servers`` does.

        ``name`` is its name at the backend. By default, the service chooses the id.
        """
        given = {} if id is None else {"id": id}
        body = {"server": {"name": name, "tags": check_names(tags), **given}}
        found = self._service.content(self._send("POST", "/servers", 202, body=body))
        server = found.get("server") if isinstance(found, dict) else None
        if not isinstance(server, dict):
            raise self._service.unexpected(f"expected a server, got {found!r:.200}")
        return server

    def servers(
        self, wanted: TagFilter = ANY_TAGS, limit: int | None = None, after: str | None = None
    ) -> Iterator[dict[str, Any]]:
        """Yield the servers of the project that the filter accepts, sorted by id.

        Each has its id, name, project, user, tags and statuses. ``limit`` is the greatest number of
        servers, and ``after`` an id that they begin after. The client requests a page at a time.
        """
        left = limit
        while left is None or left > 0:
            query = {**wanted.texts(), "limit": left, "marker": after}
            found = self._service.content(self._send("GET", f"/servers{_query(query)}", 200))
            page = found.get("servers") if isinstance(found, dict) else None
            if not isinstance(page, list) or not all(_is_server(each) for each in page):
                raise self._service.unexpected(f"expected servers, got {found!r:.200}")
            yield from page
            if not page or "servers_links" not in found:
                return
            after = page[-1]["id"]
            left = None if left is None else left - len(page)

    def unregister(self, server: str) -> None:
        """Forget a server that the backend no longer has; raise Conflict if the backend has it."""
        self._send("DELETE", _server_path(server), 204)

    def _send(self, method: str, path: str, *good: int, body: Any = None) -> Any:
        """Send a request; return the answer if its status is in ``good``, else raise its error."""
        try:
            answer = self._service.ask(
                method,
                path,
                body,
                headers={"Accept": "application/json", **self._headers},
                redirect=False,
            )
        except errors.NoAccess as error:
            if method == "GET" or not _may_have_been_sent(error):
                raise
            raise errors.OutcomeUnknown(
                f"{_SERVICE} did not answer, and may have applied the request: {error}; list the "
                f"tags to see the result"
            ) from error
        if answer.status_code not in good:
            raise self._error(answer)
        return answer

    def _tags(self, answer: Any) -> dict[str, Any]:
        """Return the tags in an answer with their statuses."""
        found = self._service.content(answer)
        try:
            statuses = {str(tag): Status(found["statuses"][tag]).value for tag in found["tags"]}
        except (TypeError, LookupError, ValueError):
            raise self._service.unexpected(
                f"expected tags and statuses, got {found!r:.200}"
            ) from None
        return {"tags": list(statuses), "statuses": statuses}

    def _error(self, answer: Any) -> errors.SteelyardError:
        """Return the error for this answer, with the reason that it gives."""
        status, reason = answer.status_code, _reason(answer)
        message = reason or sessions.text(answer)[:200] or "no reason given"
        if 300 <= status < 400:
            where = str(answer.headers.get("Location", "nowhere"))
            return self._service.unexpected(
                f"status {status}, a redirect to {where!r:.200}, which is not followed"
            )
        kind = _ERRORS_BY_REASON.get((status, str(_fault(answer).get("reason"))))
        if kind is not None:
            return kind(message)
        if status in _UNKNOWN:
            return errors.OutcomeUnknown(f"{_SERVICE} answered {status}: {message}")
        if reason is None and (status in _OURS_ALONE or status not in _ERRORS):
            return self._service.unexpected(f"status {status}: {message}")
        if status not in _ERRORS:
            return errors.ServiceError(f"{_SERVICE} answered {status}: {message}")
        return _ERRORS[status](message)


def _headers(project: str | None, user: str | None, owner: str | None) -> dict[str, str]:
    """Return the headers that name the caller and the owner of the tags."""
    if owner is not None and owner not in set(Owner):
        raise errors.BadRequest(
            f"invalid owner {owner!r:.100}: expected {' or '.join(sorted(Owner))}"
        )
    given = {"project": project, "user": user}
    for what, value in given.items():
        if value is not None and not _ID.fullmatch(value):
            raise errors.BadRequest(
                f"invalid {what} id {value!r:.100}: expected 1 to 255 printable ASCII characters "
                f"without spaces and commas"
            )
    headers = {"X-Project-Id": project, "X-User-Id": user, "X-Tag-Owner": owner}
    return {name: str(value) for name, value in headers.items() if value is not None}


def _check_endpoint(endpoint: str) -> str:
    """Return the URL if it can be an endpoint; errors quote no password."""
    try:
        parts = urllib.parse.urlsplit(endpoint)
        secret = parts.username is not None
        good = bool(parts.scheme in ("http", "https") and parts.hostname and parts.port != 0)
    except ValueError:
        secret, good = "@" in endpoint, False
    if secret:
        raise errors.BadRequest(
            "invalid endpoint: it contains a user or a password, which would not be sent; remove "
            "them, or use a keystoneauth1 session that authenticates"
        )
    if not good or parts.query or parts.fragment or not endpoint.isprintable():
        raise errors.BadRequest(
            f"invalid endpoint {endpoint!r:.200}: expected one such as "
            f"https://tags.example.org:8780"
        )
    return endpoint


def _session(endpoint: str) -> Any:
    """Return a session without a token for one endpoint."""
    return session.Session(auth=noauth.NoAuth(endpoint=endpoint), timeout=_TIMEOUT)


def _path(server: str, tag: str | None = None) -> str:
    """Return the path of the server's tags, or of one tag; each name is one segment."""
    path = f"{_server_path(server)}/tags"
    if tag is None:
        return path
    failure, advice = f"cannot address tag {tag!r:.100}", "; list or replace all tags instead"
    return f"{path}/{_segment(check_name(tag), failure, advice)}"


def _server_path(server: str) -> str:
    return f"/servers/{_segment(server, f'invalid server id {server!r:.100}')}"


def _query(parameters: Mapping[str, Any]) -> str:
    """Return the query string of the parameters that are given."""
    given = {key: value for key, value in parameters.items() if value is not None}
    return f"?{urllib.parse.urlencode(given)}" if given else ""


def _is_server(found: object) -> bool:
    return isinstance(found, dict) and isinstance(found.get("id"), str)


def _segment(text: str, failure: str, advice: str = "") -> str:
    """Return the percent-encoded text; raise BadRequest if it cannot be one segment.

    Encoding does not help for ``.``, ``..`` and slashes: servers may decode the path before they
    split it.
    """
    if not isinstance(text, str) or text in ("", ".", "..") or "/" in text:
        raise errors.BadRequest(f"{failure}: it cannot be one segment of a URL{advice}")
    try:
        return urllib.parse.quote(text, safe="", encoding="utf-8", errors="strict")
    except UnicodeEncodeError:
        raise errors.BadRequest(f"{failure}: it cannot be encoded in UTF-8{advice}") from None


def _may_have_been_sent(failure: errors.NoAccess) -> bool:
    """Return whether the connection was established before the failure."""
    error = failure.__cause__
    if not isinstance(error, exceptions.ConnectionError) or isinstance(error, exceptions.SSLError):
        return False
    # urllib3 raises MaxRetryError if it could not connect.
    reasons = getattr(error.__context__, "args", ())
    return not any(isinstance(reason, MaxRetryError) for reason in reasons)


def _reason(answer: Any) -> str | None:
    """Return the message of an error in OpenStack's form, or None if it has another form."""
    message = _fault(answer).get("message")
    return None if message is None else " ".join(str(message).split()) or "no reason given"


def _fault(answer: Any) -> Mapping[str, Any]:
    try:
        return faults.fields(strict_json.loads(answer.content))
    except ValueError:
        return {}
