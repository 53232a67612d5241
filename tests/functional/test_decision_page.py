"""The page that shows a decision: the command that writes it, and the one that serves it."""

import http.client
import json
import logging
import os
import pathlib
import signal
import socket
import stat
import subprocess
import threading
from typing import Any

import falcon.testing
import pytest
from parsed_pages import Page
from served import COMMAND, Served, serving

from steelyard import cli
from steelyard.desk.serving import Names, make_application
from steelyard.desk.watched import WatchedCloud
from steelyard.errors import InvalidCloud
from steelyard.filters import base
from steelyard.scheduler import Cloud, FilterScheduler, Flavor
from steelyard.verdict import PASSED, Verdict

CLOUD = """\
hosts:
  h1: {vcpus: 4, ram_mb: 4096, disk_gb: 100}
  h2: {vcpus: 4, ram_mb: 8192, disk_gb: 100}
aggregates:
  "<b>slow</b>": {hosts: [h2], metadata: {ssd: "<script>alert(1)</script>"}}
flavors:
  small: {vcpus: 1, ram_mb: 1024, disk_gb: 10}
  fast: {vcpus: 1, ram_mb: 1024, disk_gb: 10, extra_specs: {ssd: "!"}}
  huge: {vcpus: 99, ram_mb: 1024, disk_gb: 10}
server_groups:
  apart: {policy: anti-affinity}
"""


@pytest.fixture
def cloud(tmp_path: Any) -> pathlib.Path:
    path = tmp_path / "cloud.yaml"
    path.write_text(CLOUD)
    return pathlib.Path(path)


@pytest.fixture
def steelyard(capsys: Any) -> Any:
    def run(*argv: str) -> tuple[int, str, str]:
        handlers, level = logging.root.handlers[:], logging.root.level
        try:
            status = cli.main(argv)
        finally:
            logging.root.handlers[:] = handlers
            logging.root.setLevel(level)
        return status, *capsys.readouterr()

    return run


# The page as a file


def test_explain_writes_the_page(steelyard: Any, cloud: Any, tmp_path: Any) -> None:
    file = tmp_path / "page.html"
    argv = ["explain", "--cloud", str(cloud), "--flavor", "fast", "--html", str(file)]
    assert steelyard(*argv) == (0, f"the page is in {file}\n", "")
    page = Page(file.read_text("utf-8"))
    assert page.one("h1").text == "fast goes to h1"
    assert page.one("p", "source").text == f"The cloud: {cloud}"
    assert [row[:3] for row in page.rows("matrix")] == [
        ["h1", "", "chosen"],
        ["h2", "<b>slow</b>", "rejected"],
    ]
    assert "ssd=<script>alert(1)</script>" in [each.text for each in page.all("code")]


def test_the_page_of_the_example(steelyard: Any, tmp_path: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    assert steelyard("explain", "--example", "--html", "page.html")[0] == 0
    page = Page(pathlib.Path("page.html").read_text("utf-8"))
    assert page.one("h1").text == "web.small goes to rack2-node2"
    assert page.one("p", "source").text == "The cloud: the cloud that comes with steelyard"


def test_the_page_is_written_also_when_no_host_fits(
    steelyard: Any, cloud: Any, tmp_path: Any
) -> None:
    file = tmp_path / "page.html"
    argv = ["explain", "--cloud", str(cloud), "--flavor", "huge", "--html", str(file)]
    status, out, err = steelyard(*argv)
    assert (status, out) == (1, f"the page is in {file}\n")
    assert err.startswith("steelyard: no valid host: of 2 hosts none fits flavor 'huge'")
    assert Page(file.read_text("utf-8")).one("h1").text == "No host fits huge"


def test_failure_domains_are_on_the_page(steelyard: Any, tmp_path: Any) -> None:
    examples = pathlib.Path(__file__).parents[2] / "docs" / "examples"
    file = tmp_path / "page.html"
    argv = ["--config-file", str(examples / "decision.conf"), "explain", "--flavor", "web.large"]
    argv += ["--cloud", str(examples / "decision.yaml"), "--group", "shop", "--html", str(file)]
    assert steelyard(*argv)[0] == 0
    captions = [each.text for each in Page(file.read_text("utf-8")).all("caption")]
    assert "Failure domains: room, rack" in captions


@pytest.mark.parametrize("coding", ["ascii", "latin-1", "utf-8"])
def test_standard_output_gets_the_page_and_nothing_else(cloud: Any, coding: str) -> None:
    done = subprocess.run(
        [*COMMAND, "explain", "--cloud", "-", "--flavor", "small", "--html", "-"],
        input=cloud.read_bytes(),
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": coding},
    )
    text = done.stdout.decode("utf-8")
    assert text.startswith("<!doctype html>")
    assert text.endswith("</html>\n")
    assert Page(text).one("p", "source").text == "The cloud: standard input"
    assert done.stderr == b""


def test_a_file_that_is_there_is_replaced_as_a_whole(
    steelyard: Any, cloud: Any, tmp_path: Any
) -> None:
    real, link = tmp_path / "real.html", tmp_path / "page.html"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    before = real.stat().st_ino
    argv = ["explain", "--cloud", str(cloud), "--flavor", "small", "--html", str(link)]
    assert steelyard(*argv)[0] == 0
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert real.stat().st_ino != before
    assert real.read_text("utf-8").startswith("<!doctype html>")
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "cloud.yaml",
        "page.html",
        "real.html",
    ]


