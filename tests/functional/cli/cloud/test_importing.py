"""``steelyard cloud import``: its output, its files and its progress."""

import json
import os
import pathlib
import pty
import signal
import stat
import subprocess
import sys
import termios
import threading
import time
from typing import Any

import pytest

from steelyard import cli
from steelyard.cloud import Cloud
from support.clients.canned_cloud import (
    FLAVOR,
    GROUP,
    HOST,
    IMPORT,
    OTHER,
    PROVIDER,
    SERVER,
    SUMMARY,
    WRITTEN,
    WRITTEN_JSON,
    Changing,
)
from support.clients.canned_services import Server

# openstacksdk warns about InfluxDB and service types.
pytestmark = pytest.mark.filterwarnings("ignore:.*(InfluxDB|service_type)")


def test_import_writes_the_cloud_file(server: Server, capsys: Any) -> None:
    before = os.umask(0o027)
    try:
        assert cli.main(IMPORT) == 0
    finally:
        os.umask(before)
    assert pathlib.Path("cloud.json").read_text() == WRITTEN_JSON
    assert stat.S_IMODE(os.stat("cloud.json").st_mode) == 0o640
    assert os.listdir() == ["cloud.json"]
    assert capsys.readouterr() == ("", f"steelyard: cloud.json: {SUMMARY}")
    versions = {version for _, version in server.asked}
    assert versions == {"compute 2.64", "compute 2.100", "placement 1.14"}
    assert all(agent.startswith("steelyard/") for agent in server.agents), server.agents


def test_imported_file_is_the_default_of_other_commands(server: Server, capsys: Any) -> None:
    assert cli.main(IMPORT) == 0
    assert cli.main(["schedule", "--flavor", "small", "-f", "value", "-c", "Host"]) == 0
    assert capsys.readouterr().out == "node1\n"


def test_import_writes_yaml_and_standard_output(server: Server, capsys: Any) -> None:
    assert cli.main([*IMPORT, "--output", "-"]) == 0
    assert capsys.readouterr() == (WRITTEN, f"steelyard: standard output: {SUMMARY}")
    assert cli.main([*IMPORT, "--output", "c.yaml"]) == 0
    assert pathlib.Path("c.yaml").read_text() == WRITTEN
    assert os.listdir() == ["c.yaml"]
    pathlib.Path("-").touch()
    assert cli.main([*IMPORT, "--output", "-"]) == 0
    assert not pathlib.Path("-").read_bytes()


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("nowhere/c.yaml", "cannot write 'nowhere/c.yaml': No such file or directory"),
        ("c.yaml/", "cannot write 'c.yaml/': No such file or directory"),
        (".", "cannot write '.': Is a directory"),
        ("/proc/c.yaml", "cannot write '/proc/c.yaml': No such file or directory"),
        ("c" * 300, f"cannot write {'c' * 300!r}: File name too long"),
    ],
)
def test_import_to_an_unwritable_place_sends_no_request(
    server: Server, capsys: Any, output: str, said: str
) -> None:
    assert cli.main([*IMPORT, "--replace", "--output", output]) == 2
    assert capsys.readouterr().err == f"steelyard: {said}\n"
    assert not server.asked
    assert not os.listdir()


def test_import_writes_a_file_with_the_longest_name(server: Server) -> None:
    assert cli.main([*IMPORT, "--output", "c" * 255]) == 0
    assert pathlib.Path("c" * 255).read_text() == WRITTEN


def test_import_writes_to_a_pipe(server: Server) -> None:
    os.mkfifo("pipe")
    read: list[str] = []
    reader = threading.Thread(
        target=lambda: read.append(pathlib.Path("pipe").read_text()), daemon=True
    )
    reader.start()
    assert cli.main([*IMPORT, "--output", "pipe", "--replace"]) == 0
    reader.join(10)
    assert read == [WRITTEN]
    assert stat.S_ISFIFO(os.stat("pipe").st_mode)


def test_import_replaces_a_file_only_with_replace(server: Server, capsys: Any) -> None:
    path = pathlib.Path("cloud.json")
    path.write_text("is no cloud")
    path.chmod(0o604)
    assert cli.main(IMPORT) == 2
    assert capsys.readouterr().err == (
        "steelyard: 'cloud.json' already exists: replace it with --replace, or name another file "
        "with --output\n"
    )
    assert path.read_text() == "is no cloud"
    assert not server.asked
    assert cli.main([*IMPORT, "--replace"]) == 0
    assert path.read_text() == WRITTEN_JSON
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


@pytest.mark.parametrize(
    ("output", "other"), [("cloud.json", "cloud.yaml"), ("cloud.yaml", "cloud.json")]
)
def test_import_beside_another_usual_file_sends_no_request(
    server: Server, capsys: Any, output: str, other: str
) -> None:
    pathlib.Path(other).touch()
    assert cli.main([*IMPORT, "--replace", "--output", os.path.abspath(output)]) == 2
    assert capsys.readouterr().err == (
        f"steelyard: cannot write {os.path.abspath(output)!r}: {other!r} exists too, and commands "
        f"read one of them by default; delete {other!r}, or replace it with --output {other} "
        f"--replace\n"
    )
    assert not server.asked
    assert cli.main([*IMPORT, "--replace", "--output", other]) == 0
    assert os.listdir() == [other]


def test_file_created_during_an_import_stays(server: Server, capsys: Any) -> None:
    path = pathlib.Path("cloud.json")
    server.answers = Changing(server.answers, lambda: path.write_text("not ours"))
    assert cli.main(IMPORT) == 2
    assert capsys.readouterr().err == "steelyard: 'cloud.json' already exists\n"
    assert path.read_text() == "not ours"
    assert os.listdir() == ["cloud.json"]


