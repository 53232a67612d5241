"""The HTTP API of instance tags behind a real server: the command, and others as in the guide."""

import contextlib
import dataclasses
import http.client
import json
import logging
import os
import pathlib
import re
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import sqlalchemy as sa
from tag_databases import upgrade

from steelyard import cli
from steelyard.tags import TagStore
from steelyard.tags.states import Instance

pytestmark = pytest.mark.usefixtures("closed_databases")

GUIDE = pathlib.Path(__file__).parents[2] / "docs" / "guides" / "instance-tags.rst"
COMMAND = [sys.executable, "-c", "from steelyard import cli; raise SystemExit(cli.main())"]
P = {"X-Project-Id": "p", "X-User-Id": "u"}
ALL = "/servers/s/tags"
SERVE = ("tags", "serve")


@pytest.fixture
def url(tmp_path: Any) -> str:
    made = f"sqlite:///{tmp_path}/tags.db"
    upgrade(TagStore(made))
    return made


def option_file(tmp_path: Any, **values: object) -> str:
    path = tmp_path / "tags.conf"
    lines = [f"{name} = {value}" for name, value in values.items()]
    path.write_text("\n".join(["[steelyard_tags]", *lines, ""]))
    return str(path)


class Connection:
    """One that is kept alive, which reads each answer to its end."""

    def __init__(self, connection: http.client.HTTPConnection) -> None:
        self.http = connection

    def __call__(
        self, method: str, target: str, body: Any = None, headers: Mapping[str, str] = P
    ) -> tuple[int, Any]:
        data = json.dumps(body) if isinstance(body, dict) else body
        kind = {} if body is None else {"Content-Type": "application/json"}
        self.http.request(method, target, data, {**headers, **kind})
        answer = self.http.getresponse()
        said = answer.read()
        return answer.status, json.loads(said) if said else None


@dataclasses.dataclass
class Served:
    """The command while it runs, and what it has said first."""

    process: subprocess.Popen[str]
    said: str
    connections: contextlib.ExitStack

    @property
    def port(self) -> int:
        return int(re.findall(r":(\d+)", self.said)[-1])

    def connect(self, host: str = "127.0.0.1") -> Connection:
        made = http.client.HTTPConnection(host, self.port, timeout=20)
        return Connection(self.connections.enter_context(contextlib.closing(made)))


@contextlib.contextmanager
def running(command: list[str], last: str, **environment: str) -> Iterator[Served]:
    """The server, once it has said so."""
    process = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **environment},
    )
    assert process.stdout is not None
    said = ""
    with process, contextlib.ExitStack() as connections:
        connections.callback(process.kill)
        while last not in said:
            line = process.stdout.readline()
            assert line, process.communicate()
            said += line
        yield Served(process, said, connections)


def serving(*argv: str) -> contextlib.AbstractContextManager[Served]:
    return running([*COMMAND, *argv, "--port", "0"], "Ctrl-C")


@pytest.fixture
def steelyard(capsys: Any) -> Iterator[Any]:
    """What the command says when it cannot serve."""
    handlers, level = logging.root.handlers[:], logging.root.level

    def run(*argv: str) -> str:
        assert cli.main(argv) == 2
        return str(capsys.readouterr().err)

    yield run
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_told_to_end(url: str, tmp_path: Any, number: int) -> None:
    file = option_file(tmp_path, connection=url, poll_interval=0.1)
    with serving("--config-file", file, "tags", "serve") as served:
        assert served.said.splitlines() == [
            "whoever asks from this machine is believed X-Project-Id and X-User-Id: "
            "trusted_proxies in [steelyard_tags] names nobody",
            f"tags at http://127.0.0.1:{served.port}; Ctrl-C ends it",
        ]
        ask = served.connect()
        created = {"server": {"name": "vm", "id": "s", "tags": ["a"]}}
        assert ask("POST", "/servers", created)[0] == 202
        assert until_active(ask) == {"a": "ACTIVE"}
        served.process.send_signal(number)
        out, err = served.process.communicate(timeout=20)
        assert (served.process.returncode, out, err) == (0, "", "")
    # What it has kept is there when it is started again.
    with serving("tags", "serve", "--url", url) as served:
        assert served.connect()("DELETE", ALL + "/a")[0] == 204


