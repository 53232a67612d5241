"""``steelyard cloud import`` where services answer as they rarely do, and what it writes."""

import json
import os
import pathlib
import pty
import re
import signal
import stat
import subprocess
import sys
import termios
import threading
import time
from collections.abc import Iterator
from typing import Any

import canned_services
import pytest
from canned_services import Server

from steelyard import cli
from steelyard.cli import os_clouds
from steelyard.scheduler import Cloud

# What openstacksdk deprecates of itself.
pytestmark = pytest.mark.filterwarnings("ignore:.*(InfluxDB|service_type)")

HOST = "00000000-0000-4000-8000-000000000001"
SERVER = "00000000-0000-4000-8000-000000000002"
GROUP = "00000000-0000-4000-8000-000000000003"
OTHER = "00000000-0000-4000-8000-000000000004"
PROVIDER = f"/resource_providers/{HOST}"
HYPERVISORS = "/os-hypervisors/detail"
SERVERS = "/servers/detail"

AMOUNTS = {"vcpus": 8, "vcpus_used": 3, "memory_mb": 8192, "memory_mb_used": 1024}
FLAVOR = {"vcpus": 1, "ram": 1024, "disk": 10, "swap": "", "extra_specs": {"ssd": "nvme"}}
ANSWERS: dict[str, Any] = {
    HYPERVISORS: {
        "hypervisors": [
            {
                "id": HOST,
                "hypervisor_hostname": "node1.example",
                "service": {"host": "node1", "disabled_reason": None},
                "status": "enabled",
                "state": "up",
                "local_gb": 100,
                "local_gb_used": 10,
                **AMOUNTS,
            }
        ]
    },
    f"{HYPERVISORS}?marker={HOST}": {"hypervisors": []},
    "/os-aggregates": {
        "aggregates": [
            {
                "id": 1,
                "uuid": OTHER,
                "name": "fast",
                "metadata": {"ssd": "nvme"},
                "hosts": ["node1"],
            }
        ]
    },
    "/flavors/detail": {"flavors": []},
    "/flavors/detail?is_public=True": {"flavors": [{"id": "1", "name": "small", **FLAVOR}]},
    "/os-server-groups": {
        "server_groups": [
            {
                "id": GROUP,
                "name": "web",
                "policy": "anti-affinity",
                "rules": {"max_server_per_host": 2},
                "members": [SERVER],
            }
        ]
    },
    "/os-server-groups?all_projects=True&offset=1": {"server_groups": []},
    "/os-server-groups?offset=1": {"server_groups": []},
    SERVERS: {
        "servers": [
            {
                "id": SERVER,
                "name": "web-1",
                "image": {"id": "i"},
                "OS-EXT-SRV-ATTR:host": "node1",
                "OS-EXT-SRV-ATTR:hypervisor_hostname": "node1.example",
                "flavor": {"original_name": "small", "ephemeral": 0, **FLAVOR},
            }
        ]
    },
    f"{SERVERS}?all_tenants=1&marker={SERVER}": {"servers": []},
    f"{SERVERS}?marker={SERVER}": {"servers": []},
    "/resource_providers": {"resource_providers": [{"uuid": HOST, "root_provider_uuid": HOST}]},
    f"{PROVIDER}/inventories": {
        "inventories": {
            "VCPU": {"total": 8, "reserved": 1, "allocation_ratio": 4.0, "max_unit": 8},
            "MEMORY_MB": {"total": 8192, "allocation_ratio": 1.0},
            "DISK_GB": {"total": 100, "allocation_ratio": 1.0},
        }
    },
    f"{PROVIDER}/usages": {"usages": {"VCPU": 3, "MEMORY_MB": 1024, "DISK_GB": 10}},
    f"{PROVIDER}/traits": {"traits": ["HW_CPU_X86_AVX2"]},
}
WRITTEN = f"""\
hosts:
  node1:
    vcpus: 8
    ram_mb: 8192
    disk_gb: 100
    traits: [HW_CPU_X86_AVX2]
    uuid: {HOST}
    reserved: {{vcpus: 1}}
    used: {{vcpus: 2}}
    allocation_ratios: {{vcpus: 4.0, ram_mb: 1.0, disk_gb: 1.0}}
aggregates:
  fast:
    hosts: [node1]
    metadata: {{ssd: nvme}}
flavors:
  small:
    vcpus: 1
    ram_mb: 1024
    disk_gb: 10
    extra_specs: {{ssd: nvme}}
server_groups:
  web:
    policy: anti-affinity
    rules: {{max_server_per_host: 2}}
    uuid: {GROUP}
servers:
  web-1: {{host: node1, flavor: small, group: web, uuid: {SERVER}}}
"""
SUMMARY = "1 host, 1 aggregate, 1 flavor, 1 server group, 1 server\n"
IMPORT = ["cloud", "import", "--os-cloud", "here"]


