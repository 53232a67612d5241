"""A client of Ganeti's remote API over HTTPS.

Queries change nothing, so they are retried if that may help. A job is submitted only once: if
Ganeti may or may not have received it, the client raises OutcomeUnknown.
"""

import base64
import concurrent.futures
import functools
import html
import json
import math
import re
import ssl
import threading
import time
import urllib.parse
from collections.abc import Callable, Sequence
from typing import Any

from steelyard import errors, extras
from steelyard.tags import deadlines
from steelyard.text import strict_json

_GROUP = "steelyard_tags"
# Seconds before each retry of a query.
_PAUSES = (0.5, 1.5)
# Seconds beyond the timeout after which an incomplete answer is abandoned.
_GRACE = 1.0
# Statuses after which queries are retried. A 504 comes only after half a minute, so it is not.
_TRANSIENT = frozenset({502, 503})
# Ganeti's words for a closed job queue. Other errors with the same status leave the outcome open.
_TAKES_NO_JOBS = re.compile(r"queue (is )?(drained|full)", re.IGNORECASE)
# The size of the pool. With more threads at once, urllib3 warns of discarded connections.
_CONNECTIONS = 100
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


class Rapi:
    """The remote API of one cluster. It opens no connection before the first request."""

    def __init__(self, url: str, user: str, password: str, pool: Any) -> None:
        self._url, self.path = _parsed(url)
        self._user = user
        login = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
        # A reused connection may break while a job is submitted: the outcome would be unknown.
        self._headers = {"Authorization": f"Basic {login}", "Connection": "close"}
        self._pool = pool
        self._failures = _urllib3().exceptions.HTTPError

    def cluster_name(self) -> str:
        """Return the name of the cluster."""
        found = self._ask("GET", "/2/info", None)
        name = found.get("name") if isinstance(found, dict) else None
        if not isinstance(name, str) or not name:
            raise self._unexpected("the cluster query", found)
        return name

    def rows(self, resource: str, fields: Sequence[str], qfilter: Any = None) -> list[list[Any]]:
        """Return the values of the fields for each item that matches the filter, by default all."""
        found = self._ask("PUT", f"/2/query/{resource}", {"fields": fields, "qfilter": qfilter})
        try:
            rows = [[value for _, value in row] for row in found["data"]]
            complete = all(len(row) == len(fields) for row in rows)
        except (LookupError, TypeError, ValueError):
            complete = False
        if not complete:
            raise self._unexpected(f"the {resource} query", found)
        return rows

    def submit(self, method: str, target: str, body: Any = None) -> int:
        """Submit a job, and return its number.

        Raises OutcomeUnknown if Ganeti may have received the request but gave no valid answer.
        """
        try:
            answer = self._send(method, target, body)
        except self._failures as error:
            if _never_sent(error):
                raise self._unreachable(error) from error
            raise errors.OutcomeUnknown(
                f"Ganeti at {self._url} did not answer, and may still run the job: {error}"
            ) from error
        if answer.status != 200:
            raise self._refusal(answer, submitted=True)
        number = _content(answer)
        if not isinstance(number, int):
            raise errors.OutcomeUnknown(
                f"invalid job number {number!r:.200} from Ganeti at {self._url}: expected a whole "
                f"number; Ganeti may still run the job"
            )
        return number

    def _ask(self, method: str, target: str, body: Any) -> Any:
        """Send a query, with a few retries of transient failures, and return the answer."""
        pauses = list(_PAUSES)
        while True:
            try:
                answer = self._send(method, target, body)
            except self._failures as error:
                if _is_slow(error) or _is_untrusted(error) or not pauses:
                    raise self._unreachable(error) from error
            else:
                if answer.status == 200:
                    return _content(answer)
                if answer.status not in _TRANSIENT or not pauses:
                    raise self._refusal(answer, submitted=False)
            time.sleep(max(0.0, min(pauses.pop(0), deadlines.left())))

    def _send(self, method: str, target: str, body: Any) -> Any:
        """Send a request, and return the answer before the deadline of the caller's request."""
        left = deadlines.left()
        if left <= 0:
            raise errors.BackendUnreachable(
                f"Ganeti at {self._url} is too slow: the request_timeout in [{_GROUP}] ended "
                f"before the next query"
            )
        timeout = self._pool.connection_pool_kw["timeout"].clone()
        timeout.total = None if math.isinf(left) else left
        headers = self._headers
        content = None
        if body is not None:
            headers = {**headers, "Content-Type": "application/json"}
            content = json.dumps(body).encode("ascii")
        request = functools.partial(
            self._pool.request,
            method,
            f"{self._url}{target}",
            body=content,
            headers=headers,
            timeout=timeout,
            retries=False,
            redirect=False,
        )
        return request() if timeout.total is None else self._within(left, request)

    def _within(self, seconds: float, request: Callable[[], Any]) -> Any:
        """Return the answer, or raise ReadTimeoutError if it is not complete in time.

        urllib3's timeouts cover neither name resolution nor an answer that comes byte by byte. So
        the request has a thread of its own, which is left running after a timeout.
        """
        future: concurrent.futures.Future[Any] = concurrent.futures.Future()

        def ask() -> None:
            try:
                future.set_result(request())
            except Exception as error:  # noqa: BLE001  (the caller raises it)
                future.set_exception(error)

        threading.Thread(target=ask, name="rapi", daemon=True).start()
        try:
            # urllib3 times out first, because only it knows whether anything was sent.
            return future.result(seconds + _GRACE)
        except concurrent.futures.TimeoutError:
            raise _urllib3().exceptions.ReadTimeoutError(
                self._pool, self._url, f"no complete answer within {seconds:.0f} seconds"
            ) from None

    def _refusal(self, answer: Any, *, submitted: bool) -> errors.ServiceError:
        """Return the error for an answer with another status than 200."""
        reply = f"{answer.status}: {_reason(answer):.300}"
        if answer.status == 401:
            return errors.BackendRefused(
                f"Ganeti at {self._url} rejected user {self._user!r} or the password: set "
                f"ganeti_user and ganeti_password in [{_GROUP}] as in Ganeti's rapi/users"
            )
        if answer.status == 403:
            return errors.BackendRefused(
                f"Ganeti at {self._url} does not let user {self._user!r} submit jobs: add the word "
                f"write to the user's line in Ganeti's rapi/users"
            )
        if _TAKES_NO_JOBS.search(reply):
            return errors.BackendRefused(
                f"Ganeti at {self._url} accepts no jobs: {reply}; run 'gnt-cluster queue info', "
                f"and 'gnt-cluster queue undrain' if the queue is drained"
            )
        if answer.status >= 500 and submitted:
            return errors.OutcomeUnknown(
                f"Ganeti at {self._url} failed, and may still run the job: {reply}"
            )
        kind = errors.BackendUnreachable if answer.status >= 500 else errors.BackendRefused
        return kind(f"Ganeti at {self._url} refused the request: {reply}")

    def _unreachable(self, error: Exception) -> errors.BackendRefused:
        if _is_untrusted(error):
            return errors.BackendRefused(
                f"untrusted certificate of Ganeti at {self._url}: {error}; correct ganeti_ca or "
                f"ganeti_fingerprint in [{_GROUP}]"
            )
        return errors.BackendUnreachable(
            f"cannot reach Ganeti at {self._url}: {error}; check ganeti_url in [{_GROUP}], and "
            f"that ganeti-rapi is running there"
        )

    def _unexpected(self, query: str, answer: object) -> errors.BackendRefused:
        return errors.BackendRefused(
            f"invalid answer from {self._url} to {query}: {answer!r:.200}; set ganeti_url in "
            f"[{_GROUP}] to the URL of Ganeti's remote API"
        )


