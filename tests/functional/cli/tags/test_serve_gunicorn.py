"""The HTTP API of instance tags under gunicorn, keystonemiddleware and others, as in the guide."""

import contextlib
import os
import pathlib
import re
import socket
import subprocess
import sys
import textwrap
import threading
from typing import Any

import pytest
import trustme
from oslo_config import cfg

from steelyard import conf as options
from steelyard.tags import TagService, TagStore, deadlines
from steelyard.tags.backends.base import BackendIdentity
from steelyard.tags.http import client
from steelyard.tags.states.values import Instance
from support.repository import DOCS
from support.tags.api_process import ALL, P, option_file, running, until_active
from support.tags.fake_ganeti import CLUSTER, Ganeti
from support.tags.fake_ganeti import served as serving_ganeti
from support.web.api_process import Served, under_gunicorn

pytestmark = pytest.mark.usefixtures("closed_databases")

GUIDE = DOCS / "guides" / "serve-tags.rst"


CONFIGURED = """
from steelyard.tags.http import api
import waitress.server
server = waitress.server.create_server(api.application, host="127.0.0.1", port=0)
print(f":{server.effective_port}", flush=True)
server.run()
"""


def test_imported_application_reads_the_default_configuration(url: str, tmp_path: Any) -> None:
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
        assert until_active(ask) == {"a": "ACTIVE"}  # no other process can poll this backend


EMBEDDED = """
import sys
from oslo_config import cfg
from falcon import testing
from steelyard.tags.http import api
cfg.CONF(["--config-file", sys.argv[1]], project="ours")
client = testing.TestClient(api.application, headers={"X-Project-Id": "p", "X-User-Id": "u"})
print([client.simulate_get("/servers/s/tags", remote_addr="127.0.0.1").status_code for _ in "ab"])
"""


BROKEN = EMBEDDED.replace(".status_code", ".json")


def test_invalid_configuration_is_reported_once_and_stops_the_server(
    url: str, tmp_path: Any
) -> None:
    file = option_file(tmp_path, connection=url, trusted_proxies="nowhere")
    run = subprocess.run(
        [sys.executable, "-c", BROKEN, file], text=True, capture_output=True, check=True
    )
    message = "the tag service is misconfigured; see its log"
    assert run.stdout == f"{[{'computeFault': {'code': 500, 'message': message}}] * 2}\n"
    assert run.stderr.count("correct its configuration and restart it: ") == 1
    assert "'nowhere'" in run.stderr


def test_embedding_program_passes_its_configuration(url: str, tmp_path: Any) -> None:
    file = option_file(tmp_path, connection=url, trusted_proxies="127.0.0.1")
    said = subprocess.check_output([sys.executable, "-c", EMBEDDED, file], text=True)
    assert said == "[404, 404]\n"


@pytest.fixture
def home(url: str, tmp_path: Any) -> str:
    """Return a home directory with a configuration, whose database has two servers."""
    for server, project in {"s": "p", "other": "q"}.items():
        TagStore(url).register(Instance(server, f"vm-{server}", project, "u"))
    (tmp_path / ".steelyard").mkdir()
    path = tmp_path / ".steelyard" / "steelyard.conf"
    os.rename(option_file(tmp_path, connection=url, trusted_proxies="127.0.0.1"), path)
    with path.open("a") as file:
        file.write("[keystone_authtoken]\nwww_authenticate_uri = http://keystone.invalid\n")
    return str(tmp_path)


def guides_gunicorn() -> tuple[dict[str, str], str]:
    """Return the options in the guide's command for gunicorn, and its application."""
    (line,) = re.findall(r"^   gunicorn (.+)$", *_guide())
    *words, application = line.split()
    return dict(zip(words[::2], words[1::2], strict=True)), application


def guides_service(home: str, **changed: object) -> contextlib.AbstractContextManager[Served]:
    found, application = guides_gunicorn()
    assert found["--bind"] == "10.1.0.9:8780"
    given = {f"--{name.replace('_', '-')}": value for name, value in changed.items()}
    return under_gunicorn(application, P, {**found, **given}, HOME=home)


def _guide() -> tuple[str, re.RegexFlag]:
    return GUIDE.read_text(), re.MULTILINE