def test_what_was_under_way_when_it_was_killed_is_over_when_it_is_started_again(
    url: str, tmp_path: Any
) -> None:
    """The backend in memory has gone with it, and has done nothing of that."""
    created = {"server": {"name": "vm", "id": "s", "tags": ["a"]}}
    other = {"server": {"name": "vm-2", "id": "s2"}}
    with serving(
        "--config-file", option_file(tmp_path, poll_interval=60, connection=url), *SERVE
    ) as served:
        ask = served.connect()
        assert ask("POST", "/servers", other)[0] == 202
        assert ask("PUT", "/servers/s2/tags/a")[0] == 201  # the creation is looked at for that
        assert ask("POST", "/servers", created)[0] == 202
        served.process.kill()
    with serving(
        "--config-file", option_file(tmp_path, poll_interval=0.1, connection=url), *SERVE
    ) as served:
        ask = served.connect()
        deadline = time.monotonic() + 20
        while ask("GET", ALL)[0] != 404 or ask("GET", "/servers/s2/tags")[1]["tags"]:
            assert time.monotonic() < deadline
            time.sleep(0.05)
        assert ask("POST", "/servers", created)[0] == 202
        assert until_active(ask) == {"a": "ACTIVE"}
        assert ask("PUT", "/servers/s2/tags/a")[0] == 201


def until_active(ask: Connection) -> Any:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        statuses = ask("GET", ALL)[1]["statuses"]
        if "PENDADD" not in statuses.values():
            break
        time.sleep(0.05)
    return statuses


@pytest.fixture
def served(url: str) -> Iterator[Served]:
    """With one server."""
    with serving("tags", "serve", "--url", url) as served:
        created = {"server": {"name": "vm", "id": "s"}}
        assert served.connect()("POST", "/servers", created)[0] == 202
        yield served


def test_one_connection_takes_it_all(served: Served) -> None:
    """But for what is answered 204, after which waitress closes it."""
    ask = served.connect()
    ask("GET", ALL)
    sock = ask.http.sock
    assert ask("HEAD", ALL) == (200, None)
    assert ask("HEAD", ALL + "/x") == (404, None)
    assert ask("OPTIONS", ALL) == (200, None)
    assert ask("PUT", ALL + "/a") == (201, None)
    assert ask("PUT", ALL, b'{"tags": ["\xff"]}')[0] == 400
    assert ask("PATCH", ALL, {"tags": []})[0] == 405
    assert ask("BREW", ALL)[0] == 400
    assert ask("DELETE", ALL + "/x", {"not": "read"})[0] == 404
    assert ask("GET", ALL)[1]["tags"] == ["a"]
    assert ask.http.sock is sock


def test_names_as_they_come(served: Served) -> None:
    ask = served.connect()
    odd = "/%F0%9F%98%80%20%2B%25"
    assert [ask("PUT", ALL + odd)[0] for _ in "ab"] == [201, 204]
    assert ask("HEAD", ALL + odd) == (204, None)
    for target in ("/a%2Fb", "/%2e%2e%2ftags", "/%FF", "/a%0Ab", "/"):
        assert ask("PUT", ALL + target)[0] == 400
    for name in ("..", ".", "%2e%2e", "tags"):
        assert ask("PUT", f"{ALL}/{name}")[0] in (201, 204)
    assert sorted(ask("GET", ALL)[1]["tags"]) == [".", "..", "tags", "\N{GRINNING FACE} +%"]


def test_bodies_in_chunks(served: Served) -> None:
    ask = served.connect()
    assert ask("PUT", ALL, iter([b'{"tags": ', b'["a"]}']))[1]["tags"] == ["a"]
    status, said = ask("PUT", ALL, iter([b" " * 65536, b'{"tags": []}']))
    assert (status, said["overLimit"]["message"]) == (413, "a request has at most 65536 bytes")
    assert ask("PUT", ALL, b" " * 65537)[0] == 413
    assert ask("GET", ALL)[1]["tags"] == ["a"]


def test_a_body_that_is_far_too_large_is_not_read(served: Served) -> None:
    head = f"PUT {ALL} HTTP/1.1\r\nHost: h\r\nContent-Length: 999999999\r\n\r\n"
    assert sent(served.port, head.encode()).startswith(b"HTTP/1.1 413 ")