def refused(status: int, message: str = "not you") -> tuple[int, bytes]:
    return status, json.dumps({"forbidden": {"code": status, "message": message}}).encode()


@pytest.fixture
def server(tmp_path: Any, monkeypatch: Any) -> Iterator[Server]:
    """A Nova and a Placement of one host and one server; the work is in an empty directory."""
    answers = {path: (200, json.dumps(answer).encode()) for path, answer in ANSWERS.items()}
    with canned_services.answering(answers) as made:
        (tmp_path / "config").mkdir()
        path = canned_services.describe(tmp_path / "config", made.url)
        monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
        (tmp_path / "here").mkdir()
        monkeypatch.chdir(tmp_path / "here")
        yield made


def test_a_cloud_is_written_down(server: Server, capsys: Any) -> None:
    before = os.umask(0o027)
    try:
        assert cli.main(IMPORT) == 0
    finally:
        os.umask(before)
    assert pathlib.Path("cloud.yaml").read_text() == WRITTEN
    assert stat.S_IMODE(os.stat("cloud.yaml").st_mode) == 0o640
    assert os.listdir() == ["cloud.yaml"]
    assert capsys.readouterr() == ("", f"cloud.yaml: {SUMMARY}")
    versions = {version for _, version in server.asked}
    assert versions == {"compute 2.64", "placement 1.14"}
    assert all(agent.startswith("steelyard/") for agent in server.agents), server.agents


def test_it_can_be_read_at_once(server: Server, capsys: Any) -> None:
    assert cli.main(IMPORT) == 0
    assert cli.main(["schedule", "--flavor", "small", "-f", "value", "-c", "Host"]) == 0
    assert capsys.readouterr().out == "node1\n"


def test_other_places_and_forms(server: Server, capsys: Any) -> None:
    assert cli.main([*IMPORT, "--output", "-"]) == 0
    assert capsys.readouterr() == (WRITTEN, f"standard output: {SUMMARY}")
    assert cli.main([*IMPORT, "--output", "c.json"]) == 0
    assert list(json.loads(pathlib.Path("c.json").read_text())["servers"]) == ["web-1"]
    assert os.listdir() == ["c.json"]
    pathlib.Path("-").touch()
    assert cli.main([*IMPORT, "--output", "-"]) == 0
    assert not pathlib.Path("-").read_bytes()


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("", "--output '': name a file, or - for standard output"),
        ("nowhere/c.yaml", "nowhere/c.yaml: cannot be saved: No such file or directory"),
        ("c.yaml/", "c.yaml/: cannot be saved: No such file or directory"),
        (".", ".: cannot be saved: Is a directory"),
        ("/proc/c.yaml", "/proc/c.yaml: cannot be saved: No such file or directory"),
        ("c" * 300, f"{'c' * 300}: cannot be saved: File name too long"),
    ],
)
def test_where_nothing_can_be_written_nothing_is_asked(
    server: Server, capsys: Any, output: str, said: str
) -> None:
    assert cli.main([*IMPORT, "--replace", "--output", output]) == 2
    assert capsys.readouterr().err == f"steelyard: {said}\n"
    assert not server.asked
    assert not os.listdir()


def test_a_name_may_be_as_long_as_names_can_be(server: Server) -> None:
    assert cli.main([*IMPORT, "--output", "c" * 255]) == 0
    assert pathlib.Path("c" * 255).read_text() == WRITTEN


def test_what_is_no_file_is_written_to(server: Server) -> None:
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


def test_a_file_is_replaced_only_where_that_is_asked_for(server: Server, capsys: Any) -> None:
    path = pathlib.Path("cloud.yaml")
    path.write_text("is no cloud")
    path.chmod(0o604)
    assert cli.main(IMPORT) == 2
    assert capsys.readouterr().err == (
        "steelyard: cloud.yaml is there already: replace it with --replace, or name another file "
        "with --output\n"
    )
    assert path.read_text() == "is no cloud"
    assert not server.asked
    assert cli.main([*IMPORT, "--replace"]) == 0
    assert path.read_text() == WRITTEN
    assert stat.S_IMODE(path.stat().st_mode) == 0o604


