"""``steelyard cloud import`` with services that reject, fail or misbehave."""

import os
import pathlib
import re
import threading
from typing import Any

import pytest

from steelyard import cli
from steelyard.cli.inputs import os_connection
from support.clients import canned_services
from support.clients.canned_cloud import (
    HYPERVISORS,
    IMPORT,
    PROVIDER,
    SERVERS,
    WRITTEN_JSON,
    Busy,
    Changing,
    refused,
)
from support.clients.canned_services import Server

# openstacksdk warns about InfluxDB and service types.
pytestmark = pytest.mark.filterwarnings("ignore:.*(InfluxDB|service_type)")


@pytest.mark.parametrize("status", [429, 502, 503, 504])
@pytest.mark.parametrize("path", [HYPERVISORS, f"{PROVIDER}/usages"])
def test_import_retries_a_busy_service(server: Server, path: str, status: int) -> None:
    server.answers = Busy(server.answers, path, status)
    assert cli.main(IMPORT) == 0
    assert pathlib.Path("cloud.json").read_text() == WRITTEN_JSON


def test_retries_are_set_in_clouds_yaml(server: Server, tmp_path: Any, capsys: Any) -> None:
    server.answers = Busy(server.answers, HYPERVISORS, 503)
    canned_services.describe(tmp_path / "config", server.url, status_code_retries=0)
    assert cli.main(IMPORT) == 2
    assert "Nova answered 503" in capsys.readouterr().err
    canned_services.describe(tmp_path / "config", server.url, status_code_retries="often")
    assert cli.main(IMPORT) == 2
    assert (
        "status_code_retries, retriable_status_codes in clouds.yaml: expected whole numbers ("
        in capsys.readouterr().err
    )


def test_import_times_out_without_an_answer(
    server: Server, tmp_path: Any, capsys: Any, monkeypatch: Any
) -> None:
    never = threading.Event()
    server.answers = Changing(server.answers, lambda: never.wait(20))
    canned_services.describe(tmp_path / "config", server.url, connect_retries=0)
    monkeypatch.setattr(os_connection, "_SECONDS", 0.2)
    assert cli.main(IMPORT) == 2
    never.set()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("/traits timed out")


@pytest.mark.parametrize("path", [SERVERS, "/os-server-groups"])
def test_endless_pages_are_reported(server: Server, capsys: Any, path: str) -> None:
    for each in [each for each in server.answers if each.startswith(f"{path}?")]:
        del server.answers[each]
    assert cli.main(IMPORT) == 2
    assert capsys.readouterr().err == (
        f"steelyard: unexpected answer from Nova: the same page of {path} twice; check its endpoint\n"
    )


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/os-aggregates", ["the file has no aggregates"]),
        ("/os-server-groups", ["of other projects", "the file has no server groups; "]),
        ("/os-server-groups?all_projects=True", ["no server groups of other projects"]),
        (SERVERS, ["no servers of other projects", "the file has no servers; "]),
        (f"{SERVERS}?all_tenants=1", ["the file has no servers of other projects"]),
        ("/resource_providers", ["Placement shows its resource providers only"]),
        (f"{PROVIDER}/inventories", ["Placement does not show inventories"]),
        (f"{PROVIDER}/usages", ["Placement does not show usages"]),
        (f"{PROVIDER}/traits", ["the file has no traits"]),
    ],
)
def test_forbidden_data_is_reported_with_its_policy(
    server: Server, capsys: Any, path: str, words: list[str]
) -> None:
    server.answers[path] = refused(403)
    assert cli.main(IMPORT) == 0
    *remarks, _ = capsys.readouterr().err.splitlines()
    assert len(remarks) == len(words)
    for remark, word in zip(remarks, words, strict=True):
        assert remark.startswith("steelyard: ")
        assert word in remark


def test_missing_placement_is_reported(server: Server, capsys: Any) -> None:
    del server.answers["/resource_providers"]
    assert cli.main(IMPORT) == 0
    assert "Placement is not at its address in the service catalog" in capsys.readouterr().err


def test_service_missing_from_the_catalog_is_reported(
    server: Server, tmp_path: Any, capsys: Any
) -> None:
    canned_services.describe(tmp_path / "config", server.url, "compute")
    assert cli.main(IMPORT) == 0
    assert "Placement is not in the service catalog" in capsys.readouterr().err
    canned_services.describe(tmp_path / "config", server.url, "placement")
    assert cli.main([*IMPORT, "--replace"]) == 2
    assert capsys.readouterr().err == (
        "steelyard: --os-cloud here: the service catalog lists no compute service for this region "
        "and interface\n"
    )


