"""Notifications about jobs: what they say, and what is none."""

import json
import logging
from typing import Any

import pytest

from steelyard.errors import InvalidMessage
from steelyard.tags import messages
from steelyard.tags.names import Prefixes
from steelyard.tags.states import Kind, Outcome

USER = "cyclades:user:"
SAID = {
    "job": 7,
    "instance": "vm",
    "operation": "OP_TAGS_SET",
    "tags": ["cyclades:user:smtp", "cyclades:system:gr/C3/BCn*1"],
    "status": "success",
}
KEYS = frozenset([(USER, "smtp"), ("cyclades:system:", "grün_1")])


def said(**other: Any) -> str:
    return json.dumps({name: value for name, value in {**SAID, **other}.items() if value != "-"})


@pytest.mark.parametrize(
    ("operation", "kind"),
    [("OP_TAGS_SET", Kind.ADD), ("OP_TAGS_DEL", Kind.DELETE), ("OP_INSTANCE_CREATE", Kind.CREATE)],
)
@pytest.mark.parametrize(
    ("status", "succeeded"), [("success", True), ("error", False), ("canceled", False)]
)
def test_what_has_become_of_a_job(operation: str, kind: Kind, status: str, succeeded: bool) -> None:
    body = said(operation=operation, status=status)
    outcome = Outcome(7, "vm", kind, KEYS, succeeded)
    assert messages.parse(body) == outcome
    assert messages.parse(body.encode()) == outcome


def test_what_else_is_said_is_not_looked_at() -> None:
    body = said(logmsg={"a": [1]}, event_time=1.5)
    assert messages.parse(body) == messages.parse(said())


@pytest.mark.parametrize("status", ["queued", "waiting", "canceling", "running"])
def test_what_is_not_over_is_no_outcome(status: str) -> None:
    assert messages.parse(said(status=status)) is None


def test_other_operations_of_instances_are_no_outcome() -> None:
    assert messages.parse(said(operation="OP_INSTANCE_REBOOT", tags="-")) is None


def test_tags_of_others_are_left_out_and_said_once(caplog: Any) -> None:
    caplog.set_level(logging.INFO)
    foreign = ["by hand", "cyclades:user:a/2", "cyclades:user:a/2Fb", "cyclades:user:\ud800"]
    for _ in range(3):
        outcome = messages.parse(said(tags=["cyclades:user:smtp", *foreign]))
        assert outcome == Outcome(7, "vm", Kind.ADD, frozenset([(USER, "smtp")]), succeeded=True)
    assert len(caplog.records) == len(foreign)
    assert "'by hand' is foreign" in caplog.text


def test_the_prefixes_are_those_that_are_configured() -> None:
    outcome = messages.parse(said(tags=["ours:a", "cyclades:user:a"]), Prefixes("ours:", "its:"))
    assert outcome == Outcome(7, "vm", Kind.ADD, frozenset([("ours:", "a")]), succeeded=True)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("", "it is no JSON"),
        ("}", "it is no JSON"),
        (b"\xff\xfe", "it is no JSON"),
        ("\ufeff{}", "it is no JSON"),
        ("[" * 100_000, "it is no JSON"),
        ("9" * 5_000, "it is no JSON"),
        ('{"job": 1, "job": 2}', "an object has the same name twice"),
        ("[]", "it is no object"),
        ("null", "it is no object"),
        (said(tags=["x" * messages.MOST_BYTES]), "bytes, and 1048576 at most are read"),
        (said(job="-"), "it has no 'job', which is a whole number from 1"),
        (said(job="7"), "'job' is '7', and must be a whole number"),
        (said(job=7.0), "'job' is 7.0, and"),
        (said(job=True), "'job' is True, and"),
        (said(job=0), "'job' is 0, and"),
        (said(job=2**63), "'job' is 9223372036854775808, and"),
        (said(instance=None), "'instance' is None, and must be text"),
        (said(instance=""), "'instance' is '', and must be 1 to 255 printable"),
        (said(instance="v" * 256), "must be 1 to 255 printable"),
        (said(instance="v\0"), "must be 1 to 255 printable"),
        (said(instance="\ud800"), "must be 1 to 255 printable"),
        (said(operation=[]), "'operation' is [], and must be text"),
        (said(operation="add"), "'operation' is 'add', and must be one of Ganeti's, such as OP_"),
        (said(status="done"), "'status' is 'done', and must be one of success, error, canceled"),
        (said(status={}), "'status' is {}, and must be text"),
        (said(tags="-"), "it has no 'tags', which is a list of texts"),
        (said(tags="a"), "'tags' is 'a', and must be a list of texts"),
        (said(tags=["a", 1]), "'tags' is ['a', 1], and must be a list of texts"),
    ],
)
def test_what_is_no_notification(body: Any, why: str) -> None:
    with pytest.raises(InvalidMessage) as raised:
        messages.parse(body)
    assert why in str(raised.value)
    assert f"{body[:20]!r}"[:-1] in str(raised.value)
    assert 'one is such as {"job": 7' in str(raised.value)
    assert len(str(raised.value)) < 1500


def test_the_example_in_an_error_is_one() -> None:
    with pytest.raises(InvalidMessage) as raised:
        messages.parse("?")
    example = str(raised.value).partition("one is such as ")[2]
    assert messages.parse(example) == Outcome(7, "vm", Kind.ADD, frozenset(), succeeded=True)
