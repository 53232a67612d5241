"""The backend ganeti, asking a server that fails as Ganeti does, and as networks do."""

import contextlib
import dataclasses
import hashlib
import json
import logging
import pathlib
import socket
import socketserver
import ssl
import struct
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import trustme
from oslo_config import cfg

from steelyard import conf as options
from steelyard import plugins
from steelyard.errors import BackendRefused, BadRequest, OutcomeUnknown
from steelyard.tags.backends import rapi
from steelyard.tags.backends.base import JobStatus
from steelyard.tags.backends.ganeti import GanetiBackend

SECRET = "hunter2"
DRAINED = (
    500,
    {"code": 500, "message": "Queue drained", "explain": "Server got itself in trouble"},
)
CLOSED, RESET, SILENT = "closed", "reset", "silent"

Answer = Any
"""A status and a body, or how it fails to answer."""


@dataclasses.dataclass
class Asked:
    """What the server has been asked."""

    method: str
    target: str
    headers: dict[str, str]
    body: Any

    @property
    def is_query(self) -> bool:
        return self.target.startswith("/2/query/")


@dataclasses.dataclass
class Ganeti:
    """A server that answers to queries with what is there, and to all else with a job's number.

    ``answers`` come first, one for each request: a query's, or another's.
    """

    url: str = ""
    instances: dict[str, list[str]] = dataclasses.field(default_factory=lambda: {"vm": []})
    jobs: dict[int, str] = dataclasses.field(default_factory=dict)
    to_queries: list[Answer] = dataclasses.field(default_factory=list)
    to_others: list[Answer] = dataclasses.field(default_factory=list)
    asked: list[Asked] = dataclasses.field(default_factory=list)
    given_up: threading.Event = dataclasses.field(default_factory=threading.Event)

    def answer(self, asked: Asked) -> Answer:
        self.asked.append(asked)
        waiting = self.to_queries if asked.is_query else self.to_others
        if waiting:
            return waiting.pop(0)
        if not asked.is_query:
            return (200, 42)
        rows = self.rows(asked.target, list(values(asked.body["qfilter"])))
        return (200, {"data": [[[0, value] for value in row] for row in rows]})

    def rows(self, target: str, asked_for: list[Any]) -> list[list[Any]]:
        if target.endswith("instance"):
            return [[name, tags] for name, tags in self.instances.items() if name in asked_for]
        return [[number, self.jobs.get(number)] for number in asked_for or self.jobs]

    @property
    def submitted(self) -> list[Asked]:
        return [each for each in self.asked if not each.is_query]


def values(qfilter: Any) -> Iterator[Any]:
    """What fields are compared with in a filter."""
    match qfilter:
        case ["=", _, value]:
            yield value
        case [_, *parts]:
            for part in parts:
                yield from values(part)


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    return trustme.CA()


@pytest.fixture(scope="module")
def certificate(authority: trustme.CA) -> trustme.LeafCert:
    return authority.issue_cert("127.0.0.1")


@contextlib.contextmanager
def served(ganeti: Ganeti, certificate: trustme.LeafCert) -> Iterator[Ganeti]:
    class Handler(BaseHTTPRequestHandler):
        def handle_one(self) -> None:
            length = int(self.headers.get("Content-Length", 0))
            body = json.loads(self.rfile.read(length)) if length else None
            asked = Asked(self.command, self.path, dict(self.headers), body)
            match ganeti.answer(asked):
                case int(status), content:
                    data = content if isinstance(content, bytes) else json.dumps(content).encode()
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(data)))
                    if 300 <= status < 400:
                        self.send_header("Location", "https://elsewhere.example.org/")
                    self.end_headers()
                    self.wfile.write(data)
                case "silent":
                    ganeti.given_up.wait(10)
                case "reset":
                    linger = struct.pack("ii", 1, 0)
                    self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                case "closed":
                    pass
            self.close_connection = True

        do_GET = do_PUT = do_POST = do_DELETE = handle_one

        def log_message(self, *args: Any) -> None:
            pass

    class Server(ThreadingHTTPServer):
        request_queue_size = 64

        def finish_request(self, request: Any, client_address: Any) -> None:
            with (
                contextlib.suppress(OSError),  # whoever does not trust us goes
                context.wrap_socket(request, server_side=True) as wrapped,
            ):
                Handler(wrapped, client_address, self)

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificate.configure_cert(context)
    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        ganeti.url = f"https://127.0.0.1:{server.server_port}"
        try:
            yield ganeti
        finally:
            ganeti.given_up.set()
            server.shutdown()
            thread.join()