def sent(port: int, data: bytes) -> bytes:
    """What is answered to these bytes, the first part of it."""
    with socket.create_connection(("127.0.0.1", port), timeout=20) as connection:
        connection.sendall(data)
        return connection.recv(65536)


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        (b"X-Project-Id: q\r\nX-Project-Id: p\r\nX-User-Id: u", b"401 Unauthorized"),
        (b"X-Project-Id: p\r\nX_User_Id: u", b"401 Unauthorized"),
        (b"X-Project-Id: p\xc3\xa9\r\nX-User-Id: u", b"401 Unauthorized"),
        (b"X-Project-Id:\r\nX-User-Id: u", b"401 Unauthorized"),
        (b"X-Project-Id: p\r\nX-User-Id: u\r\nX-Tag-Owner: system", b"401 Unauthorized"),
        (b"X-Project-Id: p\r\nX-User-Id: u\r\nkeystone.token_auth: x", b"200 OK"),
        (b"x-project-id:p\r\nx-user-id:  u ", b"200 OK"),
    ],
)
def test_headers_as_they_come(served: Served, headers: bytes, said: bytes) -> None:
    head = f"GET {ALL} HTTP/1.1\r\nHost: h\r\n".encode()
    assert sent(served.port, head + headers + b"\r\n\r\n").startswith(b"HTTP/1.1 " + said)


def test_many_ask_at_once(served: Served) -> None:
    def work(number: int) -> None:
        ask = served.connect()
        statuses.extend(ask("PUT", f"{ALL}/{number}-{index}")[0] for index in range(6))

    statuses: list[int] = []
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [201] * 48
    assert len(served.connect()("GET", ALL)[1]["tags"]) == 48


def test_schemathesis_finds_nothing(served: Served, tmp_path: Any) -> None:
    """But for names that become too long, which no schema can say: the check for these is out."""
    description = f"http://127.0.0.1:{served.port}/openapi.json"
    who = [part for name, value in P.items() for part in ("--header", f"{name}: {value}")]
    how = ["--exclude-checks", "positive_data_acceptance", "--max-examples", "20", "--seed", "1"]
    command = pathlib.Path(sys.executable).with_name("schemathesis")
    done = subprocess.run(
        [command, "run", description, *who, *how],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "Tested: 7" in done.stdout


def test_it_goes_on_when_the_database_is_in_trouble(url: str, tmp_path: Any) -> None:
    file = option_file(tmp_path, connection=url, poll_interval=0.1)
    engine = sa.create_engine(url)
    rename = "ALTER TABLE {} RENAME TO {}"
    names = [name for name in sa.inspect(engine).get_table_names() if "operation" in name]
    with serving("--config-file", file, "tags", "serve") as served:
        ask = served.connect()
        with engine.begin() as connection:
            connection.exec_driver_sql(rename.format(names[0], "elsewhere"))
        stderr = served.process.stderr
        assert stderr is not None
        assert "Jobs cannot be looked at: the database cannot do it" in stderr.readline()
        status, said = ask("POST", "/servers", {"server": {"name": "vm", "id": "s"}})
        assert (status, "no such table" in str(said)) == (503, False)
        with engine.begin() as connection:
            connection.exec_driver_sql(rename.format("elsewhere", names[0]))
        created = {"server": {"name": "vm", "id": "s", "tags": ["a"]}}
        assert ask("POST", "/servers", created)[0] == 202
        assert until_active(ask) == {"a": "ACTIVE"}
    engine.dispose()


def test_where_others_can_reach_it_nobody_is_trusted_by_itself(url: str) -> None:
    with serving("tags", "serve", "--url", url, "--host", "0.0.0.0") as served:
        assert served.said == f"tags at http://0.0.0.0:{served.port}; Ctrl-C ends it\n"
        status, said = served.connect()("GET", ALL)
        assert (status, "is no trusted proxy" in str(said)) == (401, True)


def test_who_is_configured_counts(url: str, tmp_path: Any) -> None:
    file = option_file(tmp_path, connection=url, trusted_proxies="192.0.2.1")
    with serving("--config-file", file, "tags", "serve", "--host", "localhost") as served:
        assert "believed" not in served.said
        assert served.connect()("GET", ALL)[0] == 401


def test_the_other_protocol(url: str) -> None:
    with serving("tags", "serve", "--url", url, "--host", "::1") as served:
        assert f"tags at http://[::1]:{served.port};" in served.said
        assert served.connect("::1")("GET", ALL)[0] == 404


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--host", "192.0.2.1"], "cannot listen at '192.0.2.1', port 8780: "),
        (["--port", "65536"], "--port 65536 is none: a port is 0 to 65535"),
        (["--port", "-1"], "--port -1 is none: a port is 0 to 65535"),
        (["--host", "no such host"], "--host and --port name others"),
    ],
)
def test_where_it_cannot_listen(steelyard: Any, url: str, argv: list[str], said: str) -> None:
    assert said in steelyard("tags", "serve", "--url", url, *argv)


