"""The tags of servers, asked for over HTTP.

A name that cannot be a tag's is refused before anything is sent. What the service answers with an
error becomes ours; so does an answer that is not the service's.
"""

import re
import urllib.parse
from collections.abc import Iterable
from typing import Any

from steelyard import errors, extras, sessions
from steelyard.tags.names import Owner, check_name
from steelyard.tags.states import Status

SERVICE_TYPE = "instance-tags"
"""What the service is called in the catalogue, where the session has one."""

_SERVICE = "the service of tags"
_EXTRA = "api"
# What goes into a header.
_ID = re.compile(r"[!-+\--~]{1,255}")
# A backend may take half a minute to say that it does not answer.
_TIMEOUT = 60.0

_ERRORS = {
    400: errors.BadRequest,
    401: errors.Unauthorized,
    404: errors.NotFound,
    409: errors.Conflict,
    413: errors.BadRequest,
    502: errors.BackendRefused,
}
# Whoever answers so: what was asked may have been begun.
_UNKNOWN = frozenset({503, 504})
# Many a server answers so to what it has never heard of.
_OURS_ALONE = frozenset({404, 502})


class TagsClient:
    """Asks the service of tags on behalf of a project and a user.

    ``session_or_endpoint`` is a keystoneauth1 session whose token says who they are, an adapter, or
    the URL of a service that trusts this address to say so itself: then ``project`` and ``user``
    are needed, and ``owner`` can be ``system`` where the service lets this address ask about its
    own tags.
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
                    f"a service at an address has to be told who asks: name the project and the "
                    f"user (given: {project!r:.100} and {user!r:.100})"
                )
            session_or_endpoint = _session(_check_endpoint(session_or_endpoint))
        self._service = sessions.Service(
            _SERVICE, _EXTRA, session_or_endpoint, service_type=SERVICE_TYPE
        )

    def list(self, server: str) -> dict[str, Any]:
        """The tags, and the status of each: ``{"tags": […], "statuses": {tag: status}}``."""
        return self._tags(self._send("GET", _path(server), 200))

    def exists(self, server: str, tag: str) -> Status | None:
        """What is known of the tag; None if the server has no such tag."""
        try:
            answer = self._send("GET", _path(server, tag), 204)
        except errors.NotFound:
            # Or there is no such server, and this says so.
            found = self.list(server)["statuses"].get(tag)
            return None if found is None else Status(found)
        try:
            return Status(answer.headers.get("Tag-Status"))
        except ValueError:
            raise self._service.stranger("does not say the status of the tag") from None

    def add(self, server: str, tag: str) -> bool:
        """Adds a tag; False if it is there already."""
        answer = self._send("PUT", _path(server, tag), 201, 204)
        return bool(answer.status_code == 201)

    def delete(self, server: str, tag: str) -> None:
        """Deletes a tag, which must be ACTIVE."""
        self._send("DELETE", _path(server, tag), 204)

    def replace(self, server: str, tags: Iterable[str]) -> dict[str, Any]:
        """Has the tags be these, beside those that are still being added; what they are now."""
        return self._tags(self._send("PUT", _path(server), 200, body={"tags": _names(tags)}))

    def clear(self, server: str) -> None:
        """Deletes all tags, beside those that are still being added."""
        self._send("DELETE", _path(server), 204)

    def create(self, name: str, tags: Iterable[str] = (), id: str | None = None) -> dict[str, Any]:  # noqa: A002  (as in the body)
        """Has an instance created that the backend calls so; what the service knows of it."""
        given = {} if id is None else {"id": id}
        body = {"server": {"name": name, "tags": _names(tags), **given}}
        found = self._service.content(self._send("POST", "/servers", 202, body=body))
        server = found.get("server") if isinstance(found, dict) else None
        if not isinstance(server, dict):
            raise self._service.stranger(f"does not say which server it is, but {found!r:.200}")
        return server

    def _send(self, method: str, path: str, *good: int, body: Any = None) -> Any:
        """The answer, if it has one of the statuses that are expected."""
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
                f"{_SERVICE} has been asked and has not answered: {error}; list the tags to see "
                f"what it has done"
            ) from error
        if answer.status_code not in good:
            raise self._error(answer)
        return answer

    def _tags(self, answer: Any) -> dict[str, Any]:
        """The tags with their statuses, as they are answered."""
        found = self._service.content(answer)
        try:
            statuses = {str(tag): Status(found["statuses"][tag]).value for tag in found["tags"]}
        except (TypeError, LookupError, ValueError):
            raise self._service.stranger(f"does not list tags, but {found!r:.200}") from None
        return {"tags": list(statuses), "statuses": statuses}

    def _error(self, answer: Any) -> errors.SteelyardError:
        """The error that stands for this answer, with the reason that it gives."""
        status, reason = answer.status_code, _reason(answer)
        said = reason or sessions.text(answer)[:200] or "no reason given"
        if 300 <= status < 400:
            where = str(answer.headers.get("Location", "nowhere"))
            return self._service.stranger(
                f"answers {status} and sends us to {where!r:.200}, where we do not go"
            )
        if status in _UNKNOWN:
            return errors.OutcomeUnknown(f"{_SERVICE} answered {status}: {said}")
        if reason is None and (status in _OURS_ALONE or status not in _ERRORS):
            return self._service.stranger(f"answers {status}: {said}")
        if status not in _ERRORS:
            return errors.ServiceError(f"{_SERVICE} answered {status}: {said}")
        return _ERRORS[status](said)


def _headers(project: str | None, user: str | None, owner: str | None) -> dict[str, str]:
    """Who asks, and whose tags are meant."""
    if owner is not None and owner not in set(Owner):
        raise errors.BadRequest(
            f"{owner!r:.100} owns no tags; the owner is {' or '.join(sorted(Owner))}"
        )
    given = {"project": project, "user": user}
    for what, value in given.items():
        if value is not None and not _ID.fullmatch(value):
            raise errors.BadRequest(
                f"{value!r:.100} is no id of a {what}; it is 1 to 255 printable characters of "
                f"ASCII, without spaces and commas"
            )
    headers = {"X-Project-Id": project, "X-User-Id": user, "X-Tag-Owner": owner}
    return {name: str(value) for name, value in headers.items() if value is not None}


def _check_endpoint(endpoint: str) -> str:
    """The URL, if it can be one of the service; a password in it is not repeated."""
    try:
        parts = urllib.parse.urlsplit(endpoint)
        secret = parts.username is not None
        good = bool(parts.scheme in ("http", "https") and parts.hostname and parts.port != 0)
    except ValueError:
        secret, good = "@" in endpoint, False
    if secret:
        raise errors.BadRequest(
            "the endpoint has a user or a password in it, which is not sent: write it without, or "
            "give a session of keystoneauth1 that authenticates"
        )
    if not good or parts.query or parts.fragment or not endpoint.isprintable():
        raise errors.BadRequest(
            f"{endpoint!r:.200} is no endpoint; write one such as https://tags.example.org:8780"
        )
    return endpoint


def _session(endpoint: str) -> Any:
    """A session without a token, to the one endpoint."""
    with extras.required(_EXTRA, f"a request to {_SERVICE}"):
        from keystoneauth1 import noauth, session  # noqa: PLC0415  (an extra)
    return session.Session(auth=noauth.NoAuth(endpoint=endpoint), timeout=_TIMEOUT)


def _path(server: str, tag: str | None = None) -> str:
    """The path of the server's tags, or of one of them: each name is one segment."""
    segments = ["servers", _segment(server, f"{server!r:.100} is no id of a server"), "tags"]
    if tag is not None:
        why = f"the tag {tag!r:.100} can be listed and be set with all others, not by itself"
        segments.append(_segment(check_name(tag), why))
    return "".join(f"/{segment}" for segment in segments)


