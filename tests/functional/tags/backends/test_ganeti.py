"""The backend ganeti: its requests, the answers it parses, and its options."""

import logging
import threading
from typing import Any

import pytest

from steelyard import plugins
from steelyard.errors import BackendRefused, BadRequest
from steelyard.tags.backends.base import TAG_BACKENDS, JobStatus, TagJob
from steelyard.tags.backends.ganeti import GanetiBackend
from steelyard.tags.states.values import Kind
from support.tags.fake_ganeti import (
    RESET,
    SECRET,
    Ganeti,
    MakeBackend,
    configuration,
    filter_values,
)


def test_ganeti_backend_loads_by_name(ca: str) -> None:
    values = {"ganeti_url": "https://h", "ganeti_user": "u", "ganeti_password": "p"}
    found = plugins.load(TAG_BACKENDS, ["ganeti"], configuration(values))
    assert isinstance(found["ganeti"], GanetiBackend)


def test_add_and_delete_send_tags_in_the_query_string(
    ganeti: Ganeti, backend: GanetiBackend
) -> None:
    assert backend.add("vm", ["a+b", "c/C3*1:x", "a+b"]) == 42
    assert backend.delete("vm", ["d"]) == 42
    add, delete = ganeti.submitted
    assert (add.method, add.target) == ("PUT", "/2/instances/vm/tags?tag=a%2Bb&tag=c/C3*1:x")
    assert (delete.method, delete.target) == ("DELETE", "/2/instances/vm/tags?tag=d")
    assert add.body is None
    assert add.headers["Authorization"] == "Basic c3RlZWx5YXJkOmh1bnRlcjI="


def test_create_sends_the_ganeti_instance_option(ganeti: Ganeti, make: MakeBackend) -> None:
    text = '{"os_type": "noop", "ip_check": true, "nics": [{}]}'
    assert make(ganeti.url, ganeti_instance=text).create("new", ["a"]) == 42
    (request,) = ganeti.submitted
    assert (request.method, request.target) == ("POST", "/2/instances")
    assert request.headers["Content-Type"] == "application/json"
    assert request.body == {
        "__version__": 1,
        "mode": "create",
        "name_check": False,
        "ip_check": True,
        "os_type": "noop",
        "nics": [{}],
        "instance_name": "new",
        "tags": ["a"],
    }


@pytest.mark.parametrize("name", ["", "VM", "vm\n", "a b", "é", "..", "a/b", "a?b", "x" * 256])
def test_invalid_instance_name_is_not_sent(
    ganeti: Ganeti, backend: GanetiBackend, name: str
) -> None:
    for change in (backend.add, backend.delete, backend.create):
        with pytest.raises(BackendRefused, match="invalid instance name"):
            change(name, ["a"])
    assert backend.tags([name]) == {}
    assert ganeti.asked == []


@pytest.mark.parametrize("tag", ["", "a b", "é", "a\n", "\n", "a,b", "%41", "x" * 129, "\ud800"])
def test_invalid_tag_is_not_sent(ganeti: Ganeti, backend: GanetiBackend, tag: str) -> None:
    for change in (backend.add, backend.delete, backend.create):
        with pytest.raises(
            BackendRefused, match=r"invalid Ganeti tag .*: expected 1 to 128 of A-Z"
        ):
            change("vm", ["a", tag])
    assert ganeti.asked == []


def test_missing_and_duplicate_instances_are_refused(ganeti: Ganeti, make: MakeBackend) -> None:
    backend = make(ganeti.url, ganeti_instance="{}")
    for change in (backend.add, backend.delete):
        with pytest.raises(BackendRefused, match="no instance 'other' in Ganeti"):
            change("other", ["a"])
    with pytest.raises(BackendRefused, match="cannot create instance 'vm': Ganeti has it"):
        backend.create("vm", ["a"])
    with pytest.raises(BackendRefused, match="set ganeti_instance in"):
        make(ganeti.url).create("new", ["a"])
    assert ganeti.submitted == []