@pytest.fixture
def ganeti(certificate: trustme.LeafCert) -> Iterator[Ganeti]:
    with served(Ganeti(), certificate) as found:
        yield found


@pytest.fixture
def ca(authority: trustme.CA, tmp_path: pathlib.Path) -> str:
    authority.cert_pem.write_to_path(str(tmp_path / "ca.pem"))
    return str(tmp_path / "ca.pem")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rapi, "_PAUSES", (0.01, 0.02))


Make = Callable[..., GanetiBackend]


@pytest.fixture
def make(ca: str) -> Make:
    def make(url: str, **changed: Any) -> GanetiBackend:
        given = {
            "ganeti_url": url,
            "ganeti_user": "steelyard",
            "ganeti_password": SECRET,
            "ganeti_ca": ca,
            "ganeti_timeout": 1.0,
            "ganeti_connect_timeout": 1.0,
            **changed,
        }
        return GanetiBackend(configuration(given))

    return make


def configuration(given: dict[str, Any]) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
    options.register_tags(conf)
    for name, value in given.items():
        conf.set_override(name, value, group=options.TAGS_GROUP)
    return conf


@pytest.fixture
def backend(ganeti: Ganeti, make: Make) -> GanetiBackend:
    return make(ganeti.url)


def certificate_of(leaf: trustme.LeafCert) -> bytes:
    return ssl.PEM_cert_to_DER_cert(leaf.cert_chain_pems[0].bytes().decode())


def test_it_is_found_by_its_name(ca: str) -> None:
    given = {"ganeti_url": "https://h", "ganeti_user": "u", "ganeti_password": "p"}
    found = plugins.load(plugins.TAG_BACKENDS, ["ganeti"], configuration(given))
    assert isinstance(found["ganeti"], GanetiBackend)


def test_tags_go_in_the_query_string(ganeti: Ganeti, backend: GanetiBackend) -> None:
    assert backend.add("vm", ["a+b", "c/C3*1:x", "a+b"]) == 42
    assert backend.delete("vm", ["d"]) == 42
    add, delete = ganeti.submitted
    assert (add.method, add.target) == ("PUT", "/2/instances/vm/tags?tag=a%2Bb&tag=c/C3*1:x")
    assert (delete.method, delete.target) == ("DELETE", "/2/instances/vm/tags?tag=d")
    assert add.body is None
    assert add.headers["Authorization"] == "Basic c3RlZWx5YXJkOmh1bnRlcjI="


def test_an_instance_is_made_of_what_is_configured(ganeti: Ganeti, make: Make) -> None:
    text = '{"os_type": "noop", "ip_check": true, "nics": [{}]}'
    assert make(ganeti.url, ganeti_instance=text).create("new", ["a"]) == 42
    (asked,) = ganeti.submitted
    assert (asked.method, asked.target) == ("POST", "/2/instances")
    assert asked.headers["Content-Type"] == "application/json"
    assert asked.body == {
        "__version__": 1,
        "mode": "create",
        "name_check": False,
        "ip_check": True,
        "os_type": "noop",
        "nics": [{}],
        "instance_name": "new",
        "tags": ["a"],
    }


@pytest.mark.parametrize("name", ["", "VM", "vm\n", "a b", "é", "..", "a/b", "a?b", "x" * 256])
def test_a_name_that_is_none_is_not_sent(ganeti: Ganeti, backend: GanetiBackend, name: str) -> None:
    for ask in (backend.add, backend.delete, backend.create):
        with pytest.raises(BackendRefused, match="is no name of an instance"):
            ask(name, ["a"])
    assert backend.tags([name]) == {}
    assert ganeti.asked == []


@pytest.mark.parametrize("tag", ["", "a b", "é", "a\n", "\n", "a,b", "%41", "x" * 129, "\ud800"])
def test_a_tag_that_is_none_is_not_sent(ganeti: Ganeti, backend: GanetiBackend, tag: str) -> None:
    for ask in (backend.add, backend.delete, backend.create):
        with pytest.raises(BackendRefused, match="is no tag in Ganeti; it is up to 128 of A-Z"):
            ask("vm", ["a", tag])
    assert ganeti.asked == []