def test_what_is_no_file_is_written_to(steelyard: Any, cloud: Any, tmp_path: Any) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text("utf-8")))
    reader.start()
    argv = ["explain", "--cloud", str(cloud), "--flavor", "small", "--html", str(pipe)]
    assert steelyard(*argv)[0] == 0
    reader.join()
    assert read[0].startswith("<!doctype html>")
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_page_does_not_take_the_place_of_the_cloud(
    steelyard: Any, cloud: Any, tmp_path: Any, monkeypatch: Any
) -> None:
    link = tmp_path / "page.html"
    link.symlink_to(cloud)
    monkeypatch.chdir(tmp_path)
    for named in (["--cloud", str(cloud)], []):
        status, _, err = steelyard("explain", *named, "--flavor", "small", "--html", str(link))
        assert (status, err) == (
            2,
            f"steelyard: --html {link}: that describes the cloud; name another file\n",
        )
    assert cloud.read_text() == CLOUD


def test_a_page_that_may_not_be_written_is_left_alone(
    steelyard: Any, cloud: Any, tmp_path: Any, monkeypatch: Any
) -> None:
    page = tmp_path / "page.html"
    page.write_text("old")
    monkeypatch.setattr(os, "access", lambda found, mode: False)  # root may write everything
    argv = ["explain", "--cloud", str(cloud), "--flavor", "small", "--html", str(page)]
    status, _, err = steelyard(*argv)
    assert (status, err) == (2, f"steelyard: {page}: cannot be written: Permission denied\n")
    assert page.read_text() == "old"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--html", "{0}/none/page"], "{0}/none/page: cannot be written: No such file"),
        (["--html", "{0}"], "{0}: cannot be written: Is a directory"),
        (["--html", "{0}/page", "-f", "json"], "--html makes a page, no table"),
        (["--html", "{0}/page", "-c", "Host"], "--html makes a page, no table"),
        (["--html", "{0}/page", "--sort-column", "Host"], "--html makes a page, no table"),
        (["--html", "{0}/page", "--flavor", "smal"], "there is no flavor 'smal'; did you mean"),
    ],
)
@pytest.mark.parametrize("flavor", ["small", "huge"])
def test_when_there_can_be_no_page(
    steelyard: Any, cloud: Any, tmp_path: Any, argv: list[str], said: str, flavor: str
) -> None:
    given = [each.format(tmp_path) for each in argv]
    status, out, err = steelyard("explain", "--cloud", str(cloud), "--flavor", flavor, *given)
    assert (status, out) == (2, "")
    assert err.startswith(f"steelyard: {said.format(tmp_path)}")
    assert [each.name for each in tmp_path.iterdir()] == ["cloud.yaml"]