def test_instances_are_listed_by_one_query(ganeti: Ganeti, backend: GanetiBackend) -> None:
    ganeti.instances = {f"vm-{number}": [] for number in range(1200)}
    assert sorted(backend.instances()) == sorted(ganeti.instances)
    (query,) = ganeti.asked
    assert query.body["fields"] == ["name"]


def test_reasons_are_the_errors_in_the_job_list(ganeti: Ganeti, backend: GanetiBackend) -> None:
    results = {
        7: ("error", [["TagError", ["too many tags"]]]),
        8: ("error", [True, ["OpPrereqError", ["no tag 'a'", "unknown_entity"]]]),
        9: ("canceled", [None]),
        10: ("error", None),
    }
    rows = [
        [[0, number], *([0, value] for value in columns)] for number, columns in results.items()
    ]
    ganeti.to_queries.append((200, {"data": rows}))
    assert backend.reasons(results) == {
        7: "TagError: too many tags",
        8: "OpPrereqError: no tag 'a', unknown_entity",
        9: "canceled",
        10: "error",
    }
    (request,) = ganeti.asked
    assert request.body["fields"] == ["id", "status", "opresult"]


def test_opcodes_that_lack_a_field_are_skipped(
    ganeti: Ganeti, backend: GanetiBackend, caplog: pytest.LogCaptureFixture
) -> None:
    job = [
        {"OP_ID": "OP_TAGS_SET", "kind": "instance", "tags": ["a"]},
        {"OP_ID": "OP_INSTANCE_REMOVE", "instance_name": None},
        {},
        {"OP_ID": "OP_INSTANCE_CREATE", "instance_name": "vm", "tags": None},
        {"OP_ID": "OP_TAGS_DEL", "kind": "instance", "name": "vm", "tags": ["b"]},
    ]
    rows = [[[0, 7107], [0, job], [0, ["success"] * len(job)]], [[0, 7108], [0, None], [0, None]]]
    done = [TagJob("vm", Kind.CREATE, frozenset()), TagJob("vm", Kind.DELETE, frozenset("b"))]
    for _ in "ab":
        ganeti.to_queries.append((200, {"data": rows}))
        assert backend.tag_jobs([7107, 7108]) == {7107: done, 7108: []}
    message = "Skipped opcode OP_TAGS_SET of Ganeti's job 7107: 'name' is missing"
    assert caplog.text.count(message) == 1
    assert caplog.text.count("of Ganeti's job 7107") == 2


def test_jobs_map_statuses_of_ganeti(ganeti: Ganeti, backend: GanetiBackend) -> None:
    finished = {1: "success", 2: "error", 3: "canceled"}
    unfinished = {4: "queued", 6: "waiting", 7: "running", 8: "canceling", 9: "new in Ganeti 4"}
    ganeti.jobs = {**finished, **unfinished, 12: "success"}
    found = backend.jobs(range(-1, 12))
    assert {number for number, each in found.items() if each is JobStatus.RUNNING} == set(
        unfinished
    )
    assert {number for number, each in found.items() if each is JobStatus.LOST} == {
        -1,
        0,
        5,
        10,
        11,
    }
    assert [found[number] for number in (1, 2, 3)] == ["succeeded", "failed", "failed"]
    assert backend.horizon() == 3
    ganeti.jobs |= dict.fromkeys(unfinished, "success")
    assert backend.horizon() == 12
    ganeti.jobs = {}
    assert backend.horizon() == 0


def test_queries_name_at_most_500_objects(ganeti: Ganeti, backend: GanetiBackend) -> None:
    # A larger query would block Ganeti for other clients.
    ganeti.jobs = dict.fromkeys(range(1, 1201), "success")
    ganeti.instances = {f"vm{number}": [f"a{number}"] for number in range(1200)}
    assert set(backend.jobs(ganeti.jobs).values()) == {JobStatus.SUCCEEDED}
    assert backend.tags([*ganeti.instances, "other", "no name"]) == {
        name: set(tags) for name, tags in ganeti.instances.items()
    }
    assert max(len(list(filter_values(each.body["qfilter"]))) for each in ganeti.asked) == 500
    assert len(ganeti.asked) == 6


