"""Ganeti's remote API: asked over HTTPS, with what its answers and its silence mean.

A question changes nothing, so it is asked again where that may help. A job is submitted once: where
nobody knows whether Ganeti has taken it, OutcomeUnknown says so.
"""

import base64
import html
import json
import re
import ssl
import time
import urllib.parse
from collections.abc import Sequence
from typing import Any

from steelyard import errors, extras

_GROUP = "steelyard_tags"
# Seconds before a question is asked again.
_PAUSES = (0.5, 1.5)
# Whoever answers so may answer otherwise soon. 504 comes after half a minute: that was long enough.
_PASSING = frozenset({502, 503})
# The words in which Ganeti says that it takes no jobs, among failures that leave everything open.
_TAKES_NO_JOBS = re.compile(r"queue (is )?(drained|full)", re.IGNORECASE)
# Threads that ask at once; for more than that, urllib3 warns of connections that it throws away.
_CONNECTIONS = 100
_FINGERPRINT = re.compile(r"[0-9a-f]{64}")


class Rapi:
    """A cluster's remote API. Nothing is opened before the first question."""

    def __init__(self, url: str, user: str, password: str, pool: Any) -> None:
        self._url, self.path = _parsed(url)
        self._user = user
        login = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
        # A connection that is kept may break just when a job is submitted: nobody would know.
        self._headers = {"Authorization": f"Basic {login}", "Connection": "close"}
        self._pool = pool
        self._failures = _urllib3().exceptions.HTTPError

    def cluster_name(self) -> str:
        """Return the name of the cluster."""
        found = self._ask("GET", "/2/info", None)
        name = found.get("name") if isinstance(found, dict) else None
        if not isinstance(name, str) or not name:
            raise self._stranger(f"to a question about the cluster with {found!r:.200}")
        return name

    def rows(self, resource: str, fields: Sequence[str], qfilter: Any = None) -> list[list[Any]]:
        """The values of the fields, of each item of which the filter is true."""
        found = self._ask("PUT", f"/2/query/{resource}", {"fields": fields, "qfilter": qfilter})
        try:
            rows = [[value for _, value in row] for row in found["data"]]
            complete = all(len(row) == len(fields) for row in rows)
        except (LookupError, TypeError, ValueError):
            complete = False
        if not complete:
            raise self._stranger(f"to a query with {found!r:.200}")
        return rows

    def submit(self, method: str, target: str, body: Any = None) -> int:
        """The number of the job that Ganeti makes of this."""
        try:
            answer = self._send(method, target, body)
        except self._failures as error:
            if _never_sent(error):
                raise self._unreachable(error) from error
            raise errors.OutcomeUnknown(
                f"Ganeti at {self._url} has not answered, and may do yet what it was asked: {error}"
            ) from error
        if answer.status != 200:
            raise self._refusal(answer, submitted=True)
        number = _content(answer)
        if not isinstance(number, int):
            raise errors.OutcomeUnknown(
                f"Ganeti at {self._url} should have answered with the number of a job, and has "
                f"with {number!r:.200}"
            )
        return number

    def _ask(self, method: str, target: str, body: Any) -> Any:
        """What is answered; a question that fails in passing is asked again, a few times."""
        pauses = list(_PAUSES)
        while True:
            try:
                answer = self._send(method, target, body)
            except self._failures as error:
                if _is_slow(error) or _distrusts(error) or not pauses:
                    raise self._unreachable(error) from error
            else:
                if answer.status == 200:
                    return _content(answer)
                if answer.status not in _PASSING or not pauses:
                    raise self._refusal(answer, submitted=False)
            time.sleep(pauses.pop(0))

    def _send(self, method: str, target: str, body: Any) -> Any:
        headers = self._headers
        content = None
        if body is not None:
            headers = {**headers, "Content-Type": "application/json"}
            content = json.dumps(body).encode("ascii")
        return self._pool.request(
            method,
            f"{self._url}{target}",
            body=content,
            headers=headers,
            retries=False,
            redirect=False,
        )

    def _refusal(self, answer: Any, *, submitted: bool) -> errors.ServiceError:
        """What an answer means that is none to what was asked."""
        said = f"{answer.status}: {_reason(answer):.300}"
        if answer.status == 401:
            return errors.BackendRefused(
                f"Ganeti at {self._url} does not let us in as {self._user!r}: correct ganeti_user "
                f"and ganeti_password in [{_GROUP}], as they are in Ganeti's file of rapi/users"
            )
        if answer.status == 403:
            return errors.BackendRefused(
                f"Ganeti at {self._url} lets {self._user!r} read only: add the word write to its "
                f"line in Ganeti's file of rapi/users"
            )
        if _TAKES_NO_JOBS.search(said):
            return errors.BackendRefused(
                f"Ganeti at {self._url} takes no jobs at present ({said}): gnt-cluster queue info "
                f"says whether it is drained, and gnt-cluster queue undrain ends that"
            )
        if answer.status >= 500 and submitted:
            return errors.OutcomeUnknown(
                f"Ganeti at {self._url} has failed, and may do yet what it was asked: it answers "
                f"{said}"
            )
        return errors.BackendRefused(f"Ganeti at {self._url} refuses, with {said}")

    def _unreachable(self, error: Exception) -> errors.BackendRefused:
        if _distrusts(error):
            return errors.BackendRefused(
                f"the certificate of Ganeti at {self._url} cannot be trusted: {error}; set "
                f"ganeti_ca or ganeti_fingerprint in [{_GROUP}] to what is right"
            )
        return errors.BackendRefused(
            f"Ganeti at {self._url} does not answer: {error}; is ganeti-rapi running there, and "
            f"ganeti_url in [{_GROUP}] right?"
        )

    def _stranger(self, what: str) -> errors.BackendRefused:
        return errors.BackendRefused(
            f"what is at {self._url} answers {what}; is this Ganeti's remote API?"
        )