def test_a_page_that_cannot_be_finished_leaves_nothing(
    steelyard: Any, cloud: Any, tmp_path: Any, monkeypatch: Any
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    file = tmp_path / "page.html"
    argv = ["explain", "--cloud", str(cloud), "--flavor", "small", "--html", str(file)]
    assert "cannot be written: No space left on device" in steelyard(*argv)[2]
    assert [each.name for each in tmp_path.iterdir()] == ["cloud.yaml"]


# The application


def client_of(cloud: Any, conf: Any, *names: str) -> falcon.testing.TestClient:
    watched = WatchedCloud(str(cloud), conf)
    application = make_application(watched.scheduler, Names(*(names or ("127.0.0.1",))), str(cloud))
    return falcon.testing.TestClient(application, headers={"Host": "127.0.0.1:8080"})


@pytest.fixture
def client(cloud: Any, conf: Any) -> falcon.testing.TestClient:
    return client_of(cloud, conf)


def asked(client: Any, status: int = 200, **params: str) -> Page:
    answer = client.simulate_get("/", params=params)
    assert answer.status_code == status
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    return Page(answer.text)


def test_the_first_flavor_is_shown_unless_another_is_asked_for(client: Any) -> None:
    page = asked(client)
    assert page.one("h1").text == "small goes to h2"
    assert [each.attributes["value"] for each in page.all("option")] == [
        "small",
        "fast",
        "huge",
        "",
        "apart",
    ]
    page = asked(client, flavor="fast", group="apart")
    assert page.one("h1").text == "fast goes to h1"
    assert [
        each.attributes["value"] for each in page.all("option") if "selected" in each.attributes
    ] == ["fast", "apart"]
    assert asked(client, flavor="fast", group="").one("h1").text == "fast goes to h1"
    assert asked(client, flavor="huge").one("h1").text == "No host fits huge"


def test_it_is_the_page_that_explain_writes(
    client: Any, steelyard: Any, cloud: Any, tmp_path: Any
) -> None:
    file = tmp_path / "page.html"
    steelyard("explain", "--cloud", str(cloud), "--flavor", "fast", "--html", str(file))
    assert asked(client, flavor="fast").one("main").text == Page(file.read_text()).one("main").text


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"flavor": "smal"}, "there is no flavor 'smal'; did you mean 'small'?"),
        ({"flavor": "small", "group": "a"}, "there is no server group 'a'; there are 'apart'"),
        ({"flavor": "<i>\x00\r\n"}, "there is no flavor '<i>\\x00\\r\\n'"),
    ],
)
def test_what_is_not_there(client: Any, params: Any, said: str) -> None:
    page = asked(client, 404, **params)
    assert page.one("h1").text == "There is no such thing in this cloud"
    assert page.one("p", "problem").text.startswith(said)
    assert len(page.all("select")) == 2


def test_what_browsers_are_told(client: Any) -> None:
    for path in ("/", "/none"):
        headers = client.simulate_get(path).headers
        assert headers["content-security-policy"].startswith(
            "default-src 'none'; style-src 'sha256"
        )
        assert headers["content-security-policy"].endswith("; frame-ancestors 'none'")
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "no-referrer"
        assert headers["cache-control"] == "no-store"


def test_it_can_be_read_and_nothing_else(client: Any) -> None:
    head = client.simulate_head("/")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == client.simulate_get("/").headers["content-length"]
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"):
        answer = client.simulate_request(method, "/")
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD")
        assert Page(answer.text).one("p", "problem").text == (
            "This page can be read, and nothing else."
        )


def test_there_is_one_page(client: Any) -> None:
    for path in ("/favicon.ico", "/x", "/%00%ff", "/../etc/passwd"):
        answer = client.simulate_get(path)
        assert answer.status_code == 404
        assert Page(answer.text).one("p", "problem").text == "There is one page here, at /."


@pytest.mark.parametrize(
    ("called", "host", "allowed"),
    [
        ("127.0.0.1", "127.0.0.1:8080", True),
        ("127.0.0.1", "127.0.0.1", True),
        ("127.0.0.1", "localhost:9000", True),  # at the other end of a tunnel
        ("127.0.0.1", "LOCALHOST", True),
        ("127.0.0.1", "[::1]:8080", True),
        ("127.0.0.1", "evil.example:8080", False),
        ("127.0.0.1", "127.0.0.1.evil.example", False),
        ("127.0.0.1", "localhost.evil.example", False),
        ("127.0.0.1", "192.0.2.1", False),
        ("127.0.0.1", "", False),
        ("127.0.0.1", "[::1", False),
        ("127.0.0.1", "evil.example@127.0.0.1/x", True),  # a browser sends no such thing
        ("192.0.2.1", "192.0.2.1:80", True),
        ("192.0.2.1", "localhost", False),
        ("2001:db8::1", "[2001:DB8:0::1]:80", True),
        ("desk.example", "desk.example:8080", True),
        ("desk.example", "Desk.Example", True),
        ("desk.example", "evil.example", False),
        ("0.0.0.0", "192.0.2.1:8080", True),
        ("::", "[2001:db8::1]", True),
        ("::", "localhost", True),
        ("0.0.0.0", "evil.example", False),
    ],
)
def test_it_answers_to_its_own_names_alone(called: str, host: str, allowed: bool) -> None:
    assert (host in Names(called)) is allowed