def test_a_port_that_is_taken(steelyard: Any, url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = steelyard("tags", "serve", "--url", url, "--port", str(port))
    assert "Address already in use" in said


def test_tables_that_are_missing_or_old(steelyard: Any, tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/tags.db"
    assert "let steelyard db upgrade create it" in steelyard("tags", "serve", "--url", url)
    first, *_, newest = (revision for revision, _ in TagStore("sqlite://").history())
    (tmp_path / "tags.db").touch()
    for there in ("none", f"revision {first}"):
        assert steelyard("tags", "serve", "--url", url) == (
            f"steelyard: the database has {there} of the tables of tags, and {newest} is needed: "
            f"steelyard db upgrade --schema tags --url URL\n"
        )
        TagStore(url).upgrade(first)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "no database is named: set connection in [steelyard_tags]"),
        ({"trusted_proxies": "10.0.0.0/99"}, "trusted_proxies in [steelyard_tags]: '10.0.0.0/99'"),
        ({"system_proxies": "10.0.0.1"}, "which is not within trusted_proxies"),
        ({"max_body": "1"}, "Should be greater than or equal to 1024"),
        ({"poll_interval": "0"}, "Should be greater than or equal to 0.1"),
        ({"backend": "none"}, "there is no tag backend 'none'"),
    ],
)
def test_options_that_cannot_be(
    steelyard: Any, url: str, tmp_path: Any, values: Any, said: str
) -> None:
    given = {"connection": url, **values} if values else {}
    file = option_file(tmp_path, **given)
    assert said in steelyard("--config-file", file, "tags", "serve", "--port", "0")


CONFIGURED = """
from steelyard.tags import api
import waitress.server
server = waitress.server.create_server(api.application, host="127.0.0.1", port=0)
print(f":{server.effective_port}", flush=True)
server.run()
"""


def test_a_server_finds_the_application_and_that_its_configuration(url: str, tmp_path: Any) -> None:
    (tmp_path / ".steelyard").mkdir()
    os.rename(
        option_file(tmp_path, connection=url, trusted_proxies="127.0.0.1"),
        tmp_path / ".steelyard" / "steelyard.conf",
    )
    with running([sys.executable, "-c", CONFIGURED], "\n", HOME=str(tmp_path)) as served:
        ask = served.connect()
        assert ask("POST", "/servers", {"server": {"name": "vm", "id": "s"}})[0] == 202
        assert ask("GET", ALL) == (200, {"tags": [], "statuses": {}})
        assert ask("GET", ALL, headers={})[0] == 401
        assert ask("PUT", ALL + "/a")[0] == 201
        assert until_active(ask) == {"a": "ACTIVE"}  # nobody else could look after this backend


EMBEDDED = """
import sys
from oslo_config import cfg
from falcon import testing
from steelyard.tags import api
cfg.CONF(["--config-file", sys.argv[1]], project="ours")
client = testing.TestClient(api.application, headers={"X-Project-Id": "p", "X-User-Id": "u"})
print([client.simulate_get("/servers/s/tags", remote_addr="127.0.0.1").status_code for _ in "ab"])
"""


BROKEN = EMBEDDED.replace(".status_code", ".json")


def test_a_configuration_that_is_wrong_is_told_once_and_serves_nobody(
    url: str, tmp_path: Any
) -> None:
    file = option_file(tmp_path, connection=url, trusted_proxies="nowhere")
    run = subprocess.run(
        [sys.executable, "-c", BROKEN, file], text=True, capture_output=True, check=True
    )
    message = "the service of tags cannot work as it is configured; its log says why"
    assert run.stdout == f"{[{'computeFault': {'code': 500, 'message': message}}] * 2}\n"
    assert run.stderr.count("correct this, and restart it: ") == 1
    assert "'nowhere'" in run.stderr