def test_interrupted_import_leaves_no_file(server: Server, capsys: Any) -> None:
    # Once: a second interruption would find the test, not the command.
    signals = iter([signal.SIGINT])

    def interrupt() -> None:
        for number in signals:
            signal.raise_signal(number)

    server.answers = Changing(server.answers, interrupt)
    assert cli.main(IMPORT) == 130
    assert capsys.readouterr().err == "steelyard: interrupted: nothing was written\n"
    assert not os.listdir()


def test_provider_deleted_during_an_import_is_read_from_nova(server: Server, capsys: Any) -> None:
    for kind in ("inventories", "usages", "traits"):
        del server.answers[f"{PROVIDER}/{kind}"]
    assert cli.main([*IMPORT, "--output", "-"]) == 0
    out, _ = capsys.readouterr()
    assert "vcpus: 8" in out
    assert "allocation_ratios" not in out


def test_import_without_admin_reports_missing_data(server: Server, capsys: Any) -> None:
    answer = json.loads(server.answers["/flavors/detail?is_public=True"][1])
    del answer["flavors"][0]["extra_specs"]
    for public in ("True", "False"):
        server.answers[f"/flavors/detail?is_public={public}"] = (200, json.dumps(answer).encode())
    assert cli.main(IMPORT) == 0
    remarks = capsys.readouterr().err.splitlines()[:-1]
    for remark, words in zip(
        remarks,
        [
            "the file has no private flavors, except those that are shared with the project",
            "the file has no extra specs, so flavors require no metadata",
            "the file has no server groups of other projects",
        ],
        strict=True,
    ):
        assert words in remark
    assert '    "web": {' in pathlib.Path("cloud.json").read_text()


def test_import_writes_public_and_private_flavors(server: Server) -> None:
    private = {"flavors": [{"id": "2", "name": "secret", **FLAVOR}]}
    server.answers["/flavors/detail?is_public=False"] = (200, json.dumps(private).encode())
    assert cli.main(IMPORT) == 0
    assert list(Cloud.load("cloud.json").flavors) == ["secret", "small"]


def test_import_counts_providers_without_a_host_in_nova(server: Server, capsys: Any) -> None:
    listed = [
        {"uuid": HOST, "root_provider_uuid": None},
        {"uuid": GROUP, "root_provider_uuid": HOST},
        {"uuid": OTHER, "root_provider_uuid": OTHER},
        {"uuid": SERVER, "root_provider_uuid": OTHER},
    ]
    answer = json.dumps({"resource_providers": listed}).encode()
    server.answers["/resource_providers"] = (200, answer)
    assert cli.main(IMPORT) == 0
    remark, nested, _ = capsys.readouterr().err.splitlines()
    assert remark == (
        f"steelyard: not in the file: 1 resource provider in Placement, such as {OTHER}, without "
        f"a host in Nova: shared storage, or hosts whose compute service was deleted"
    )
    assert "filters do not read the nested resource providers of 1 host" in nested
    assert [each.uuid for each in Cloud.load("cloud.json").hosts["node1"].providers] == [GROUP]
    assert "HW_CPU_X86_AVX2" in pathlib.Path("cloud.json").read_text()


def test_import_counts_servers_of_unreachable_cells(server: Server, capsys: Any) -> None:
    lost = {"id": OTHER, "status": "UNKNOWN", "tenant_id": "shop", "links": []}
    answer = json.dumps({"servers": [lost]}).encode()
    server.answers[f"/servers/detail?all_tenants=1&marker={SERVER}"] = (200, answer)
    server.answers[f"/servers/detail?all_tenants=1&marker={OTHER}"] = (200, b'{"servers": []}')
    assert cli.main(IMPORT) == 0
    remark, _ = capsys.readouterr().err.splitlines()
    assert remark == (
        "steelyard: not in the file: 1 server in cells that are unreachable from Nova's API; the "
        "amounts that they use count as used"
    )
    assert list(Cloud.load("cloud.json").servers) == [SERVER]


ALONE = [sys.executable, "-c", "import sys; from steelyard import cli; sys.exit(cli.main())"]


def test_interrupted_import_does_not_wait_for_answers(server: Server) -> None:
    asked, never = threading.Event(), threading.Event()

    def wait() -> None:
        asked.set()
        never.wait(40)

    server.answers = Changing(server.answers, wait)
    with subprocess.Popen([*ALONE, *IMPORT], stderr=subprocess.PIPE, text=True) as command:
        assert asked.wait(30)
        command.send_signal(signal.SIGINT)
        try:
            _, said = command.communicate(timeout=20)
        finally:
            never.set()
    assert (command.returncode, said) == (130, "steelyard: interrupted: nothing was written\n")
    assert not os.listdir()


@pytest.fixture
def slow(server: Server) -> Server:
    server.answers = Changing(server.answers, lambda: time.sleep(1.2))  # twice
    return server


def test_progress_is_shown_on_a_terminal(slow: Server) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    with open(ours, "rb") as terminal:
        subprocess.run([*ALONE, *IMPORT], stderr=theirs, check=True)
        os.write(theirs, b"end\n")
        shown = b"".join(iter(terminal.readline, b"end\r\n"))
    os.close(theirs)
    assert b"traits: 100%" in shown
    assert shown.endswith(f"steelyard: cloud.json: {SUMMARY}".replace("\n", "\r\n").encode())


def test_progress_is_not_shown_without_a_terminal(slow: Server) -> None:
    done = subprocess.run([*ALONE, *IMPORT], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", f"steelyard: cloud.json: {SUMMARY}")