def test_what_is_not_there_is_refused(ganeti: Ganeti, make: Make) -> None:
    backend = make(ganeti.url, ganeti_instance="{}")
    for ask in (backend.add, backend.delete):
        with pytest.raises(BackendRefused, match="there is no instance 'other' in Ganeti"):
            ask("other", ["a"])
    with pytest.raises(BackendRefused, match="there is already an instance 'vm'"):
        backend.create("vm", ["a"])
    with pytest.raises(BackendRefused, match="set ganeti_instance in"):
        make(ganeti.url).create("new", ["a"])
    assert ganeti.submitted == []


def test_how_far_jobs_are(ganeti: Ganeti, backend: GanetiBackend) -> None:
    ended = {1: "success", 2: "error", 3: "canceled"}
    going_on = {4: "queued", 6: "waiting", 7: "running", 8: "canceling", 9: "new in Ganeti 4"}
    ganeti.jobs = {**ended, **going_on, 12: "success"}
    found = backend.jobs(range(-1, 12))
    assert {number for number, each in found.items() if each is JobStatus.RUNNING} == set(going_on)
    assert {number for number, each in found.items() if each is JobStatus.LOST} == {
        -1,
        0,
        5,
        10,
        11,
    }
    assert [found[number] for number in (1, 2, 3)] == ["succeeded", "failed", "failed"]
    assert backend.horizon() == 3
    ganeti.jobs |= dict.fromkeys(going_on, "success")
    assert backend.horizon() == 12
    ganeti.jobs = {}
    assert backend.horizon() == 0


def test_a_question_is_about_a_few_hundred(ganeti: Ganeti, backend: GanetiBackend) -> None:
    """Ganeti would need its time for more at once, and do nothing else meanwhile."""
    ganeti.jobs = dict.fromkeys(range(1, 1201), "success")
    ganeti.instances = {f"vm{number}": [f"a{number}"] for number in range(1200)}
    assert set(backend.jobs(ganeti.jobs).values()) == {JobStatus.SUCCEEDED}
    assert backend.tags([*ganeti.instances, "other", "no name"]) == {
        name: set(tags) for name, tags in ganeti.instances.items()
    }
    assert max(len(list(values(each.body["qfilter"]))) for each in ganeti.asked) == 500
    assert len(ganeti.asked) == 6


@pytest.mark.parametrize("path", ["", "/behind/a/proxy/"])
def test_no_request_has_a_line_that_is_too_long(ganeti: Ganeti, make: Make, path: str) -> None:
    backend = make(ganeti.url + path)
    tags = [f"{number:03}{'+' * (number % 100)}" for number in range(500)]
    batches = backend.batches("vm", tags)
    assert [tag for batch in batches for tag in batch] == tags
    lines = [
        f"DELETE {path.rstrip('/')}/2/instances/vm/tags?"
        + "&".join(f"tag={tag.replace('+', '%2B')}" for tag in batch)
        + " HTTP/1.1"
        for batch in batches
    ]
    assert max(map(len, lines)) <= 8192
    assert min(map(len, lines[:-1])) > 8192 - 310
    assert backend.batches("vm", ["a"]) == [["a"]]


@pytest.mark.parametrize("status", [302, 400, 404, 415])
def test_what_is_refused_has_not_happened(
    ganeti: Ganeti, backend: GanetiBackend, status: int
) -> None:
    ganeti.to_others = [(status, {"message": "it&#x27;s\n  wrong"})]
    with pytest.raises(BackendRefused, match=f"refuses, with {status}: it's wrong$"):
        backend.add("vm", ["a"])


def test_credentials_that_are_wrong(ganeti: Ganeti, backend: GanetiBackend) -> None:
    ganeti.to_queries = [(401, {})]
    with pytest.raises(BackendRefused, match="in as 'steelyard': correct ganeti_user and"):
        backend.add("vm", ["a"])
    ganeti.to_others = [(403, {})]
    with pytest.raises(BackendRefused, match="lets 'steelyard' read only: add the word write"):
        backend.add("vm", ["a"])


@pytest.mark.parametrize(
    "answer",
    [
        DRAINED,
        (503, {"message": "Job queue is drained, cannot submit"}),
        (503, {"message": "Job queue is full, needs archiving"}),
    ],
)
def test_a_queue_that_takes_no_jobs_refuses(
    ganeti: Ganeti, backend: GanetiBackend, answer: Answer
) -> None:
    ganeti.to_others = [answer]
    with pytest.raises(BackendRefused, match=r"takes no jobs .*gnt-cluster queue undrain"):
        backend.delete("vm", ["a"])
    assert len(ganeti.submitted) == 1