def _parsed(url: str) -> tuple[str, str]:
    """The URL without a slash at its end, and the path in it; what is secret is not repeated."""
    try:
        parts = urllib.parse.urlsplit(url)
        good = bool(parts.scheme == "https" and parts.hostname and parts.port != 0)
    except ValueError:
        good = False
    if "@" in url:
        raise errors.BadRequest(
            f"ganeti_url in [{_GROUP}] has a user or a password in it: write them as ganeti_user "
            f"and ganeti_password"
        )
    if not good or parts.query or parts.fragment or not (url.isascii() and url.isprintable()):
        raise errors.BadRequest(
            f"{url!r:.200} is no URL of Ganeti's remote API; write ganeti_url in [{_GROUP}] such "
            f"as https://ganeti.example.org:5080"
        )
    return url.rstrip("/"), parts.path.rstrip("/")


def connections(
    ca: str | None, fingerprint: str | None, connect_timeout: float, timeout: float
) -> Any:
    """Connections to whoever has a certificate that is trusted, or the one that is named."""
    urllib3 = _urllib3()
    all_the_same: dict[str, Any] = {
        "timeout": urllib3.Timeout(connect=connect_timeout, read=timeout),
        "maxsize": _CONNECTIONS,
    }
    if fingerprint is None:
        _check_readable(ca)
        return urllib3.PoolManager(cert_reqs="CERT_REQUIRED", ca_certs=ca, **all_the_same)
    digits = fingerprint.replace(":", "").lower()
    if ca is not None or not _FINGERPRINT.fullmatch(digits):
        raise errors.BadRequest(
            f"ganeti_fingerprint in [{_GROUP}] is {fingerprint!r:.200}; it is the SHA-256 of the "
            f"certificate, as 64 hexadecimal digits, and stands without ganeti_ca"
        )
    return urllib3.PoolManager(cert_reqs="CERT_NONE", assert_fingerprint=digits, **all_the_same)


def _check_readable(ca: str | None) -> None:
    """Raises BadRequest now for what would else fail at the first question."""
    try:
        ssl.create_default_context(cafile=ca)
    except OSError as error:  # an SSLError is one, too
        raise errors.BadRequest(
            f"ganeti_ca in [{_GROUP}] is {ca!r:.200}, which cannot be read as certificates in PEM: "
            f"{error}"
        ) from error


def _urllib3() -> Any:
    with extras.required("ganeti", "the backend 'ganeti'"):
        import urllib3  # noqa: PLC0415  (an extra)
    return urllib3


def _never_sent(error: Exception) -> bool:
    """Whether it has failed before anything of the request was sent."""
    exceptions = _urllib3().exceptions
    connecting = (exceptions.NewConnectionError, exceptions.ConnectTimeoutError)
    return isinstance(error, connecting) or _distrusts(error)


def _is_slow(error: Exception) -> bool:
    return isinstance(error, _urllib3().exceptions.ReadTimeoutError)


def _distrusts(error: Exception) -> bool:
    """Whether it is about the certificate; a connection that breaks is an SSLError, too."""
    if not isinstance(error, _urllib3().exceptions.SSLError):
        return False
    (cause,) = error.args
    return isinstance(cause, ssl.SSLCertVerificationError) or not isinstance(cause, ssl.SSLError)


def _content(answer: Any) -> Any:
    """What is answered as JSON; else as it is."""
    try:
        return json.loads(answer.data)
    except ValueError:
        return answer.data


def _reason(answer: Any) -> str:
    """What Ganeti says, on one line; what somebody else says, as it is."""
    content = _content(answer)
    if isinstance(content, dict):
        return " ".join(html.unescape(str(content.get("message"))).split())
    return repr(content)
