"""The backend ganeti over a server that fails like Ganeti and like a network."""

import contextlib
import hashlib
import pathlib
import socket
import socketserver
import ssl
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import trustme

from steelyard.errors import BackendRefused, BackendUnreachable, OutcomeUnknown
from steelyard.tags import TagService, TagStore, deadlines
from steelyard.tags.backends import rapi
from steelyard.tags.backends.base import BackendIdentity
from steelyard.tags.backends.ganeti import GanetiBackend
from steelyard.tags.service import Operator
from steelyard.tags.states.values import Instance, Status
from support.tags.databases import upgrade
from support.tags.fake_ganeti import (
    CLOSED,
    CLUSTER,
    RESET,
    SECRET,
    SILENT,
    TRICKLING,
    Answer,
    Ganeti,
    MakeBackend,
)

DRAINED = (
    500,
    {"code": 500, "message": "Queue drained", "explain": "Server got itself in trouble"},
)
OPERATOR = Operator()


def certificate_of(leaf: trustme.LeafCert) -> bytes:
    return ssl.PEM_cert_to_DER_cert(leaf.cert_chain_pems[0].bytes().decode())


@pytest.mark.parametrize("status", [302, 400, 404, 415])
def test_redirect_or_client_error_is_a_refusal(
    ganeti: Ganeti, backend: GanetiBackend, status: int
) -> None:
    ganeti.to_others = [(status, {"message": "it&#x27;s\n  wrong"})]
    with pytest.raises(BackendRefused, match=f"refused the request: {status}: it's wrong$"):
        backend.add("vm", ["a"])


def test_wrong_credentials_are_refused_with_advice(ganeti: Ganeti, backend: GanetiBackend) -> None:
    ganeti.to_queries = [(401, {})]
    with pytest.raises(
        BackendRefused, match="rejected user 'steelyard' or the password: set ganeti_user and"
    ):
        backend.add("vm", ["a"])
    ganeti.to_others = [(403, {})]
    with pytest.raises(
        BackendRefused, match="does not let user 'steelyard' submit jobs: add the word"
    ):
        backend.add("vm", ["a"])


@pytest.mark.parametrize(
    "answer",
    [
        DRAINED,
        (503, {"message": "Job queue is drained, cannot submit"}),
        (503, {"message": "Job queue is full, needs archiving"}),
    ],
)
def test_drained_or_full_queue_is_a_refusal(
    ganeti: Ganeti, backend: GanetiBackend, answer: Answer
) -> None:
    ganeti.to_others = [answer]
    with pytest.raises(BackendRefused, match=r"accepts no jobs: .*gnt-cluster queue undrain"):
        backend.delete("vm", ["a"])
    assert len(ganeti.submitted) == 1


@pytest.mark.parametrize(
    "answer",
    [
        *((status, {"message": "unknown error"}) for status in (500, 502, 503, 504)),
        (200, {"no": "number"}),
        (200, b"<html>"),
        (200, b"[" * 10**5),
        (200, b'{"id": 1, "id": 2}'),
        CLOSED,
        RESET,
        SILENT,
    ],
)
@pytest.mark.parametrize("ask", ["add", "delete", "create"])
def test_unclear_answer_to_a_job_is_not_retried(
    ganeti: Ganeti, make: MakeBackend, answer: Answer, ask: str
) -> None:
    ganeti.to_others = [answer]
    name = "new" if ask == "create" else "vm"
    with pytest.raises(OutcomeUnknown, match="may still run the job") as caught:
        getattr(make(ganeti.url, ganeti_instance="{}", ganeti_timeout=0.3), ask)(name, ["a"])
    assert len(ganeti.submitted) == 1
    assert SECRET not in "".join(traceback.format_exception(caught.value))


TRANSIENT: list[Answer] = [CLOSED, RESET, (502, {}), (503, b"busy")]


@pytest.mark.parametrize("answer", TRANSIENT)
def test_query_is_retried_after_transient_failures(
    ganeti: Ganeti, backend: GanetiBackend, answer: Answer
) -> None:
    ganeti.to_queries = [answer, answer]
    assert backend.add("vm", ["a"]) == 42
    assert len(ganeti.asked) == 4