class Busy(dict[str, tuple[int, bytes]]):
    """Answers; a path is answered as it is only from the third time on that it is asked for."""

    def __init__(self, answers: Any, path: str, status: int) -> None:
        super().__init__(answers)
        self._path, self._left, self._status = path, 2, status

    def get(self, path: str, *otherwise: Any) -> Any:
        if path == self._path and self._left:
            self._left -= 1
            return self._status, b"busy"
        return super().get(path, *otherwise)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
@pytest.mark.parametrize("path", [HYPERVISORS, f"{PROVIDER}/usages"])
def test_who_is_busy_is_asked_again(server: Server, path: str, status: int) -> None:
    server.answers = Busy(server.answers, path, status)
    assert cli.main(IMPORT) == 0
    assert pathlib.Path("cloud.yaml").read_text() == WRITTEN


def test_how_often_is_for_clouds_yaml_to_say(server: Server, tmp_path: Any, capsys: Any) -> None:
    server.answers = Busy(server.answers, HYPERVISORS, 503)
    canned_services.describe(tmp_path / "config", server.url, status_code_retries=0)
    assert cli.main(IMPORT) == 2
    assert "Nova answered 503" in capsys.readouterr().err
    canned_services.describe(tmp_path / "config", server.url, status_code_retries="often")
    assert cli.main(IMPORT) == 2
    assert (
        "status_code_retries, retriable_status_codes in clouds.yaml have to be whole numbers ("
        in capsys.readouterr().err
    )


def test_who_never_answers_is_not_waited_for(
    server: Server, tmp_path: Any, capsys: Any, monkeypatch: Any
) -> None:
    never = threading.Event()
    server.answers = Changing(server.answers, lambda: never.wait(20))
    canned_services.describe(tmp_path / "config", server.url, connect_retries=0)
    monkeypatch.setattr(os_clouds, "_SECONDS", 0.2)
    assert cli.main(IMPORT) == 2
    never.set()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith("/traits timed out")


@pytest.mark.parametrize("path", [SERVERS, "/os-server-groups"])
def test_pages_without_end_are_noticed(server: Server, capsys: Any, path: str) -> None:
    for each in [each for each in server.answers if each.startswith(f"{path}?")]:
        del server.answers[each]
    assert cli.main(IMPORT) == 2
    assert capsys.readouterr().err == (
        f"steelyard: what is asked gives the same page of {path} again and again; is this a Nova?\n"
    )


class Changing(dict[str, tuple[int, bytes]]):
    """Answers; somebody does something when they are asked for traits."""

    def __init__(self, answers: Any, do: Any) -> None:
        super().__init__(answers)
        self._do = do

    def get(self, path: str, *otherwise: Any) -> Any:
        if path.endswith("/traits"):
            self._do()
        return super().get(path, *otherwise)


def test_a_file_that_has_come_meanwhile_stays(server: Server, capsys: Any) -> None:
    path = pathlib.Path("cloud.yaml")
    server.answers = Changing(server.answers, lambda: path.write_text("somebody else's"))
    assert cli.main(IMPORT) == 2
    assert capsys.readouterr().err == "steelyard: cloud.yaml is there already\n"
    assert path.read_text() == "somebody else's"
    assert os.listdir() == ["cloud.yaml"]