def _parsed(url: str) -> tuple[str, str]:
    """Return the URL without a final slash, and its path; errors quote no password."""
    try:
        parts = urllib.parse.urlsplit(url)
        good = bool(parts.scheme == "https" and parts.hostname and parts.port != 0)
    except ValueError:
        good = False
    if "@" in url:
        raise errors.BadRequest(
            f"invalid ganeti_url in [{_GROUP}]: it contains a user or a password; set ganeti_user "
            f"and ganeti_password instead"
        )
    if not good or parts.query or parts.fragment or not (url.isascii() and url.isprintable()):
        raise errors.BadRequest(
            f"invalid ganeti_url {url!r:.200} in [{_GROUP}]: expected one such as "
            f"https://ganeti.example.org:5080"
        )
    return url.rstrip("/"), parts.path.rstrip("/")


def connections(
    ca: str | None, fingerprint: str | None, connect_timeout: float, timeout: float
) -> Any:
    """Return a pool of connections to servers whose certificates are trusted.

    A certificate is trusted if its SHA-256 is ``fingerprint``. Without one, it must be signed by an
    authority in the file ``ca``, by default by one that the system trusts. Times are in seconds.
    """
    urllib3 = _urllib3()
    common: dict[str, Any] = {
        "timeout": urllib3.Timeout(connect=connect_timeout, read=timeout),
        "maxsize": _CONNECTIONS,
    }
    if fingerprint is None:
        return urllib3.PoolManager(cert_reqs="CERT_REQUIRED", ssl_context=_trusting(ca), **common)
    digits = fingerprint.replace(":", "").lower()
    if ca is not None or not _FINGERPRINT.fullmatch(digits):
        raise errors.BadRequest(
            f"invalid ganeti_fingerprint {fingerprint!r:.200} in [{_GROUP}]: expected the SHA-256 "
            f"of the certificate, as 64 hexadecimal digits, without ganeti_ca"
        )
    context = urllib3.util.ssl_.create_urllib3_context(cert_reqs=ssl.CERT_NONE)
    return urllib3.PoolManager(
        cert_reqs="CERT_NONE", assert_fingerprint=digits, ssl_context=context, **common
    )