@pytest.mark.parametrize(
    "answer",
    [
        *((status, {"message": "who knows"}) for status in (500, 502, 503, 504)),
        (200, {"no": "number"}),
        (200, b"<html>"),
        CLOSED,
        RESET,
        SILENT,
    ],
)
@pytest.mark.parametrize("ask", ["add", "delete", "create"])
def test_a_job_is_submitted_once_even_if_nobody_knows(
    ganeti: Ganeti, make: Make, answer: Answer, ask: str
) -> None:
    ganeti.to_others = [answer]
    name = "new" if ask == "create" else "vm"
    with pytest.raises(OutcomeUnknown, match=r"what it was asked|number of a job") as told:
        getattr(make(ganeti.url, ganeti_instance="{}", ganeti_timeout=0.3), ask)(name, ["a"])
    assert len(ganeti.submitted) == 1
    assert SECRET not in "".join(traceback.format_exception(told.value))


PASSING: list[Answer] = [CLOSED, RESET, (502, {}), (503, b"busy")]


@pytest.mark.parametrize("answer", PASSING)
def test_a_question_is_asked_again(ganeti: Ganeti, backend: GanetiBackend, answer: Answer) -> None:
    ganeti.to_queries = [answer, answer]
    assert backend.add("vm", ["a"]) == 42
    assert len(ganeti.asked) == 4


@pytest.mark.parametrize(
    ("answer", "times"),
    [
        *((answer, 3) for answer in PASSING),
        (SILENT, 1),
        (DRAINED, 1),
        ((500, {}), 1),
        ((504, {}), 1),
        ((404, b""), 1),
        ((302, b""), 1),
        ((200, b"<html>"), 1),
        ((200, [1]), 1),
        ((200, {"data": [[[0, "vm"]]]}), 1),
        ((200, {"data": 7}), 1),
    ],
)
def test_a_question_that_is_not_answered_is_asked_a_few_times(
    ganeti: Ganeti, make: Make, answer: Answer, times: int
) -> None:
    """Nothing has happened then: nothing has been submitted."""
    backend = make(ganeti.url, ganeti_timeout=0.3)
    questions: list[Callable[[], Any]] = [
        lambda: backend.add("vm", ["a"]),
        lambda: backend.jobs([1]),
        lambda: backend.tags(["vm"]),
        backend.horizon,
    ]
    for question in questions:
        ganeti.to_queries = [answer] * times
        ganeti.asked.clear()
        with pytest.raises(BackendRefused) as told:
            question()
        assert len(ganeti.asked) == times
        assert SECRET not in "".join(traceback.format_exception(told.value))
    assert ganeti.submitted == []


def test_nobody_listens(make: Make) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    for url in (f"https://127.0.0.1:{port}", "https://nowhere.invalid:5080"):
        with pytest.raises(
            BackendRefused, match=r"does not answer: .*is ganeti-rapi running there"
        ):
            make(url).add("vm", ["a"])


@pytest.mark.parametrize("said", [b"", b"HTTP/1.0 400 Bad Request\r\n\r\n"])
def test_who_does_not_speak_tls(make: Make, said: bytes) -> None:
    """Who is just being started or stopped, or something else: it is not about certificates."""
    connections = []

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            connections.append(self.request)
            self.request.recv(1)
            self.request.sendall(said)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            with pytest.raises(BackendRefused, match="does not answer"):
                make(f"https://127.0.0.1:{server.server_address[1]}").add("vm", ["a"])
        finally:
            server.shutdown()
            thread.join()
    assert len(connections) == 3


def test_who_does_not_accept_a_connection(ganeti: Ganeti, make: Make) -> None:
    """Neither before a job is submitted, nor for it alone."""
    backend = make(ganeti.url, ganeti_connect_timeout=0.2)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full:
        port = full.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port)):
            pool = rapi.connections(None, None, 0.2, 0.2)
            found = rapi.Rapi(f"https://127.0.0.1:{port}", "u", SECRET, pool)
            began = time.monotonic()
            with pytest.raises(BackendRefused, match="does not answer"):
                found.submit("PUT", "/2/instances/vm/tags?tag=a")
            assert time.monotonic() - began < 5
    assert backend.horizon() == 0