@pytest.mark.parametrize(
    ("answer", "times"),
    [
        *((answer, 3) for answer in TRANSIENT),
        (SILENT, 1),
        (DRAINED, 1),
        ((500, {}), 1),
        ((504, {}), 1),
        ((404, b""), 1),
        ((302, b""), 1),
        ((200, b"<html>"), 1),
        ((200, b"[" * 10**5), 1),
        ((200, b'{"data": [], "data": []}'), 1),
        ((200, [1]), 1),
        ((200, {"data": [[[0, "vm"]]]}), 1),
        ((200, {"data": 7}), 1),
    ],
)
def test_failing_query_is_refused_after_its_retries(
    ganeti: Ganeti, make: MakeBackend, answer: Answer, times: int
) -> None:
    backend = make(ganeti.url, ganeti_timeout=0.3)
    queries: list[Callable[[], Any]] = [
        lambda: backend.add("vm", ["a"]),
        lambda: backend.jobs([1]),
        lambda: backend.tags(["vm"]),
        backend.horizon,
    ]
    for query in queries:
        ganeti.to_queries = [answer] * times
        ganeti.asked.clear()
        with pytest.raises(BackendRefused) as caught:
            query()
        assert len(ganeti.asked) == times
        assert SECRET not in "".join(traceback.format_exception(caught.value))
    assert ganeti.submitted == []


def test_unreachable_address_is_refused(make: MakeBackend) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    for url in (f"https://127.0.0.1:{port}", "https://nowhere.invalid:5080"):
        with pytest.raises(
            BackendRefused, match=r"cannot reach Ganeti .*that ganeti-rapi is running there"
        ):
            make(url).add("vm", ["a"])


@pytest.mark.parametrize("reply", [b"", b"HTTP/1.0 400 Bad Request\r\n\r\n"])
def test_server_without_tls_is_reported_as_unreachable(make: MakeBackend, reply: bytes) -> None:
    # A server that is starting or stopping closes connections early; this is no certificate error.
    connections = []

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            connections.append(self.request)
            self.request.recv(1)
            self.request.sendall(reply)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            with pytest.raises(BackendRefused, match="cannot reach Ganeti"):
                make(f"https://127.0.0.1:{server.server_address[1]}").add("vm", ["a"])
        finally:
            server.shutdown()
            thread.join()
    assert len(connections) == 3


def test_connection_timeout_is_a_refusal(ganeti: Ganeti, make: MakeBackend) -> None:
    backend = make(ganeti.url, ganeti_connect_timeout=0.2)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        port = full.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            pool = rapi.connections(None, None, 0.2, 0.2)
            client = rapi.Rapi(f"https://127.0.0.1:{port}", "u", SECRET, pool)
            started = time.monotonic()
            with pytest.raises(BackendRefused, match="cannot reach Ganeti"):
                client.submit("PUT", "/2/instances/vm/tags?tag=a")
            assert time.monotonic() - started < 5
    assert backend.horizon() == 0


def test_certificate_is_checked_against_ca_and_fingerprint(
    ganeti: Ganeti, make: MakeBackend, certificate: trustme.LeafCert, tmp_path: pathlib.Path
) -> None:
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    fingerprint_of_server = hashlib.sha256(certificate_of(certificate)).hexdigest()
    wrong: list[dict[str, Any]] = [
        {"ganeti_ca": None},
        {"ganeti_ca": str(other)},
        {"ganeti_ca": None, "ganeti_fingerprint": fingerprint_of_server[::-1]},
        {"ganeti_url": ganeti.url.replace("127.0.0.1", "localhost")},
    ]
    for changed in wrong:
        backend = make(**{"url": ganeti.url, **changed})
        with pytest.raises(BackendRefused, match=r"untrusted certificate of Ganeti at "):
            backend.add("vm", ["a"])
    assert ganeti.asked == []
    pairs = ":".join(fingerprint_of_server[at : at + 2] for at in range(0, 64, 2)).upper()
    for fingerprint in (fingerprint_of_server, pairs):
        backend = make(ganeti.url, ganeti_ca=None, ganeti_fingerprint=fingerprint)
        assert backend.add("vm", ["a"]) == 42


