"""Notifications about the jobs of a backend, as text: what a job has done, to which tags.

One is an object in JSON, such as::

    {"job": 1042, "instance": "snf-7", "operation": "OP_TAGS_SET",
     "tags": ["cyclades:user:smtp"], "status": "success"}

The names of operations and the words for how a job is are Ganeti's, and the tags are encoded as
they are there. Whoever sends it may say more; that is not looked at.
"""

import json
from collections.abc import Iterable
from typing import Any

from oslo_log import log as logging

from steelyard import errors
from steelyard.once import Once
from steelyard.tags.codec import decode, encode
from steelyard.tags.names import DEFAULT_PREFIXES, Prefixes
from steelyard.tags.states import Key, Kind, Outcome

LOG = logging.getLogger(__name__)

MOST_BYTES = 1 << 20
"""In a notification: there is room for all the tags that an instance can have in Ganeti."""

_GREATEST_JOB = 2**63 - 1
_LONGEST_INSTANCE = 255

_OPERATIONS = {
    Kind.ADD: "OP_TAGS_SET",
    Kind.DELETE: "OP_TAGS_DEL",
    Kind.CREATE: "OP_INSTANCE_CREATE",
}
_KINDS = {operation: kind for kind, operation in _OPERATIONS.items()}
_SUCCEEDED = {"success": True, "error": False, "canceled": False}
_UNDER_WAY = ("queued", "waiting", "canceling", "running")

_first_time = Once()


def write(outcome: Outcome) -> str:
    """The notification about it."""
    return json.dumps(
        {
            "job": outcome.job,
            "instance": outcome.instance,
            "operation": _OPERATIONS[outcome.kind],
            "tags": sorted(encode(name, prefix) for prefix, name in outcome.keys),
            "status": "success" if outcome.succeeded else "error",
        }
    )


def parse(body: bytes | str, prefixes: Prefixes = DEFAULT_PREFIXES) -> Outcome | None:
    """What the notification says has come of a job; None if that is nothing about tags, or yet.

    Tags that nobody here could have set are left out. InvalidMessage if it is no notification.
    """
    said = _Said(body)
    job = said.number("job", _GREATEST_JOB)
    instance = said.text("instance")
    if not (0 < len(instance) <= _LONGEST_INSTANCE and instance.isprintable()):
        raise said.wrong("instance", f"1 to {_LONGEST_INSTANCE} printable characters")
    operation = said.text("operation")
    if not operation.startswith("OP_"):
        raise said.wrong("operation", f"one of Ganeti's, such as {', '.join(_KINDS)}")
    status = said.text("status")
    if status not in (*_SUCCEEDED, *_UNDER_WAY):
        raise said.wrong("status", f"one of {', '.join((*_SUCCEEDED, *_UNDER_WAY))}")
    if operation not in _KINDS or status in _UNDER_WAY:
        return None
    keys = _keys(said.texts("tags"), prefixes)
    return Outcome(job, instance, _KINDS[operation], keys, _SUCCEEDED[status])


def _keys(tags: Iterable[str], prefixes: Prefixes) -> frozenset[Key]:
    found = set()
    for tag in tags:
        try:
            found.add(decode(tag, prefixes))
        except errors.InvalidTag as error:
            if _first_time(tag):
                LOG.info("A tag that a job was about is left alone: %s", error)
    return frozenset(found)


class _Said:
    """A notification, field by field."""

    def __init__(self, body: bytes | str) -> None:
        self._body = body
        if len(body) > MOST_BYTES:
            raise self._none(f"it has {len(body)} bytes, and {MOST_BYTES} at most are read")
        try:
            text = body if isinstance(body, str) else body.decode()
            fields = json.loads(text, object_pairs_hook=_without_repeats)
        except (ValueError, RecursionError) as error:
            raise self._none(f"it is no JSON: {error}") from error
        if not isinstance(fields, dict):
            raise self._none("it is no object")
        self._fields: dict[str, Any] = fields

    def number(self, field: str, greatest: int) -> int:
        value = self._fields.get(field)
        if type(value) is not int or not 1 <= value <= greatest:
            raise self.wrong(field, f"a whole number from 1 to {greatest}")
        return value

    def text(self, field: str) -> str:
        value = self._fields.get(field)
        if not isinstance(value, str):
            raise self.wrong(field, "text")
        return value

    def texts(self, field: str) -> list[str]:
        value = self._fields.get(field)
        if not (isinstance(value, list) and all(isinstance(each, str) for each in value)):
            raise self.wrong(field, "a list of texts")
        return value

    def wrong(self, field: str, allowed: str) -> errors.InvalidMessage:
        if field not in self._fields:
            return self._none(f"it has no {field!r}, which is {allowed}")
        return self._none(f"{field!r} is {self._fields[field]!r:.100}, and must be {allowed}")

    def _none(self, why: str) -> errors.InvalidMessage:
        return errors.InvalidMessage(
            f"{self._body[:200]!r} is no notification about a job: {why}; one is such as "
            f'{{"job": 7, "instance": "vm", "operation": "OP_TAGS_SET", "tags": [], '
            f'"status": "success"}}'
        )


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields = dict(pairs)
    if len(fields) < len(pairs):
        raise ValueError("an object has the same name twice")
    return fields