def test_who_embeds_it_has_read_the_configuration(url: str, tmp_path: Any) -> None:
    file = option_file(tmp_path, connection=url, trusted_proxies="127.0.0.1")
    said = subprocess.check_output([sys.executable, "-c", EMBEDDED, file], text=True)
    assert said == "[404, 404]\n"


@pytest.fixture
def home(url: str, tmp_path: Any) -> str:
    """A directory where oslo.config finds a configuration, with two servers in its database."""
    for server, project in {"s": "p", "other": "q"}.items():
        TagStore(url).register(Instance(server, f"vm-{server}", project, "u"))
    (tmp_path / ".steelyard").mkdir()
    path = tmp_path / ".steelyard" / "steelyard.conf"
    os.rename(option_file(tmp_path, connection=url, trusted_proxies="127.0.0.1"), path)
    with path.open("a") as file:
        file.write("[keystone_authtoken]\nwww_authenticate_uri = http://keystone.invalid\n")
    return str(tmp_path)


def under_gunicorn(home: str, workers: int) -> contextlib.AbstractContextManager[Served]:
    (line,) = re.findall(r"^   gunicorn --workers 4 --bind 10.1.0.9:8780 (\S+)$", *_guide())
    program = pathlib.Path(sys.executable).with_name("gunicorn")
    command = f"exec {program} --workers {workers} --bind 127.0.0.1:0 {line} 2>&1"
    return running(["sh", "-c", command], "Listening at", HOME=home)


def _guide() -> tuple[str, re.RegexFlag]:
    return GUIDE.read_text(), re.MULTILINE


def test_the_workers_of_gunicorn_answer_alike(home: str) -> None:
    with under_gunicorn(home, workers=4) as served:
        for _ in range(20):
            ask = served.connect()
            assert ask("GET", ALL) == (200, {"tags": [], "statuses": {}})
            assert ask("GET", ALL, headers={})[0] == 401
            assert ask("GET", ALL, headers={"X_Project_Id": "p", "X-User-Id": "u"})[0] == 401
            assert ask("GET", "/servers/other/tags")[0] == 404
            assert ask("PUT", ALL + "/a%2Fb")[0] == 400
            assert ask("PUT", ALL, b" " * 65537)[0] == 413
            assert ask("PUT", ALL, iter([b" " * 65537]))[0] == 413


def test_a_worker_of_gunicorn_looks_after_a_backend_in_memory(home: str) -> None:
    with under_gunicorn(home, workers=1) as served:
        ask = served.connect()
        assert ask("PUT", ALL + "/gr%C3%B6%C3%9Fe")[0] == 201
        assert ask("PUT", ALL, iter([b'{"tags": ', b'["a"]}']))[0] == 200
        assert until_active(ask) == {"a": "ACTIVE", "größe": "ACTIVE"}


BEHIND_KEYSTONE = """
import warnings
warnings.simplefilter("ignore")
from falcon import testing
from keystonemiddleware import fixture
with fixture.AuthTokenFixture() as tokens:
    tokens.add_token_data(token_id="t", project_id="p", user_id="u", role_list=["admin"])
    import tags_wsgi
    client = testing.TestClient(lambda environ, start: tags_wsgi.application(environ, start))
    asked = [
        {},
        {"X-Auth-Token": "t"},
        {"X-Auth-Token": "t", "X-Project-Id": "q"},
        {"X-Auth-Token": "t", "X-Tag-Owner": "system"},
        {"X-Auth-Token": "another"},
        {"X-Project-Id": "p", "X-User-Id": "u", "X-Identity-Status": "Confirmed"},
    ]
    for server in ("s", "other"):
        target = f"/servers/{server}/tags/a"
        said = [client.simulate_put(target, headers=each).status_code for each in asked]
        print(server, *said)
"""


def test_behind_keystonemiddleware_as_in_the_guide(home: str) -> None:
    """The token counts, and nothing else: here, even the address is one that is trusted."""
    (block,) = re.findall(r"^   from keystonemiddleware(?:\n|.)+?(?=^\S)", *_guide())
    (pathlib.Path(home) / "tags_wsgi.py").write_text(textwrap.dedent(block))
    said = subprocess.check_output(
        [sys.executable, "-c", BEHIND_KEYSTONE],
        text=True,
        cwd=home,
        env={**os.environ, "HOME": home},
    )
    assert "\ns 401 201 204 401 401 401\n" in f"\n{said}"
    assert "\nother 401 404 404 401 401 401\n" in said