def _segment(text: str, otherwise: str) -> str:
    """The text percent-encoded, if it stays one segment.

    Steps of a path are steps however they are written, and many a server decodes a slash first.
    """
    if not isinstance(text, str) or text in ("", ".", "..") or "/" in text:
        raise errors.BadRequest(f"{otherwise}: no address can have it in it")
    try:
        return urllib.parse.quote(text, safe="", encoding="utf-8", errors="strict")
    except UnicodeEncodeError:
        raise errors.BadRequest(f"{otherwise}: it cannot be written in UTF-8") from None


def _names(tags: Iterable[str]) -> list[str]:
    if isinstance(tags, str):
        raise errors.BadRequest(f"{tags!r:.100} is one tag; give a list of tags")
    return [check_name(tag) for tag in tags]


def _may_have_been_sent(failure: errors.NoAccess) -> bool:
    """Whether the connection was there before it failed."""
    from keystoneauth1 import exceptions  # noqa: PLC0415  (an extra)
    from urllib3.exceptions import MaxRetryError  # noqa: PLC0415  (as above)

    error = failure.__cause__
    if not isinstance(error, exceptions.ConnectionError) or isinstance(error, exceptions.SSLError):
        return False
    # It says how often it has tried to connect: that was all.
    reasons = getattr(error.__context__, "args", ())
    return not any(isinstance(reason, MaxRetryError) for reason in reasons)


def _reason(answer: Any) -> str | None:
    """The message of an error in OpenStack's form; None if it is not in that form."""
    try:
        (fault,) = answer.json().values()
        said = fault["message"]
    except (ValueError, AttributeError, LookupError, TypeError):
        return None
    return " ".join(str(said).split()) or "no reason given"