@pytest.mark.parametrize("path", ["", "/behind/a/proxy/"])
def test_batches_keep_request_lines_within_8192_bytes(
    ganeti: Ganeti, make: MakeBackend, path: str
) -> None:
    backend = make(ganeti.url + path)
    tags = [f"{number:03}{'+' * (number % 100)}" for number in range(500)]
    batches = backend.batches("vm", tags)
    assert [tag for batch in batches for tag in batch] == tags
    lines = [
        f"DELETE {path.rstrip('/')}/2/instances/vm/tags?"
        + "&".join(f"tag={tag.replace('+', '%2B')}" for tag in batch)
        + " HTTP/1.1"
        for batch in batches
    ]
    assert max(map(len, lines)) <= 8192
    assert min(map(len, lines[:-1])) > 8192 - 310
    assert backend.batches("vm", ["a"]) == [["a"]]


def test_proxy_variables_are_ignored(
    ganeti: Ganeti, make: MakeBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert make(ganeti.url).add("vm", ["a"]) == 42


def test_log_omits_the_password(
    ganeti: Ganeti, make: MakeBackend, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("", "urllib3"):
        caplog.set_level(logging.DEBUG, name)
    backend = make(ganeti.url)
    ganeti.to_queries = [RESET]
    backend.add("vm", ["a"])
    assert "/2/instances/vm/tags?tag=a" in caplog.text
    assert SECRET not in caplog.text
    assert "aHVudGVyMg" not in caplog.text


def test_concurrent_additions_succeed(
    ganeti: Ganeti, backend: GanetiBackend, caplog: pytest.LogCaptureFixture
) -> None:
    failures: list[BaseException] = []

    def add() -> None:
        try:
            for _ in range(5):
                assert backend.add("vm", ["a"]) == 42
        except BaseException as error:  # noqa: BLE001  (asserted below)
            failures.append(error)

    threads = [threading.Thread(target=add) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert len(ganeti.submitted) == 40
    assert [each for each in caplog.records if each.levelno >= logging.WARNING] == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"ganeti_url": None}, "set ganeti_url in"),
        ({"ganeti_user": None}, "set ganeti_user in"),
        ({"ganeti_password": ""}, "set ganeti_password in"),
        ({"ganeti_url": "http://h:5080"}, "invalid ganeti_url 'http://h:5080' in"),
        ({"ganeti_url": "h:5080"}, "invalid ganeti_url 'h:5080' in"),
        ({"ganeti_url": "https://h:x"}, "invalid ganeti_url"),
        ({"ganeti_url": "https://h/?a=b"}, "invalid ganeti_url"),
        ({"ganeti_url": "https://[h"}, "invalid ganeti_url"),
        ({"ganeti_url": f"https://u:{SECRET}@h"}, "it contains a user or a password"),
        ({"ganeti_ca": "/nonexistent.pem"}, "invalid ganeti_ca '/nonexistent.pem' in"),
        ({"ganeti_ca": __file__}, "invalid ganeti_ca .*: expected a readable file of PEM"),
        ({"ganeti_fingerprint": "0" * 64}, "without ganeti_ca"),
        ({"ganeti_ca": None, "ganeti_fingerprint": "0" * 63}, "as 64 hexadecimal digits"),
    ],
)
def test_invalid_options_are_rejected_without_the_password(
    make: MakeBackend, changed: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadRequest, match=message) as caught:
        make(**{"url": "https://127.0.0.1:5080", **changed})
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "invalid JSON: "),
        ("[]", "expected a JSON object"),
        ('{"tags": []}', "key 'tags' differs for each instance"),
        ('{"os_type": "a", "os_type": "b"}', "duplicate key 'os_type' in an object"),
        ('{"instance_name": "x"}', "'instance_name' differs"),
        ('{"name": "x"}', "'name' differs"),
    ],
)
def test_invalid_ganeti_instance_option_is_rejected(
    make: MakeBackend, text: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        make("https://127.0.0.1:5080", ganeti_instance=text)