def _trusting(ca: str | None) -> ssl.SSLContext:
    """Return a context that trusts the authorities; raise BadRequest if the file is invalid.

    Ganeti closes the connection after each request. Without a context, each connection would read
    all certificates of the system.
    """
    context: ssl.SSLContext = _urllib3().util.ssl_.create_urllib3_context(
        cert_reqs=ssl.CERT_REQUIRED
    )
    try:
        if ca is None:
            context.load_default_certs()
        else:
            context.load_verify_locations(ca)
    except OSError as error:  # SSLError is a subclass
        raise errors.BadRequest(
            f"invalid ganeti_ca {ca!r:.200} in [{_GROUP}]: expected a readable file of PEM "
            f"certificates: {error}"
        ) from error
    return context


def _urllib3() -> Any:
    with extras.required("ganeti", "the backend 'ganeti'"):
        import urllib3  # noqa: PLC0415  (an extra)
    return urllib3


def _never_sent(error: Exception) -> bool:
    """Return whether the request failed before any of it was sent."""
    exceptions = _urllib3().exceptions
    connecting = (exceptions.NewConnectionError, exceptions.ConnectTimeoutError)
    return isinstance(error, connecting) or _is_untrusted(error)


def _is_slow(error: Exception) -> bool:
    return isinstance(error, _urllib3().exceptions.ReadTimeoutError)


def _is_untrusted(error: Exception) -> bool:
    """Return whether the certificate is invalid; a broken connection is an SSLError, too."""
    if not isinstance(error, _urllib3().exceptions.SSLError):
        return False
    (cause,) = error.args
    return isinstance(cause, ssl.SSLCertVerificationError) or not isinstance(cause, ssl.SSLError)


def _content(answer: Any) -> Any:
    """Return the value of an answer in JSON, or the bytes of any other answer."""
    try:
        return strict_json.loads(answer.data)
    except (ValueError, RecursionError):
        return answer.data


def _reason(answer: Any) -> str:
    """Return Ganeti's message on one line, or the unchanged answer of another server."""
    content = _content(answer)
    if isinstance(content, dict):
        return " ".join(html.unescape(str(content.get("message"))).split())
    return repr(content)