def test_what_is_interrupted_leaves_nothing(server: Server, capsys: Any) -> None:
    # Once: a second interruption would find the test, not the command.
    signals = iter([signal.SIGINT])

    def interrupt() -> None:
        for number in signals:
            signal.raise_signal(number)

    server.answers = Changing(server.answers, interrupt)
    assert cli.main(IMPORT) == 130
    assert capsys.readouterr().err == "steelyard: interrupted: nothing is written\n"
    assert not os.listdir()


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/os-aggregates", ["no aggregates are in the file"]),
        ("/os-server-groups", ["of other projects are not", "no server groups are in the file"]),
        ("/os-server-groups?all_projects=True", ["server groups of other projects are not in"]),
        (SERVERS, ["servers of other projects are not in", "no servers are in the file"]),
        (f"{SERVERS}?all_tenants=1", ["servers of other projects are not in the file"]),
        ("/resource_providers", ["Placement does not show its resource providers"]),
        (f"{PROVIDER}/inventories", ["Placement does not show inventories"]),
        (f"{PROVIDER}/usages", ["Placement does not show usages"]),
        (f"{PROVIDER}/traits", ["no traits of hosts are in the file"]),
    ],
)
def test_what_is_kept_back_is_named(
    server: Server, capsys: Any, path: str, words: list[str]
) -> None:
    server.answers[path] = refused(403)
    assert cli.main(IMPORT) == 0
    *remarks, _ = capsys.readouterr().err.splitlines()
    assert len(remarks) == len(words)
    for remark, word in zip(remarks, words, strict=True):
        assert remark.startswith("steelyard: ")
        assert word in remark


def test_a_placement_that_is_not_there(server: Server, capsys: Any) -> None:
    del server.answers["/resource_providers"]
    assert cli.main(IMPORT) == 0
    assert "Placement is not where the catalogue of services says" in capsys.readouterr().err


def test_services_that_the_catalogue_does_not_have(
    server: Server, tmp_path: Any, capsys: Any
) -> None:
    canned_services.describe(tmp_path / "config", server.url, "compute")
    assert cli.main(IMPORT) == 0
    assert "Placement is not in the catalogue of services" in capsys.readouterr().err
    canned_services.describe(tmp_path / "config", server.url, "placement")
    assert cli.main([*IMPORT, "--replace"]) == 2
    assert capsys.readouterr().err == (
        "steelyard: --os-cloud here: the catalogue of its services has no compute for this region "
        "and interface\n"
    )


def test_a_provider_that_goes_meanwhile(server: Server, capsys: Any) -> None:
    for kind in ("inventories", "usages", "traits"):
        del server.answers[f"{PROVIDER}/{kind}"]
    assert cli.main([*IMPORT, "--output", "-"]) == 0
    out, _ = capsys.readouterr()
    assert "vcpus: 8" in out
    assert "allocation_ratios" not in out


def test_who_is_no_admin_is_told_what_nova_does_not_mention(server: Server, capsys: Any) -> None:
    answer = json.loads(server.answers["/flavors/detail?is_public=True"][1])
    del answer["flavors"][0]["extra_specs"]
    for public in ("True", "False"):
        server.answers[f"/flavors/detail?is_public={public}"] = (200, json.dumps(answer).encode())
    assert cli.main(IMPORT) == 0
    remarks = capsys.readouterr().err.splitlines()[:-1]
    for remark, words in zip(
        remarks,
        [
            "private flavors are not in the file, unless they are shared with the project or",
            "no extra specs are in the file: in it, flavors ask nothing of aggregates",
            "server groups of other projects are not in the file",
        ],
        strict=True,
    ):
        assert words in remark
    assert "  web:\n" in pathlib.Path("cloud.yaml").read_text()


def test_flavors_of_both_kinds_are_in_the_file(server: Server) -> None:
    private = {"flavors": [{"id": "2", "name": "secret", **FLAVOR}]}
    server.answers["/flavors/detail?is_public=False"] = (200, json.dumps(private).encode())
    assert cli.main(IMPORT) == 0
    assert list(Cloud.load("cloud.yaml").flavors) == ["secret", "small"]


def test_providers_that_nova_lists_no_host_for_are_counted(server: Server, capsys: Any) -> None:
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
        f"steelyard: not in the file: 1 resource provider in Placement, such as {OTHER}, that Nova "
        f"lists no host for: shared storage, or hosts whose compute service is gone"
    )
    assert "the nested resource providers of 1 host" in nested
    assert "HW_CPU_X86_AVX2" in pathlib.Path("cloud.yaml").read_text()