def test_workers_of_gunicorn_share_the_database(home: str) -> None:
    with guides_service(home, workers=4) as served:
        for _ in range(20):
            ask = served.connect()
            assert ask("GET", ALL) == (200, {"tags": [], "statuses": {}})
            assert ask("GET", ALL, headers={})[0] == 401
            assert ask("GET", ALL, headers={"X_Project_Id": "p", "X-User-Id": "u"})[0] == 401
            assert ask("GET", "/servers/other/tags")[0] == 404
            assert ask("PUT", ALL + "/a%2Fb")[0] == 400
            # gunicorn may close a connection whose body was not read to the end.
            assert served.connect()("PUT", ALL, b" " * 65537)[0] == 413
            assert served.connect()("PUT", ALL, iter([b" " * 65537]))[0] == 413


def test_worker_of_gunicorn_polls_the_backend_in_memory(home: str) -> None:
    with guides_service(home, workers=1) as served:
        ask = served.connect()
        assert ask("PUT", ALL + "/gr%C3%B6%C3%9Fe")[0] == 201
        assert ask("PUT", ALL, iter([b'{"tags": ', b'["a"]}']))[0] == 200
        assert until_active(ask) == {"a": "ACTIVE", "größe": "ACTIVE"}


def test_timeouts_of_gunicorn_and_client_exceed_the_request_timeout(conf: cfg.ConfigOpts) -> None:
    group = options.register_tags(conf)
    guides, _ = guides_gunicorn()
    longest = group.request_timeout + TagService._record_for
    assert int(guides["--timeout"]) > longest
    assert int(guides["--graceful-timeout"]) > longest
    assert longest < client._TIMEOUT
    assert group.request_timeout == deadlines.REQUEST_TIMEOUT
    assert f"**{longest:.0f} seconds**" in GUIDE.read_text()


def over_ganeti(home: str, url: str, **more: object) -> None:
    """Configure the backend ganeti, with a thirtieth of the default for requests."""
    TagStore(f"sqlite:///{home}/tags.db").move_to_backend(BackendIdentity("ganeti", CLUSTER))
    path = pathlib.Path(home) / ".steelyard" / "steelyard.conf"
    ganeti = {
        "backend": "ganeti",
        "ganeti_url": url,
        "ganeti_user": "steelyard",
        "ganeti_password": "hunter2",
        "request_timeout": 3.0,
        "ganeti_connect_timeout": 1.5,
        "ganeti_timeout": 1.5,
        **more,
    }
    lines = "".join(f"{name} = {value}\n" for name, value in ganeti.items())
    path.write_text(path.read_text().replace("[keystone", f"{lines}[keystone"))
    path.chmod(0o600)


def test_slow_backend_under_gunicorn_is_a_503_in_json_within_the_request_timeout(
    home: str,
) -> None:
    """Check responses just before ganeti_timeout, with limits of a thirtieth of the guide's."""
    guides, _ = guides_gunicorn()
    limit = int(guides["--timeout"]) // 30
    authority = trustme.CA()
    authority.cert_pem.write_to_path(f"{home}/ca.pem")
    backend = Ganeti(delay=1.4, instances={"vm-s": []})
    with serving_ganeti(backend, authority.issue_cert("127.0.0.1")):
        over_ganeti(home, backend.url, ganeti_ca=f"{home}/ca.pem")
        with guides_service(home, workers=1, timeout=limit, graceful_timeout=limit) as service:
            # After the limit, gunicorn would kill the worker before it responds.
            status, said = service.connect()("PUT", f"{ALL}/a")
            assert (status, list(said)) == (503, ["serviceUnavailable"])


def test_backend_that_hangs_under_gunicorn_is_a_503_in_json(home: str) -> None:
    """Check a silent backend, with limits of a thirtieth of the guide's and the defaults."""
    guides, _ = guides_gunicorn()
    limit = int(guides["--timeout"]) // 30
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts, and never answers
        over_ganeti(home, f"https://127.0.0.1:{silent.getsockname()[1]}")
        with guides_service(home, workers=1, timeout=limit, graceful_timeout=limit) as served:

            def add(name: str) -> None:
                answers.append(served.connect()("PUT", f"{ALL}/{name}"))

            answers: list[tuple[int, Any]] = []
            threads = [threading.Thread(target=add, args=(f"t{number}",)) for number in range(8)]
            for thread in threads:
                thread.start()
            assert served.connect()("GET", ALL)[0] == 200  # others are answered meanwhile
            for thread in threads:
                thread.join()
            assert [status for status, _ in answers] == [503] * 8
            for _, said in answers:
                assert "the backend is unreachable" in said["serviceUnavailable"]["message"]
            assert served.connect()("GET", ALL)[1]["tags"] == []


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


def test_application_behind_keystonemiddleware_works_as_in_the_guide(home: str) -> None:
    """Check that only the token authenticates, even from a trusted address."""
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
