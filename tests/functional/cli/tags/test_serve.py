"""``steelyard tags serve``: the HTTP API of instance tags in its own process."""

import contextlib
import itertools
import pathlib
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa

from steelyard import cli
from steelyard.tags import TagStore
from support.cli.served_command import COMMAND
from support.examples import examples
from support.tags.api_process import ALL, P, option_file, running, until_active
from support.tags.databases import upgrade
from support.web.api_process import Served

pytestmark = pytest.mark.usefixtures("closed_databases")

SERVE = ("tags", "serve")
NUMBERS = itertools.count()


def serving(*argv: str) -> contextlib.AbstractContextManager[Served]:
    return running([*COMMAND, *argv, "--port", "0"], "Ctrl-C")


@pytest.fixture
def steelyard(capsys: Any) -> Any:
    """Return a function that runs a command that cannot serve, and returns what it reports."""

    def run(*argv: str) -> str:
        assert cli.main(argv) == 2
        return str(capsys.readouterr().err)

    return run


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_runs_until_a_signal(url: str, tmp_path: Any, number: int) -> None:
    file = option_file(tmp_path, connection=url, poll_interval=0.1)
    with serving("--config-file", file, "tags", "serve") as served:
        assert served.said.splitlines() == [
            "requests from this machine are trusted to set X-Project-Id and X-User-Id: "
            "trusted_proxies in [steelyard_tags] is empty",
            f"serving the tags API at http://127.0.0.1:{served.port}; press Ctrl-C to stop",
        ]
        ask = served.connect()
        created = {"server": {"name": "vm", "id": "s", "tags": ["a"]}}
        assert ask("POST", "/servers", created)[0] == 202
        assert until_active(ask) == {"a": "ACTIVE"}
        served.process.send_signal(number)
        out, err = served.process.communicate(timeout=20)
        assert (served.process.returncode, out, err) == (0, "", "")
    # A restarted service has the same tags.
    with serving("tags", "serve", "--url", url) as served:
        assert served.connect()("DELETE", ALL + "/a")[0] == 204


