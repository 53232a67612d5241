"""The commands of the systemd units, stopped and started again under load."""

import concurrent.futures
import contextlib
import dataclasses
import http.client
import os
import pathlib
import random
import shutil
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping

import pytest
import sqlalchemy as sa

from steelyard.tags import TagStore
from steelyard.tags.jobs.broker import Broker
from steelyard.tags.states.values import Instance, Status
from support.soaks.outcome_soak import COMMAND
from support.tags import queues, shared_backend, units
from support.tags.api_process import P
from support.tags.databases import upgrade
from support.tags.queues import until

SERVERS = 60
CLIENTS = 4
SLOW_CLIENTS = 100
PREFIX = "cyclades:user:"
HALF = b"PUT /servers/s0/tags/x HTTP/1.1\r\nHost: x\r\n"
PROGRAMS = {"gunicorn": [sys.executable, "-m", "gunicorn"], "steelyard": COMMAND}


@dataclasses.dataclass
class Part:
    """A process that a unit starts."""

    unit: str
    instance: str
    where: str
    environment: Mapping[str, str]
    home: pathlib.Path
    process: subprocess.Popen[str] | None = None

    @property
    def log(self) -> pathlib.Path:
        return self.home / f"{self.unit}{self.instance}.log"

    def command(self) -> list[str]:
        program, *arguments = units.command(self.unit, self.environment, self.instance)
        file = str(self.home / ".steelyard" / "steelyard.conf")
        return [
            *PROGRAMS[program],
            *(file if each == units.CONFIGURATION else each for each in arguments),
        ]

    def start(self) -> None:
        """Start the process and wait until it is healthy."""
        if "PROMETHEUS_MULTIPROC_DIR" in self.environment:  # as RuntimeDirectory does
            shared = pathlib.Path(self.environment["PROMETHEUS_MULTIPROC_DIR"])
            shutil.rmtree(shared, ignore_errors=True)
            shared.mkdir(parents=True)
        with self.log.open("a") as log:
            self.process = subprocess.Popen(
                self.command(),
                stdout=log,
                stderr=log,
                text=True,
                env={**os.environ, **self.environment},
            )
        until(self.is_healthy, 120.0)

    def is_healthy(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, self.log.read_text()
        try:
            with urllib.request.urlopen(f"http://{self.where}/health", timeout=60) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def stop(self) -> None:
        """Stop the process as systemd does, and check that it exits in time and without errors."""
        assert self.process is not None
        self.process.terminate()
        assert self.process.wait(int(units.setting(self.unit, "TimeoutStopSec"))) == 0
        assert "Traceback" not in self.log.read_text()

    def kill(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()


@dataclasses.dataclass
class Load:
    """Clients that add tags, and delete some of them, until they are stopped."""

    where: str
    stop: threading.Event = dataclasses.field(default_factory=threading.Event)
    there: dict[str, set[str]] = dataclasses.field(default_factory=dict)
    """The tags that each server has according to the answers."""

    answers: list[int] = dataclasses.field(default_factory=list)
    closed: int = 0
    """The number of requests without an answer, which were sent again."""

    def client(self, servers: list[str], chance: random.Random) -> None:
        connection = self._connection()
        while not self.stop.is_set():
            server = chance.choice(servers)
            mine = self.there.setdefault(server, set())
            if len(mine) > 40 or (mine and chance.random() < 0.2):
                tag = chance.choice(sorted(mine))
                status = self._ask(connection, "DELETE", server, tag)
                # 409: the tag is still PENDADD. 404: the request before its repetition deleted it.
                assert status in (204, 409, 404), status
                if status != 409:
                    mine.discard(tag)
            else:
                tag = f"tag-{chance.getrandbits(32):08x}"
                assert self._ask(connection, "PUT", server, tag) in (201, 204)
                mine.add(tag)
        connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        return http.client.HTTPConnection(self.where, timeout=120)

    def _ask(
        self, connection: http.client.HTTPConnection, method: str, server: str, tag: str
    ) -> int:
        """Send the request until it is answered."""
        while True:
            try:
                connection.request(method, f"/servers/{server}/tags/{tag}", headers=P)
                answer = connection.getresponse()
                answer.read()
            except (OSError, http.client.HTTPException):
                connection.close()
                self.closed += 1
                time.sleep(0.1)
            else:
                self.answers.append(answer.status)
                return answer.status


@contextlib.contextmanager
def loading(load: Load) -> Iterator[None]:
    """Run the clients during the block."""
    servers = [[f"s{each}" for each in range(own, SERVERS, CLIENTS)] for own in range(CLIENTS)]
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as clients:
        running = [
            clients.submit(load.client, mine, random.Random(number))
            for number, mine in enumerate(servers)
        ]
        try:
            yield
        finally:
            load.stop.set()
        for each in running:
            each.result()


@contextlib.contextmanager
def slow_clients(address: str) -> Iterator[Callable[[], None]]:
    """Open connections that send nothing or half a request; yield a function that opens more."""
    host, _, port = address.partition(":")
    with contextlib.ExitStack() as stack:

        def connect() -> None:
            for number in range(SLOW_CLIENTS):
                client = socket.create_connection((host, int(port)), timeout=60)
                stack.enter_context(client).sendall((b"", HALF)[number % 2])

        connect()
        yield connect


@pytest.fixture
def store(postgresql: sa.Engine) -> TagStore:
    """Return a store with servers, whose backend is shared by all processes."""
    store = TagStore(postgresql)
    upgrade(store, shared_backend.IDENTITY)
    for number in range(SERVERS):
        store.register(Instance(f"s{number}", f"vm-{number}", "p", "u"))
    return store


@pytest.fixture
def broker(host: str) -> Iterator[Broker]:
    with queues.own_queue(host) as broker:
        yield broker


@pytest.fixture
def parts(
    store: TagStore, broker: Broker, host: str, postgresql: sa.Engine, tmp_path: pathlib.Path
) -> Iterator[list[Part]]:
    """Yield the API, the watch and two dispatchers, which are not started."""
    shared_backend.make(tmp_path / "backend", [f"vm-{number}" for number in range(SERVERS)])
    path = tmp_path / ".steelyard" / "steelyard.conf"
    path.parent.mkdir()
    path.touch(mode=0o600)
    path.write_text(
        f"[steelyard_tags]\n"
        f"connection = {postgresql.url.render_as_string(hide_password=False)}\n"
        f"transport_url = {host}\nqueue = {broker.queue.name}\n"
        f"backend = {shared_backend.IDENTITY.driver}\n"
        f"trusted_proxies = 127.0.0.0/8\npoll_interval = 0.2\n"
    )
    # The units have fixed ports, so the address is one that no other test has.
    address = f"127.{random.randrange(1, 255)}.{random.randrange(255)}.{random.randrange(1, 255)}"
    shared = {
        **shared_backend.environment(tmp_path / "plugin", tmp_path / "backend"),
        "HOME": str(tmp_path),
    }
    made = []
    for unit, instance, port in (
        ("steelyard-tags-api.service", "", 8780),
        ("steelyard-tags-watch.service", "", 9781),
        ("steelyard-tags-dispatch@.service", "1", 9791),
        ("steelyard-tags-dispatch@.service", "2", 9792),
    ):
        own = units.environment(unit, run=str(tmp_path / "run"))
        own |= {"API_LISTEN": f"{address}:8780", "API_WORKERS": "2", "METRICS_HOST": address}
        made.append(Part(unit, instance, f"{address}:{port}", {**own, **shared}, tmp_path))
    yield made
    for part in made:
        part.kill()


def reconciled(part: Part) -> int:
    """Run the command of the timer's unit with the environment of the part."""
    unit = dataclasses.replace(part, unit="steelyard-tags-reconcile.service", instance="")
    command = unit.command()
    return subprocess.run(
        command, env={**os.environ, **part.environment}, capture_output=True, check=False
    ).returncode


def test_units_lose_nothing_when_they_are_stopped_under_load(
    parts: list[Part], store: TagStore, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for part in parts:
        part.start()
    api = parts[0]
    load = Load(api.where)
    with slow_clients(api.where) as connect_again, loading(load):
        for part in parts:
            time.sleep(1)
            before = len(load.answers)
            part.stop()
            part.start()
            if part is api:
                connect_again()
            until(lambda before=before: len(load.answers) > before + 20)  # type: ignore[misc]
    until(lambda: not store.pending())
    assert reconciled(api) == 0
    for part in parts:
        part.stop()
    assert len(load.answers) > 200
    recorded = {
        each.instance.id: {
            tag.name for tag, status in each.state.tags.items() if status is Status.ACTIVE
        }
        for each in store.snapshots(SERVERS)
    }
    assert recorded == {
        f"s{number}": load.there.get(f"s{number}", set()) for number in range(SERVERS)
    }
    names = [f"vm-{number}" for number in range(SERVERS)]
    monkeypatch.setenv(shared_backend.VARIABLE, str(tmp_path / "backend"))
    at_backend = shared_backend.SharedBackend().tags(names)
    assert {name: {f"{PREFIX}{tag}" for tag in recorded[f"s{name[3:]}"]} for name in names} == {
        name: set(tags) for name, tags in at_backend.items()
    }
