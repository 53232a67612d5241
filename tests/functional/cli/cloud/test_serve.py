"""``steelyard serve``: the page as a process of its own."""

import http.client
import os
import signal
import socket
import threading
from typing import Any

import pytest

from support.cli.served_command import Served, serving
from support.page.parsed_pages import Page
from support.page.shown_cloud import CLOUD


def ask(served: Served, target: str, host: str = "127.0.0.1", **headers: str) -> tuple[int, str]:
    connection = http.client.HTTPConnection(host, served.port, timeout=20)
    connection.request("GET", target, headers=headers)
    answer = connection.getresponse()
    said = answer.status, answer.read().decode()
    connection.close()
    return said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_runs_until_a_signal(cloud: Any, number: int) -> None:
    with serving("serve", "--cloud", str(cloud)) as served:
        assert (
            served.said
            == f"serving the page at http://127.0.0.1:{served.port}; press Ctrl-C to stop\n"
        )
        status, text = ask(served, "/?flavor=fast")
        assert (status, Page(text).one("h1").text) == (200, "fast goes to h1")
        assert ask(served, "/", Host="evil.example")[0] == 421
        assert ask(served, "/", Host="localhost")[0] == 200
        served.process.send_signal(number)
        out, err = served.process.communicate(timeout=20)
        assert (served.process.returncode, out, err) == (0, "", "")


def test_serve_reads_the_usual_file_or_the_example(cloud: Any) -> None:
    with serving("serve", cwd=cloud.parent) as served:
        source = Page(ask(served, "/")[1]).one("p", "source").text
        assert source.startswith("The cloud: cloud.yaml, modified ")
    with serving("serve", "--example") as served:
        assert Page(ask(served, "/")[1]).one("h1").text == "web.small goes to rack2-node2"


def test_serve_shows_the_command_for_the_same_cloud_and_options(tmp_path: Any) -> None:
    conf = tmp_path / "racks.conf"
    conf.write_text("[steelyard]\n")
    with serving("--config-file", str(conf), "serve", "--example") as served:
        page = Page(ask(served, "/whatif?change=--force+hdd-rack-1")[1])
    assert page.by_id("command").text == (
        f"steelyard --config-file {conf} whatif --example --force hdd-rack-1"
    )


def test_serve_accepts_the_given_host_name(cloud: Any) -> None:
    with serving("serve", "--cloud", str(cloud), "--host", "localhost") as served:
        assert ask(served, "/", Host="localhost")[0] == 200
        assert ask(served, "/", Host="evil.example")[0] == 421
        served.process.terminate()
        assert served.process.communicate(timeout=20)[1] == ""


@pytest.mark.parametrize(
    ("host", "told"),
    [
        ("0", "steelyard: everyone who can reach 0.0.0.0 can see the whole cloud\n"),
        ("::", "steelyard: everyone who can reach :: can see the whole cloud\n"),
        ("127.0.0.2", ""),
    ],
)
def test_serve_warns_when_others_can_reach_the_page(cloud: Any, host: str, told: str) -> None:
    with serving("serve", "--cloud", str(cloud), "--host", host) as served:
        served.process.terminate()
        assert served.process.communicate(timeout=20)[1] == told


def test_serve_listens_on_ipv6(cloud: Any) -> None:
    with serving("serve", "--cloud", str(cloud), "--host", "::1") as served:
        assert f"serving the page at http://[::1]:{served.port};" in served.said
        assert ask(served, "/", "::1")[0] == 200
        served.process.terminate()
        assert served.process.communicate(timeout=20)[1] == ""


def test_serve_answers_while_the_file_changes(cloud: Any) -> None:
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
        (["--port", "65536"], "invalid --port 65536: expected 0 to 65535"),
        (["--host", "192.0.2.1"], "cannot listen on '192.0.2.1', port 8080: "),
        (["--host", "..é"], "cannot listen on '..é', port 8080: "),
        (["--host", ""], "invalid --host '': expected an address or a name; 0.0.0.0 means all"),
    ],
)
def test_serve_reports_an_invalid_address(steelyard: Any, cloud: Any, argv: Any, said: str) -> None:
    status, _, err = steelyard("serve", "--cloud", str(cloud), *argv)
    assert status == 2
    assert said in err


def test_serve_reports_a_port_in_use(steelyard: Any, cloud: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        assert "Address already in use" in steelyard("serve", "--example", "--port", port)[2]


def test_serve_reports_an_unreadable_cloud_at_start(steelyard: Any, tmp_path: Any) -> None:
    status, _, err = steelyard("serve", "--cloud", str(tmp_path / "none.yaml"))
    assert (status, err) == (2, f"steelyard: {tmp_path}/none.yaml: No such file or directory\n")