def test_serve_ends_unfinished_operations_after_a_kill(url: str, tmp_path: Any) -> None:
    """Check that operations of a lost backend in memory fail after a restart."""
    created = {"server": {"name": "vm", "id": "s", "tags": ["a"]}}
    other = {"server": {"name": "vm-2", "id": "s2"}}
    with serving(
        "--config-file", option_file(tmp_path, poll_interval=60, connection=url), *SERVE
    ) as served:
        ask = served.connect()
        assert ask("POST", "/servers", other)[0] == 202
        assert ask("PUT", "/servers/s2/tags/a")[0] == 201  # which polls the creation
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


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Yield a process for all tests that do not stop it."""
    url = f"sqlite:///{tmp_path_factory.mktemp('served')}/tags.db"
    with TagStore(url) as store:
        upgrade(store)
    with serving("tags", "serve", "--url", url) as served:
        yield served


@pytest.fixture
def tags(served: Served) -> str:
    """Return the path of the tags of a new server."""
    number = next(NUMBERS)
    created = {"server": {"name": f"vm-{number}", "id": f"s{number}"}}
    assert served.connect()("POST", "/servers", created)[0] == 202
    return f"/servers/s{number}/tags"


def test_connection_stays_open_for_all_requests(served: Served, tags: str) -> None:
    """Check every request but those answered 204, after which waitress closes the connection."""
    ask = served.connect()
    ask("GET", tags)
    sock = ask.http.sock
    assert ask("HEAD", tags) == (200, None)
    assert ask("HEAD", tags + "/x") == (404, None)
    assert ask("OPTIONS", tags) == (200, None)
    assert ask("PUT", tags + "/a") == (201, None)
    assert ask("PUT", tags, b'{"tags": ["\xff"]}')[0] == 400
    assert ask("PATCH", tags, {"tags": []})[0] == 405
    assert ask("BREW", tags)[0] == 400
    assert ask("DELETE", tags + "/x", {"not": "read"})[0] == 404
    assert ask("GET", tags)[1]["tags"] == ["a"]
    assert ask.http.sock is sock


def test_serve_decodes_tags_in_paths(served: Served, tags: str) -> None:
    ask = served.connect()
    odd = "/%F0%9F%98%80%20%2B%25"
    assert [ask("PUT", tags + odd)[0] for _ in "ab"] == [201, 204]
    assert ask("HEAD", tags + odd) == (204, None)
    for target in ("/a%2Fb", "/%2e%2e%2ftags", "/%FF", "/a%0Ab", "/"):
        assert ask("PUT", tags + target)[0] == 400
    for name in ("..", ".", "%2e%2e", "tags"):
        assert ask("PUT", f"{tags}/{name}")[0] in (201, 204)
    assert sorted(ask("GET", tags)[1]["tags"]) == [".", "..", "tags", "\N{GRINNING FACE} +%"]


def test_serve_reads_chunked_bodies(served: Served, tags: str) -> None:
    ask = served.connect()
    assert ask("PUT", tags, iter([b'{"tags": ', b'["a"]}']))[1]["tags"] == ["a"]
    status, said = ask("PUT", tags, iter([b" " * 65536, b'{"tags": []}']))
    assert (status, said["overLimit"]["message"]) == (
        413,
        "request too large: expected at most 65536 bytes",
    )
    assert ask("PUT", tags, b" " * 65537)[0] == 413
    assert ask("GET", tags)[1]["tags"] == ["a"]


def test_serve_rejects_a_huge_body_unread(served: Served, tags: str) -> None:
    head = f"PUT {tags} HTTP/1.1\r\nHost: h\r\nContent-Length: 999999999\r\n\r\n"
    assert sent(served.port, head.encode()).startswith(b"HTTP/1.1 413 ")


def sent(port: int, data: bytes) -> bytes:
    """Return the first part of the response to these bytes."""
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
def test_serve_authenticates_by_exact_headers(
    served: Served, tags: str, headers: bytes, said: bytes
) -> None:
    head = f"GET {tags} HTTP/1.1\r\nHost: h\r\n".encode()
    assert sent(served.port, head + headers + b"\r\n\r\n").startswith(b"HTTP/1.1 " + said)


def test_serve_answers_concurrent_requests(served: Served, tags: str) -> None:
    def work(number: int) -> None:
        ask = served.connect()
        statuses.extend(ask("PUT", f"{tags}/{number}-{index}")[0] for index in range(6))

    statuses: list[int] = []
    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert statuses == [201] * 48
    assert len(served.connect()("GET", tags)[1]["tags"]) == 48


def test_schemathesis_finds_no_violation_of_the_schema(served: Served, tmp_path: Any) -> None:
    """Run all checks but the one that fails for names whose encoding is too long."""
    description = f"http://127.0.0.1:{served.port}/openapi.json"
    who = [part for name, value in P.items() for part in ("--header", f"{name}: {value}")]
    how = [
        "--exclude-checks",
        "positive_data_acceptance",
        "--max-examples",
        str(examples(6)),
        "--seed",
        "1",
    ]
    command = pathlib.Path(sys.executable).with_name("schemathesis")
    done = subprocess.run(
        [command, "run", description, *who, *how],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "Tested: 11" in done.stdout


def test_serve_continues_after_a_database_failure(url: str, tmp_path: Any) -> None:
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
        assert "Cannot process the backend's jobs: database error" in stderr.readline()
        status, said = ask("POST", "/servers", {"server": {"name": "vm", "id": "s"}})
        assert (status, "no such table" in str(said)) == (503, False)
        with engine.begin() as connection:
            connection.exec_driver_sql(rename.format("elsewhere", names[0]))
        created = {"server": {"name": "vm", "id": "s", "tags": ["a"]}}
        assert ask("POST", "/servers", created)[0] == 202
        assert until_active(ask) == {"a": "ACTIVE"}
    engine.dispose()


def test_serve_on_a_public_address_trusts_no_proxy(url: str) -> None:
    with serving("tags", "serve", "--url", url, "--host", "0.0.0.0") as served:
        assert (
            served.said
            == f"serving the tags API at http://0.0.0.0:{served.port}; press Ctrl-C to stop\n"
        )
        status, said = served.connect()("GET", ALL)
        assert (status, "is not a trusted proxy" in str(said)) == (401, True)


def test_configured_proxies_replace_the_trust_in_this_machine(url: str, tmp_path: Any) -> None:
    file = option_file(tmp_path, connection=url, trusted_proxies="192.0.2.1")
    with serving("--config-file", file, "tags", "serve", "--host", "localhost") as served:
        assert "trusted" not in served.said
        assert served.connect()("GET", ALL)[0] == 401


def test_serve_listens_on_ipv6(url: str) -> None:
    with serving("tags", "serve", "--url", url, "--host", "::1") as served:
        assert f"serving the tags API at http://[::1]:{served.port};" in served.said
        assert served.connect("::1")("GET", ALL)[0] == 404


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--host", "192.0.2.1"], "cannot listen on '192.0.2.1', port 8780: "),
        (["--port", "65536"], "invalid --port 65536: expected 0 to 65535"),
        (["--port", "-1"], "invalid --port -1: expected 0 to 65535"),
        (["--host", "no such host"], "; change --host or --port"),
    ],
)
def test_serve_reports_an_invalid_address(
    steelyard: Any, url: str, argv: list[str], said: str
) -> None:
    assert said in steelyard("tags", "serve", "--url", url, *argv)


def test_serve_reports_a_port_in_use(steelyard: Any, url: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        said = steelyard("tags", "serve", "--url", url, "--port", str(port))
    assert "Address already in use" in said


def test_serve_reports_missing_or_outdated_tables(steelyard: Any, tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/tags.db"
    assert "create the file with 'steelyard db upgrade'" in steelyard("tags", "serve", "--url", url)
    first, *_, newest = (revision for revision, _ in TagStore("sqlite://").history())
    (tmp_path / "tags.db").touch()
    for state in ("missing", f"at revision {first}"):
        assert steelyard("tags", "serve", "--url", url) == (
            f"steelyard: the tables of tags are {state}, and revision {newest} is needed: run "
            "'steelyard db upgrade --schema tags --url URL'\n"
        )
        TagStore(url).upgrade(first)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({}, "missing --url: name the tag database, or set connection in [steelyard_tags]"),
        ({"trusted_proxies": "10.0.0.0/99"}, "trusted_proxies in [steelyard_tags]: '10.0.0.0/99'"),
        ({"system_proxies": "10.0.0.1"}, "not within trusted_proxies"),
        ({"max_body": "1"}, "max_body = '1': expected a whole number of at least 1024"),
        ({"poll_interval": "0"}, "poll_interval = '0': expected a finite number of at least 0.1"),
        (
            {"trusted_proxies": "$x"},
            "trusted_proxies = '$x': unknown option 'x' after '$'; write $$ for",
        ),
        (
            {"backend": "$x"},
            "backend = '$x': unknown option 'x' after '$'; write $$ for a literal $",
        ),
        ({"backend": "none"}, "no tag backend 'none'"),
    ],
)
def test_serve_reports_invalid_options(
    steelyard: Any, url: str, tmp_path: Any, values: Any, said: str
) -> None:
    given = {"connection": url, **values} if values else {}
    file = option_file(tmp_path, **given)
    assert said in steelyard("--config-file", file, "tags", "serve", "--port", "0")
