"""``steelyard consumer serve``: the HTTP API of consumers in its own process."""

import pathlib
import signal
import socket
import subprocess
from typing import Any

import pytest

from steelyard import cli
from steelyard.consumers import ConsumerStore
from support.cli.served_command import COMMAND
from support.consumers.in_process_api import CONSUMER, PROVIDER, headers
from support.web.api_process import running

SERVE = ("consumer", "serve")
BODY = {
    "allocations": {PROVIDER: {"resources": {"VCPU": 2}}},
    "project_id": "p",
    "user_id": "u",
    "consumer_generation": None,
    "consumer_type": "INSTANCE",
}


@pytest.fixture
def url(tmp_path: pathlib.Path) -> str:
    made = f"sqlite:///{tmp_path}/consumers.db"
    with ConsumerStore(made) as store:
        store.upgrade()
    return made


def test_serve_runs_until_a_signal(url: str, tmp_path: pathlib.Path) -> None:
    file = tmp_path / "consumers.conf"
    file.write_text(f"[steelyard_consumers]\nconnection = {url}\nmax_body = 2048\n")
    argv = [*COMMAND, "--config-file", str(file), *SERVE, "--port", "0"]
    with running(argv, "Ctrl-C", dict(headers())) as served:
        assert served.said.splitlines() == [
            "requests from this machine are trusted to set X-Project-Id, X-User-Id and X-Roles: "
            "trusted_proxies in [steelyard_consumers] is empty",
            f"serving the consumers API at http://127.0.0.1:{served.port}; press Ctrl-C to stop",
        ]
        ask = served.connect()
        assert ask("PUT", f"/allocations/{CONSUMER}", BODY) == (204, None)
        used = {"INSTANCE": {"consumer_count": 1, "VCPU": 2}}
        assert ask("GET", "/usages?project_id=p") == (200, {"usages": used})
        assert ask("PUT", f"/allocations/{CONSUMER}", b" " * 2049)[0] == 413
        assert ask("PUT", f"/allocations/{CONSUMER}", iter([b" " * 2049]))[0] == 413
        served.process.send_signal(signal.SIGTERM)
        out, err = served.process.communicate(timeout=60)
        assert (served.process.returncode, out, err) == (0, "", "")


def test_serve_without_a_loopback_address_trusts_nobody(url: str) -> None:
    argv = [*COMMAND, *SERVE, "--url", url, "--host", "0.0.0.0", "--port", "0"]
    with running(argv, "Ctrl-C", dict(headers())) as served:
        assert "trusted" not in served.said
        assert served.connect()("GET", "/usages?project_id=p")[0] == 401


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ((), "missing --url: name the consumer database, or set connection in"),
        (("--url", "sqlite:///missing.db"), "no file '{here}/missing.db': correct the path"),
        (("--url", "postgresql://u:secret@h/d"), "cannot use a password on the command line"),
        (("--url", "sqlite://"), "the tables of consumers are missing, and revision 00"),
        (
            ("--url", "sqlite:///:memory:"),
            "the tables of consumers are missing, and revision 0010 is needed: a database in memory "
            "begins without tables; name a file in the URL",
        ),
        (("--port", "70000"), "invalid --port 70000"),
    ],
)
def test_serve_reports_why_it_cannot_start(
    url: str,
    argv: tuple[str, ...],
    message: str,
    capsys: Any,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    database = ("--url", url) if "--port" in argv else ()
    assert cli.main([*SERVE, *database, *argv]) == 2
    expected = message.format(here=tmp_path)
    assert f"steelyard: {expected}" in capsys.readouterr().err


def test_occupied_port_is_reported(url: str, capsys: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = str(other.getsockname()[1])
        assert cli.main([*SERVE, "--url", url, "--port", port]) == 2
    assert f"cannot listen on '127.0.0.1', port {port}: " in capsys.readouterr().err


def test_unknown_option_is_reported(tmp_path: pathlib.Path) -> None:
    file = tmp_path / "consumers.conf"
    file.write_text("[steelyard_consumers]\nconnections = sqlite://\n")
    done = subprocess.run(
        [*COMMAND, "--config-file", str(file), *SERVE],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "[steelyard_consumers] connections; did you mean 'connection'" in done.stderr