@pytest.mark.parametrize(
    ("path", "answer", "words"),
    [
        (HYPERVISORS, refused(403), "cannot list hosts"),
        (HYPERVISORS, refused(401, "who?"), f"Nova answered 401 to {HYPERVISORS}: who?"),
        (HYPERVISORS, refused(404), "Nova answered 404"),
        (
            HYPERVISORS,
            refused(406, "2.64\nis new"),
            "Nova answered 406 to /os-hypervisors/detail: 2.6",
        ),
        (HYPERVISORS, (500, b"<html>oops</html>"), "Nova answered 500"),
        (HYPERVISORS, (500, b"{}"), "{}"),
        (HYPERVISORS, (500, b""), "no reason given"),
        (HYPERVISORS, (200, b"<html>log in</html>"), "from Nova: expected JSON, got <html>"),
        (HYPERVISORS, (200, b"[]"), "unexpected answer from Nova: invalid hypervisors in"),
        (HYPERVISORS, (200, b'{"hypervisors": [{"id": 1}]}'), "invalid hypervisors"),
        (SERVERS, (200, b'{"servers": [7]}'), "invalid servers"),
        (
            SERVERS,
            (200, b'{"servers": [{"id": "u", "name": "odd"}]}'),
            "(KeyError: 'flavor'; in {'id': 'u', 'name': 'odd'}); check its endpoint",
        ),
        (
            f"{PROVIDER}/usages",
            (200, b'{"usages": {"\\u001b[2J": -1}}'),
            "(ValueError: \\x1b[2J: expected a whole number",
        ),
        (SERVERS, (200, b"[" * 100_000), "expected JSON, got [[["),
        (SERVERS, (200, b'{"servers": [], "servers": []}'), "expected JSON, got {"),
        (SERVERS, (500, b'{"x": {"message": "y"}, "x": {"message": "z"}}'), 'detail: {"x": {"me'),
        (SERVERS, (500, b"[" * 100_000), "Nova answered 500 to /servers/detail: [[["),
        (SERVERS, refused(500, "much " * 10_000), f"{'much ' * 60}…"),
        (SERVERS, refused(500, "\x1b[2Jgone\x07"), "/servers/detail: \\x1b[2Jgone\\x07"),
        ("/resource_providers", (500, b"[" * 100_000), "Placement answered 500: [[["),
        ("/resource_providers", (500, b"It \x1b[2J is gone"), "500: It \\x1b[2J is gone"),
        (
            f"{PROVIDER}/inventories",
            (200, b'{"inventories": {"VCPU": {"total": 8, "allocation_ratio": Infinity}}}'),
            f"{PROVIDER}/inventories (ValueError: VCPU: allocation_ratio: expected a finite number of "
            f"at least 0, got inf",
        ),
        ("/os-server-groups", (500, b'{"x": "y"}'), "Nova answered 500"),
        (
            "/resource_providers",
            (200, b"{}"),
            "unexpected answer from Placement: invalid content in",
        ),
        ("/resource_providers", (500, b""), "Placement answered 500"),
        (
            f"{PROVIDER}/inventories",
            (200, b'{"inventories": []}'),
            "unexpected answer from Placement: invalid content in",
        ),
        (f"{PROVIDER}/usages", (200, b'{"usages": {"VCPU": -1}}'), "expected a whole number"),
        (f"{PROVIDER}/traits", (503, b""), "Placement answered 503"),
    ],
)
def test_import_failure_ends_with_one_line(
    server: Server, capsys: Any, path: str, answer: tuple[int, bytes], words: str
) -> None:
    server.answers[path] = answer
    assert cli.main(IMPORT) == 2
    *again, line = capsys.readouterr().err.splitlines()
    assert all("Retrying in" in each for each in again)
    assert len(again) == (2 if answer[0] in (429, 502, 503, 504) else 0)
    assert line.startswith("steelyard: ")
    assert words in line
    assert len(line) < 500
    assert not os.listdir()


def test_unreachable_cloud_is_reported(tmp_path: Any, monkeypatch: Any, capsys: Any) -> None:
    path = canned_services.describe(tmp_path, "http://127.0.0.1:9")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
    assert cli.main([*IMPORT, "--output", "-"]) == 2
    first, second, line = capsys.readouterr().err.splitlines()
    # Older keystoneauth1 writes no space between the sentences.
    assert re.search(r" Retrying in 0\.5s\. ?2 retries left$", first)
    assert re.search(r" Retrying in 1\.0s\. ?1 retries left$", second)
    assert line.startswith("steelyard: request to Nova failed: Unable to establish connection")


@pytest.mark.parametrize("content", ["clouds: [", "clouds: 7", "\tx", "7"])
def test_broken_clouds_yaml_is_reported(
    tmp_path: Any, monkeypatch: Any, capsys: Any, content: str
) -> None:
    path = tmp_path / "clouds.yaml"
    path.write_text(content)
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
    assert cli.main([*IMPORT, "--output", "-"]) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith("steelyard: --os-cloud here: ")
