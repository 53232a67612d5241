"""Parsing and writing of notifications about jobs."""

import json
import logging
from typing import Any

import pytest

from steelyard.errors import InvalidMessage
from steelyard.tags.codec import Tag
from steelyard.tags.jobs import messages
from steelyard.tags.names import Prefixes
from steelyard.tags.states.values import Kind, Outcome

USER = "cyclades:user:"
FIELDS = {
    "job": 7,
    "instance": "vm",
    "operation": "OP_TAGS_SET",
    "tags": ["cyclades:user:smtp", "cyclades:system:gr/C3/BCn*1"],
    "status": "success",
}
KEYS = frozenset([Tag(USER, "smtp"), Tag("cyclades:system:", "grün_1")])


def notification(**other: Any) -> str:
    return json.dumps({name: value for name, value in {**FIELDS, **other}.items() if value != "-"})


@pytest.mark.parametrize(
    ("operation", "kind"),
    [("OP_TAGS_SET", Kind.ADD), ("OP_TAGS_DEL", Kind.DELETE), ("OP_INSTANCE_CREATE", Kind.CREATE)],
)
@pytest.mark.parametrize(
    ("status", "succeeded"), [("success", True), ("error", False), ("canceled", False)]
)
def test_parse_returns_outcome_of_finished_job(
    operation: str, kind: Kind, status: str, succeeded: bool
) -> None:
    body = notification(operation=operation, status=status)
    outcome = Outcome(7, "vm", kind, KEYS, succeeded)
    assert messages.parse(body) == outcome
    assert messages.parse(body.encode()) == outcome


def test_parse_ignores_unknown_fields() -> None:
    body = notification(logmsg={"a": [1]}, event_time=1.5)
    assert messages.parse(body) == messages.parse(notification())


def test_complete_outcomes_are_written_and_parsed() -> None:
    outcome = Outcome(7, "vm", Kind.ADD, KEYS, succeeded=True, complete=True)
    assert messages.parse(messages.write(outcome)) == outcome
    plain = messages.parse(notification(complete=False))
    assert plain == messages.parse(notification(complete=None)) == messages.parse(notification())
    with pytest.raises(InvalidMessage, match="'complete' is 1, expected true or false"):
        messages.parse(notification(complete=1))


@pytest.mark.parametrize("status", ["queued", "waiting", "canceling", "running"])
def test_parse_returns_none_for_unfinished_job(status: str) -> None:
    assert messages.parse(notification(status=status)) is None


def test_parse_returns_none_for_other_operations() -> None:
    assert messages.parse(notification(operation="OP_INSTANCE_REBOOT", tags="-")) is None


def test_parse_omits_foreign_tags_and_logs_each_once(caplog: Any) -> None:
    caplog.set_level(logging.INFO)
    foreign = ["by hand", "cyclades:user:a/2", "cyclades:user:a/2Fb", "cyclades:user:\ud800"]
    for _ in range(3):
        outcome = messages.parse(notification(tags=["cyclades:user:smtp", *foreign]))
        assert outcome == Outcome(7, "vm", Kind.ADD, frozenset([Tag(USER, "smtp")]), succeeded=True)
    assert len(caplog.records) == len(foreign)
    assert "foreign tag 'by hand'" in caplog.text


def test_parse_uses_the_given_prefixes() -> None:
    outcome = messages.parse(
        notification(tags=["ours:a", "cyclades:user:a"]), Prefixes("ours:", "its:")
    )
    assert outcome == Outcome(7, "vm", Kind.ADD, frozenset([Tag("ours:", "a")]), succeeded=True)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("", "invalid JSON"),
        ("}", "invalid JSON"),
        (b"\xff\xfe", "invalid JSON"),
        ("\ufeff{}", "invalid JSON"),
        ("[" * 100_000, "invalid JSON"),
        ("9" * 5_000, "invalid JSON"),
        ('{"job": 1, "job": 2}', "duplicate key 'job'"),
        ("[]", "it is not a JSON object"),
        ("null", "it is not a JSON object"),
        (notification(tags=["x" * messages.MOST_BYTES]), "bytes, more than 1048576"),
        (notification(job="-"), "'job' is missing, expected a whole number from 1"),
        (notification(job="7"), "'job' is '7', expected a whole number"),
        (notification(job=7.0), "'job' is 7.0, expected"),
        (notification(job=True), "'job' is True, expected"),
        (notification(job=0), "'job' is 0, expected"),
        (notification(job=2**63), "'job' is 9223372036854775808, expected"),
        (notification(instance=None), "'instance' is None, expected text"),
        (notification(instance=""), "'instance' is '', expected 1 to 255 printable"),
        (notification(instance="v" * 256), "expected 1 to 255 printable"),
        (notification(instance="v\0"), "expected 1 to 255 printable"),
        (notification(instance="\ud800"), "expected 1 to 255 printable"),
        (notification(operation=[]), "'operation' is [], expected text"),
        (
            notification(operation="add"),
            "'operation' is 'add', expected one of Ganeti's, such as OP_",
        ),
        (
            notification(status="done"),
            "'status' is 'done', expected one of success, error, canceled",
        ),
        (notification(status={}), "'status' is {}, expected text"),
        (notification(tags="-"), "'tags' is missing, expected a list of texts"),
        (notification(tags="a"), "'tags' is 'a', expected a list of texts"),
        (notification(tags=["a", 1]), "'tags' is ['a', 1], expected a list of texts"),
    ],
)
def test_parse_rejects_malformed_notifications(body: Any, why: str) -> None:
    with pytest.raises(InvalidMessage) as raised:
        messages.parse(body)
    assert why in str(raised.value)
    assert f"{body[:20]!r}"[:-1] in str(raised.value)
    assert 'send one such as {"job": 7' in str(raised.value)
    assert len(str(raised.value)) < 1500