def test_a_certificate_is_checked(
    ganeti: Ganeti, make: Make, certificate: trustme.LeafCert, tmp_path: pathlib.Path
) -> None:
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(str(other))
    right = hashlib.sha256(certificate_of(certificate)).hexdigest()
    wrong: list[dict[str, Any]] = [
        {"ganeti_ca": None},
        {"ganeti_ca": str(other)},
        {"ganeti_ca": None, "ganeti_fingerprint": right[::-1]},
        {"ganeti_url": ganeti.url.replace("127.0.0.1", "localhost")},
    ]
    for changed in wrong:
        backend = make(**{"url": ganeti.url, **changed})
        with pytest.raises(BackendRefused, match=r"certificate of Ganeti at .* cannot be trusted"):
            backend.add("vm", ["a"])
    assert ganeti.asked == []
    pairs = ":".join(right[at : at + 2] for at in range(0, 64, 2)).upper()
    for fingerprint in (right, pairs):
        backend = make(ganeti.url, ganeti_ca=None, ganeti_fingerprint=fingerprint)
        assert backend.add("vm", ["a"]) == 42


@pytest.mark.parametrize("fingerprint", [None, "0" * 64])
def test_a_job_is_not_sent_to_whoever_cannot_be_trusted(
    ganeti: Ganeti, fingerprint: str | None
) -> None:
    pool = rapi.connections(None, fingerprint, 1, 1)
    found = rapi.Rapi(ganeti.url, "u", SECRET, pool)
    with pytest.raises(BackendRefused, match="cannot be trusted"):
        found.submit("PUT", "/2/instances/vm/tags?tag=a")
    assert ganeti.asked == []


def test_what_the_environment_says_does_not_count(
    ganeti: Ganeti, make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither another way, nor other credentials."""
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert make(ganeti.url).add("vm", ["a"]) == 42


def test_no_line_of_the_log_has_the_password_in_it(
    ganeti: Ganeti, make: Make, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("", "urllib3"):
        caplog.set_level(logging.DEBUG, name)
    backend = make(ganeti.url)
    ganeti.to_queries = [RESET]
    backend.add("vm", ["a"])
    assert "/2/instances/vm/tags?tag=a" in caplog.text
    assert SECRET not in caplog.text
    assert "aHVudGVyMg" not in caplog.text


def test_threads_ask_at_once(
    ganeti: Ganeti, backend: GanetiBackend, caplog: pytest.LogCaptureFixture
) -> None:
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            for _ in range(5):
                assert backend.add("vm", ["a"]) == 42
        except BaseException as error:  # noqa: BLE001  (it is looked at below)
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(ganeti.submitted) == 40
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"ganeti_url": None}, "set ganeti_url in"),
        ({"ganeti_user": None}, "set ganeti_user in"),
        ({"ganeti_password": ""}, "set ganeti_password in"),
        ({"ganeti_url": "http://h:5080"}, "'http://h:5080' is no URL of Ganeti's remote API"),
        ({"ganeti_url": "h:5080"}, "'h:5080' is no URL"),
        ({"ganeti_url": "https://h:x"}, "is no URL"),
        ({"ganeti_url": "https://h/?a=b"}, "is no URL"),
        ({"ganeti_url": "https://[h"}, "is no URL"),
        ({"ganeti_url": f"https://u:{SECRET}@h"}, "has a user or a password in it"),
        ({"ganeti_ca": "/nonexistent.pem"}, "ganeti_ca .* is '/nonexistent.pem', which cannot"),
        ({"ganeti_ca": __file__}, "ganeti_ca .* cannot be read as certificates in PEM"),
        ({"ganeti_fingerprint": "0" * 64}, "stands without ganeti_ca"),
        ({"ganeti_ca": None, "ganeti_fingerprint": "0" * 63}, "as 64 hexadecimal digits"),
    ],
)
def test_bad_values_are_named(make: Make, changed: dict[str, Any], said: str) -> None:
    with pytest.raises(BadRequest, match=said) as told:
        make(**{"url": "https://127.0.0.1:5080", **changed})
    assert SECRET not in str(told.value)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "'{' is no JSON"),
        ("[]", r"'\[\]' is no object"),
        ('{"tags": []}', "'tags' differs from instance to instance"),
        ('{"instance_name": "x"}', "'instance_name' differs"),
        ('{"name": "x"}', "'name' differs"),
    ],
)
def test_what_instances_are_made_of_is_checked(make: Make, text: str, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make("https://127.0.0.1:5080", ganeti_instance=text)