def test_whoever_means_another_server_is_refused(client: Any) -> None:
    answer = client.simulate_get("/", headers={"Host": "evil.example"})
    assert answer.status_code == 421
    assert Page(answer.text).one("p", "problem").text == (
        "This one is called 127.0.0.1, and is asked for as 'evil.example'. Start it with "
        "--host NAME if NAME is what it should answer to."
    )
    assert Page(answer.text).all("select") == []


def test_the_file_is_read_again_when_it_has_changed(client: Any, cloud: Any) -> None:
    assert asked(client).one("h1").text == "small goes to h2"
    cloud.write_text(CLOUD.replace("ram_mb: 4096", "ram_mb: 65536"))
    assert asked(client).one("h1").text == "small goes to h1"
    cloud.write_text(CLOUD.replace("flavors:", "flavours:"))
    for _ in range(2):
        page = asked(client, 503)
        assert page.one("h1").text == "The cloud cannot be read"
        assert page.one("p", "problem").text == (
            f"{cloud}:6: flavours: unknown key 'flavours'; did you mean 'flavors'?"
        )
    cloud.unlink()
    assert "No such file" in asked(client, 503).one("p", "problem").text
    cloud.write_text(CLOUD)
    assert asked(client).one("h1").text == "small goes to h2"


def test_the_file_is_not_read_again_when_it_has_not_changed(cloud: Any, conf: Any) -> None:
    watched = WatchedCloud(str(cloud), conf)
    first = watched.scheduler()
    assert watched.scheduler() is first
    cloud.touch()
    assert watched.scheduler() is not first


def test_a_file_that_cannot_be_read_to_begin_with(tmp_path: Any, conf: Any) -> None:
    with pytest.raises(InvalidCloud, match="none: No such file"):
        WatchedCloud(str(tmp_path / "none"), conf)


def test_a_policy_that_is_not_supported_is_an_answer(cloud: Any, configured: Any) -> None:
    conf = configured("enabled_filters = CapacityFilter")
    page = asked(client_of(cloud, conf), flavor="small", group="apart")
    assert page.one("h1").text == "The policy of the group is not supported"
    assert "needs the filter 'ServerGroupAntiAffinityFilter'" in page.one("p", "problem").text
    assert len(page.all("select")) == 2


def test_a_cloud_without_flavors(tmp_path: Any, conf: Any) -> None:
    path = tmp_path / "cloud.json"
    path.write_text(json.dumps({"hosts": {}}))
    page = asked(client_of(path, conf))
    assert page.one("h1").text == "The cloud has no flavors"
    assert page.one("p", "problem").text == f"Describe one under flavors in {path}."


class Failing(base.Filter):
    """Fails when it is asked why."""

    def examine(self, host: object, request: object) -> Verdict:
        raise ValueError("<b>bad</b>\x1b[31m\n")

    def host_passes(self, host: object, request: object) -> bool:
        return PASSED.passed


def test_a_filter_that_fails_is_shown(client: Any, cloud: Any, conf: Any) -> None:
    scheduler = FilterScheduler(Cloud.load(cloud), conf)
    scheduler.filters = {"Failing": Failing()}
    application = make_application(lambda: scheduler, Names("localhost"))
    page = asked(falcon.testing.TestClient(application, headers={"Host": "localhost"}), 500)
    assert page.one("h1").text == "A plugin has failed"
    assert page.one("p", "problem").text == (
        "the filter 'Failing' has failed: ValueError: <b>bad</b>\\x1b[31m\\n"
    )


def test_what_nobody_has_foreseen(caplog: Any, conf: Any) -> None:
    def fail() -> FilterScheduler:
        raise RuntimeError("secret\x1b[31m\nforged line")

    client = falcon.testing.TestClient(
        make_application(fail, Names("localhost")), headers={"Host": "localhost"}
    )
    page = asked(client, 500)
    assert page.one("p", "problem").text == "The log of the server says more."
    assert "secret" not in page.one("body").text
    (record,) = caplog.records
    assert "RuntimeError: 'secret\\x1b[31m\\nforged line'" in record.getMessage()
    assert "in fail" in record.getMessage()