@pytest.mark.parametrize(
    ("path", "answer", "words"),
    [
        (HYPERVISORS, refused(403), "these credentials do not see hosts"),
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
        (HYPERVISORS, (200, b"<html>log in</html>"), "does not answer with JSON"),
        (HYPERVISORS, (200, b"[]"), "is this a Nova?"),
        (HYPERVISORS, (200, b'{"hypervisors": [{"id": 1}]}'), "something else than hypervisors"),
        (SERVERS, (200, b'{"servers": [7]}'), "something else than servers"),
        (
            SERVERS,
            (200, b'{"servers": [{"id": "u", "name": "odd"}]}'),
            "(KeyError: 'flavor'; in {'id': 'u', 'name': 'odd'}); is this a Nova?",
        ),
        (
            f"{PROVIDER}/usages",
            (200, b'{"usages": {"\\u001b[2J": -1}}'),
            "(ValueError: \\x1b[2J: -1 is no whole number",
        ),
        (SERVERS, (200, b"[" * 100_000), "does not answer with JSON, but [[["),
        (SERVERS, (500, b"[" * 100_000), "Nova answered 500 to /servers/detail: [[["),
        (SERVERS, refused(500, "much " * 10_000), f"{'much ' * 60}…"),
        (SERVERS, refused(500, "\x1b[2Jgone\x07"), "/servers/detail: \\x1b[2Jgone\\x07"),
        ("/resource_providers", (500, b"[" * 100_000), "Placement answered 500: [[["),
        ("/resource_providers", (500, b"It \x1b[2J is gone"), "500: It \\x1b[2J is gone"),
        (
            f"{PROVIDER}/inventories",
            (200, b'{"inventories": {"VCPU": {"total": 8, "allocation_ratio": Infinity}}}'),
            f"{PROVIDER}/inventories with something else than a Placement would (ValueError: VCPU: "
            f"allocation_ratio: inf is no finite number",
        ),
        ("/os-server-groups", (500, b'{"x": "y"}'), "Nova answered 500"),
        ("/resource_providers", (200, b"{}"), "is this a Placement?"),
        ("/resource_providers", (500, b""), "Placement answered 500"),
        (f"{PROVIDER}/inventories", (200, b'{"inventories": []}'), "is this a Placement?"),
        (f"{PROVIDER}/usages", (200, b'{"usages": {"VCPU": -1}}'), "-1 is no whole number"),
        (f"{PROVIDER}/traits", (503, b""), "Placement answered 503"),
    ],
)
def test_failures_end_with_one_line(
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


def test_a_cloud_that_is_not_reached(tmp_path: Any, monkeypatch: Any, capsys: Any) -> None:
    path = canned_services.describe(tmp_path, "http://127.0.0.1:9")
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
    assert cli.main([*IMPORT, "--output", "-"]) == 2
    first, second, line = capsys.readouterr().err.splitlines()
    # Older keystoneauth1 writes no space between the sentences.
    assert re.search(r" Retrying in 0\.5s\. ?2 retries left$", first)
    assert re.search(r" Retrying in 1\.0s\. ?1 retries left$", second)
    assert line.startswith("steelyard: asking a Nova has failed: Unable to establish connection")


@pytest.mark.parametrize("content", ["clouds: [", "clouds: 7", "\tx", "7"])
def test_a_broken_clouds_yaml(tmp_path: Any, monkeypatch: Any, capsys: Any, content: str) -> None:
    path = tmp_path / "clouds.yaml"
    path.write_text(content)
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(path))
    assert cli.main([*IMPORT, "--output", "-"]) == 2
    *_, line = capsys.readouterr().err.splitlines()
    assert line.startswith("steelyard: --os-cloud here: ")


ALONE = [sys.executable, "-c", "import sys; from steelyard import cli; sys.exit(cli.main())"]


def test_who_interrupts_does_not_wait_for_answers(server: Server) -> None:
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
    assert (command.returncode, said) == (130, "steelyard: interrupted: nothing is written\n")
    assert not os.listdir()


@pytest.fixture
def slow(server: Server) -> Server:
    server.answers = Changing(server.answers, lambda: time.sleep(0.7))  # twice
    return server


def test_how_far_it_is_is_shown_on_a_terminal(slow: Server) -> None:
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, 80))
    with open(ours, "rb") as terminal:
        subprocess.run([*ALONE, *IMPORT], stderr=theirs, check=True)
        os.write(theirs, b"end\n")
        shown = b"".join(iter(terminal.readline, b"end\r\n"))
    os.close(theirs)
    assert b"traits: 100%" in shown
    assert shown.endswith(f"cloud.yaml: {SUMMARY}".replace("\n", "\r\n").encode())


def test_and_nowhere_else(slow: Server) -> None:
    done = subprocess.run([*ALONE, *IMPORT], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", f"cloud.yaml: {SUMMARY}")