@pytest.mark.parametrize("fingerprint", [None, "0" * 64])
def test_job_is_not_sent_to_an_untrusted_server(ganeti: Ganeti, fingerprint: str | None) -> None:
    pool = rapi.connections(None, fingerprint, 1, 1)
    client = rapi.Rapi(ganeti.url, "u", SECRET, pool)
    with pytest.raises(BackendRefused, match="untrusted certificate"):
        client.submit("PUT", "/2/instances/vm/tags?tag=a")
    assert ganeti.asked == []


@contextlib.contextmanager
def service_over(backend: GanetiBackend, directory: pathlib.Path) -> Iterator[TagService]:
    """Yield a service that has one instance and its own database."""
    with TagStore(f"sqlite:///{directory}/tags.db") as store:
        upgrade(store, BackendIdentity("ganeti", CLUSTER))
        service = TagService(store, backend)
        service.register(Instance("s1", "vm", "p", "u"))
        yield service


class Clock:
    """A clock that moves forward by up to `pauses` pauses instead of sleeping."""

    def __init__(self) -> None:
        self.paused = 0.0
        self.pauses = 1000

    def pause(self, seconds: float) -> None:
        if self.pauses:
            self.pauses -= 1
            self.paused += seconds

    def monotonic(self) -> float:
        return time.monotonic() + self.paused


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Return the clock that limits the time of a request."""
    clock = Clock()
    monkeypatch.setattr(deadlines, "time", clock)
    return clock


@pytest.fixture
def slow_ganeti(ganeti: Ganeti, clock: Clock) -> Ganeti:
    """Return a server that answers after a pause of 40 seconds."""
    ganeti.pause = clock.pause
    ganeti.delay = 40.0
    return ganeti


@pytest.mark.parametrize("slow", [SILENT, TRICKLING])
@pytest.mark.parametrize("submitting", [False, True])
def test_request_timeout_covers_all_queries_of_a_request(
    slow_ganeti: Ganeti,
    clock: Clock,
    make: MakeBackend,
    tmp_path: pathlib.Path,
    slow: Answer,
    *,
    submitting: bool,
) -> None:
    # Each earlier answer is slow; the last one is missing or never ends.
    backend = make(slow_ganeti.url, ganeti_timeout=60.0)
    with service_over(backend, tmp_path) as service:
        slow_ganeti.asked.clear()
        service.request_timeout = 1000.0
        service.add(OPERATOR, "s1", "old")
        *before, _ = slow_ganeti.asked
        slow_ganeti.asked.clear()
        answers = slow_ganeti.to_others if submitting else slow_ganeti.to_queries
        answers.append(slow)
        clock.pauses = len(before) if submitting else 0
        service.request_timeout = 40.0 * clock.pauses + 1.0
        started = time.monotonic()
        with pytest.raises(OutcomeUnknown if submitting else BackendUnreachable):
            service.add(OPERATOR, "s1", "smtp")
        assert time.monotonic() - started < 8.0
        assert len(slow_ganeti.submitted) == submitting


def test_request_timeout_after_a_submitted_job_leaves_the_outcome_unknown(
    slow_ganeti: Ganeti, make: MakeBackend, tmp_path: pathlib.Path
) -> None:
    with service_over(make(slow_ganeti.url, ganeti_timeout=60.0), tmp_path) as service:
        service.request_timeout = 1000.0
        service.add(OPERATOR, "s1", "old")
        slow_ganeti.jobs[42] = "success"
        service.jobs.poll()
        slow_ganeti.to_others.append((200, 43))
        service.request_timeout = 90.0
        with pytest.raises(OutcomeUnknown, match="after it accepted some changes"):
            service.replace(OPERATOR, "s1", ["new"])
        there = {"new": Status.PENDADD, "old": Status.ACTIVE}
        assert service.tags(OPERATOR, "s1") == there
        service.request_timeout = 30.0
        submitted = len(slow_ganeti.submitted)
        with pytest.raises(BackendUnreachable):
            service.add(OPERATOR, "s1", "other")
        assert len(slow_ganeti.submitted) == submitted
        assert service.tags(OPERATOR, "s1") == there