def test_names_of_a_cloud_that_is_no_file(conf: Any) -> None:
    """Values may hold what no file can."""
    cloud = Cloud({}, flavors={"\ud800": Flavor("\ud800", 1, 1, 1)})
    scheduler = FilterScheduler(cloud, conf)
    application = make_application(lambda: scheduler, Names("localhost"))
    client = falcon.testing.TestClient(application, headers={"Host": "localhost"})
    assert asked(client).one("h1").text == "No host fits \\ud800"


# The command


def ask(served: Served, target: str, host: str = "127.0.0.1", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(host, served.port, timeout=20)
    connection.request("GET", target, headers=headers)
    answer = connection.getresponse()
    said = answer.status, answer.read().decode()
    connection.close()
    return said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_until_it_is_told_to_end(cloud: Any, number: int) -> None:
    with serving("serve", "--cloud", str(cloud)) as served:
        assert served.said == f"decisions at http://127.0.0.1:{served.port}; Ctrl-C ends it\n"
        status, text = ask(served, "/?flavor=fast")
        assert (status, Page(text).one("h1").text) == (200, "fast goes to h1")
        assert ask(served, "/", Host="evil.example")[0] == 421
        assert ask(served, "/", Host="localhost")[0] == 200
        served.process.send_signal(number)
        out, err = served.process.communicate(timeout=20)
        assert (served.process.returncode, out, err) == (0, "", "")


def test_the_usual_file_and_the_example(cloud: Any) -> None:
    with serving("serve", cwd=cloud.parent) as served:
        assert Page(ask(served, "/")[1]).one("p", "source").text == "The cloud: cloud.yaml"
    with serving("serve", "--example") as served:
        assert Page(ask(served, "/")[1]).one("h1").text == "web.small goes to rack2-node2"


def test_a_name_that_is_given(cloud: Any) -> None:
    with serving("serve", "--cloud", str(cloud), "--host", "localhost") as served:
        assert ask(served, "/", Host="localhost")[0] == 200
        assert ask(served, "/", Host="evil.example")[0] == 421


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ("0", "steelyard: everybody who reaches 0.0.0.0 sees the whole cloud\n"),
        ("::", "steelyard: everybody who reaches :: sees the whole cloud\n"),
        ("127.0.0.2", ""),
        ("localhost", ""),
        ("::1", ""),
    ],
)
def test_who_can_see_the_cloud_is_told(cloud: Any, host: str, told: str) -> None:
    with serving("serve", "--cloud", str(cloud), "--host", host) as served:
        served.process.terminate()
        assert served.process.communicate(timeout=20)[1] == told


def test_the_other_protocol(cloud: Any) -> None:
    with serving("serve", "--cloud", str(cloud), "--host", "::1") as served:
        assert f"decisions at http://[::1]:{served.port};" in served.said
        assert ask(served, "/", "::1")[0] == 200


def test_many_ask_while_the_file_changes(cloud: Any) -> None:
    statuses: list[int] = []
    flavors = ["small", "fast", "huge"]

    def work(served: Served, number: int) -> None:
        statuses.extend(
            ask(served, f"/?flavor={flavors[(number + index) % 3]}")[0] for index in range(6)
        )

    with serving("serve", "--cloud", str(cloud)) as served:
        threads = [threading.Thread(target=work, args=(served, each)) for each in range(4)]
        for thread in threads:
            thread.start()
        for number in range(10):
            new = cloud.with_suffix(".new")
            new.write_text(CLOUD + "#" * number)
            os.replace(new, cloud)
        for thread in threads:
            thread.join()
    assert statuses == [200] * 24


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--port", "65536"], "--port 65536 is none: a port is 0 to 65535"),
        (["--host", "192.0.2.1"], "cannot listen at '192.0.2.1', port 8080: "),
        (["--host", "..é"], "cannot listen at '..é', port 8080: "),
        (["--host", ""], "--host '' is none: give an address or a name, 0.0.0.0 for all"),
    ],
)
def test_where_it_cannot_listen(steelyard: Any, cloud: Any, argv: Any, said: str) -> None:
    status, _, err = steelyard("serve", "--cloud", str(cloud), *argv)
    assert status == 2
    assert said in err


def test_a_port_that_is_taken(steelyard: Any, cloud: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "Address already in use" in steelyard("serve", "--example", "--port", port)[2]


def test_a_cloud_that_cannot_be_read_is_told_at_once(steelyard: Any, tmp_path: Any) -> None:
    status, _, err = steelyard("serve", "--cloud", str(tmp_path / "none.yaml"))
    assert (status, err) == (2, f"steelyard: {tmp_path}/none.yaml: No such file or directory\n")