def test_parse_accepts_the_example_in_its_error() -> None:
    with pytest.raises(InvalidMessage) as raised:
        messages.parse("?")
    example = str(raised.value).partition("send one such as ")[2]
    assert messages.parse(example) == Outcome(7, "vm", Kind.ADD, frozenset(), succeeded=True)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"reason": "no room"}, "no room"),
        ({"reason": 7}, "canceled"),
        ({"result": ["OpPrereqError", ["no tag 'a'", "unknown_entity"]]}, None),
        ({"result": [None]}, "canceled"),
        ({}, "canceled"),
    ],
)
def test_parse_keeps_reason_of_failed_job(more: dict[str, Any], reason: str | None) -> None:
    outcome = messages.parse(notification(status="canceled", **more))
    assert outcome is not None
    assert outcome.reason == (reason or "OpPrereqError: no tag 'a', unknown_entity")
    again = messages.parse(messages.write(outcome))
    assert again is not None
    assert (again, again.reason) == (outcome, outcome.reason)


EVENTD = {
    "type": "ganeti-op-status",
    "instance": "snf-7",
    "operation": "OP_TAGS_SET",
    "tags": ["cyclades:user:smtp"],
    "job_fields": {"dry_run": False},
    "event_time": [1795084801, 449297],
    "status": "success",
    "cluster": "cluster.example.org",
    "logmsg": None,
    "result": None,
    "jobId": 1042,
}
"""A notification as snf-ganeti-eventd publishes it."""


def of_eventd(**other: Any) -> str:
    fields = {**EVENTD, **other}
    return json.dumps({name: value for name, value in fields.items() if value != "-"})


@pytest.mark.parametrize(
    ("operation", "kind"),
    [
        ("OP_TAGS_SET", Kind.ADD),
        ("OP_TAGS_DEL", Kind.DELETE),
        ("OP_INSTANCE_CREATE", Kind.CREATE),
        ("OP_INSTANCE_REMOVE", Kind.REMOVE),
    ],
)
@pytest.mark.parametrize("fields", ["-", None, {}, {"nics": None}, {"dry_run": None}])
def test_parse_reads_notifications_of_eventd(operation: str, kind: Kind, fields: Any) -> None:
    keys = frozenset([Tag(USER, "smtp")])
    assert messages.parse(of_eventd(operation=operation, job_fields=fields)) == Outcome(
        1042, "snf-7", kind, keys, succeeded=True, cluster="cluster.example.org"
    )


@pytest.mark.parametrize("operation", ["OP_INSTANCE_CREATE", "OP_INSTANCE_REMOVE"])
@pytest.mark.parametrize("tags", ["-", None, []])
def test_parse_accepts_operations_on_instances_without_tags(operation: str, tags: Any) -> None:
    outcome = messages.parse(of_eventd(operation=operation, tags=tags))
    assert outcome is not None
    assert outcome.tags == frozenset()


@pytest.mark.parametrize(
    "other",
    [
        {"status": "running"},
        {"status": "waiting"},
        {"job_fields": {"dry_run": True}},
        {"operation": "OP_INSTANCE_STARTUP", "tags": "-"},
        {"operation": "OP_INSTANCE_SET_PARAMS", "tags": "-", "instance_nics": [{}]},
    ],
)
def test_parse_returns_none_for_eventd_jobs_without_tag_changes(other: dict[str, Any]) -> None:
    assert messages.parse(of_eventd(**other)) is None


@pytest.mark.parametrize(
    ("other", "why"),
    [
        ({"type": "ganeti-network-status"}, "'type' is 'ganeti-network-status', expected"),
        ({"type": "-"}, "'type' is missing, expected text"),
        ({"jobId": "-"}, "'jobId' is missing, expected a whole number"),
        ({"jobId": "7"}, "'jobId' is '7', expected a whole number"),
        ({"cluster": "-"}, "'cluster' is missing, expected text"),
        ({"cluster": ""}, "'cluster' is '', expected 1 to 255 printable characters"),
        ({"job_fields": []}, "'job_fields' is [], expected an object"),
        ({"tags": None}, "'tags' is None, expected a list of texts"),
    ],
)
def test_parse_rejects_malformed_notifications_of_eventd(other: dict[str, Any], why: str) -> None:
    with pytest.raises(InvalidMessage) as raised:
        messages.parse(of_eventd(**other))
    assert why in str(raised.value)
