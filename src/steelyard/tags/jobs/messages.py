"""Notifications about the jobs of a backend, as text.

A notification says which tags a job has changed, and whether it succeeded. It is a JSON object such
as::

    {"job": 1042, "instance": "snf-7", "operation": "OP_TAGS_SET",
     "tags": ["cyclades:user:smtp"], "status": "success"}

The names of operations and statuses are Ganeti's, and the tags are encoded. Unknown fields are
ignored.

Notifications of Synnefo's snf-ganeti-eventd are accepted, too. They have ``jobId`` instead of
``job``, and name the cluster.
"""

import json
from collections.abc import Iterable
from typing import Any

from oslo_log import log as logging

from steelyard import errors
from steelyard._once import Once
from steelyard.tags.backends.base import GREATEST_JOB
from steelyard.tags.codec import Tag, decode
from steelyard.tags.names import DEFAULT_PREFIXES, Prefixes
from steelyard.tags.states.values import Kind, Outcome
from steelyard.text import strict_json

LOG = logging.getLogger(__name__)

MOST_BYTES = 1 << 20
"""The greatest size of a notification: room for all tags of an instance in Ganeti."""

_LONGEST_NAME = 255

_OPERATIONS = {
    Kind.ADD: "OP_TAGS_SET",
    Kind.DELETE: "OP_TAGS_DEL",
    Kind.CREATE: "OP_INSTANCE_CREATE",
    Kind.REMOVE: "OP_INSTANCE_REMOVE",
}
_KINDS = {operation: kind for kind, operation in _OPERATIONS.items()}
# Jobs of these kinds change tags even if the notification lists none.
_OF_INSTANCES = (Kind.CREATE, Kind.REMOVE)
_EVENTD_TYPE = "ganeti-op-status"
_SUCCEEDED = {"success": True, "error": False, "canceled": False}
_UNFINISHED = ("queued", "waiting", "canceling", "running")

_first_time = Once()


def write(outcome: Outcome) -> str:
    """Return the notification about the outcome."""
    reason = {"reason": outcome.reason} if outcome.reason else {}
    complete = {"complete": True} if outcome.complete else {}
    return json.dumps(
        {
            "job": outcome.job,
            "instance": outcome.instance,
            "operation": _OPERATIONS[outcome.kind],
            "tags": sorted(tag.encoded for tag in outcome.tags),
            "status": "success" if outcome.succeeded else "error",
            **complete,
            **reason,
        }
    )


def parse(body: bytes | str, prefixes: Prefixes = DEFAULT_PREFIXES) -> Outcome | None:
    """Return the outcome that the notification reports.

    None if the job is unfinished, was a dry run, or has nothing to do with tags. Tags without a
    known prefix are left out. Raises InvalidMessage for a malformed notification.
    """
    notification = _Notification(body)
    cluster = None
    if notification.is_of_eventd:
        if notification.text("type") != _EVENTD_TYPE:
            raise notification.wrong("type", repr(_EVENTD_TYPE))
        cluster = notification.name("cluster")
    job = notification.number("jobId" if notification.is_of_eventd else "job", GREATEST_JOB)
    instance = notification.name("instance")
    operation = notification.text("operation")
    if not operation.startswith("OP_"):
        raise notification.wrong("operation", f"one of Ganeti's, such as {', '.join(_KINDS)}")
    status = notification.text("status")
    if status not in (*_SUCCEEDED, *_UNFINISHED):
        raise notification.wrong("status", f"one of {', '.join((*_SUCCEEDED, *_UNFINISHED))}")
    if operation not in _KINDS or status in _UNFINISHED or notification.is_dry_run:
        return None
    kind = _KINDS[operation]
    without = kind in _OF_INSTANCES and notification.lacks("tags")
    keys = known_keys(() if without else notification.texts("tags"), prefixes)
    return Outcome(
        job,
        instance,
        kind,
        keys,
        _SUCCEEDED[status],
        cluster,
        notification.is_complete,
        notification.reason(status),
    )


def known_keys(tags: Iterable[str], prefixes: Prefixes) -> frozenset[Tag]:
    """Return the tags with a known prefix, decoded; log each of the others once."""
    found = set()
    for tag in tags:
        try:
            found.add(decode(tag, prefixes))
        except errors.InvalidTag as error:
            if _first_time(tag):
                LOG.info("Ignored a tag of a job: %s", error)
    return frozenset(found)


def failure(result: object) -> str | None:
    """Return the error in the result of one of Ganeti's opcodes, or None if there is none.

    Ganeti writes an error as the name of its class and its arguments.
    """
    match result:
        case [str(error), arguments]:
            return f"{error}: {_written(arguments)}"
    return None


def _written(arguments: object) -> str:
    return ", ".join(map(_written, arguments)) if isinstance(arguments, list) else str(arguments)


class _Notification:
    """The fields of a notification; reading an invalid one raises InvalidMessage."""

    def __init__(self, body: bytes | str) -> None:
        self._body = body
        if len(body) > MOST_BYTES:
            raise self._malformed(f"it has {len(body)} bytes, more than {MOST_BYTES}")
        try:
            text = body if isinstance(body, str) else body.decode()
            fields = strict_json.loads(text)
        except (ValueError, RecursionError) as error:
            raise self._malformed(f"invalid JSON: {error}") from error
        if not isinstance(fields, dict):
            raise self._malformed("it is not a JSON object")
        self._fields: dict[str, Any] = fields

    @property
    def is_of_eventd(self) -> bool:
        """Whether it has the form of snf-ganeti-eventd's notifications."""
        return "job" not in self._fields and not self._fields.keys().isdisjoint(("jobId", "type"))

    @property
    def is_dry_run(self) -> bool:
        """Whether the job was a dry run, which changes nothing; only eventd reports this."""
        if not self.is_of_eventd or self.lacks("job_fields"):
            return False
        fields = self._fields["job_fields"]
        if not isinstance(fields, dict):
            raise self.wrong("job_fields", "an object")
        return bool(fields.get("dry_run"))

    @property
    def is_complete(self) -> bool:
        """Whether it covers all that the job did to the tags; eventd's notifications do not."""
        if self.is_of_eventd or self.lacks("complete"):
            return False
        value = self._fields["complete"]
        if not isinstance(value, bool):
            raise self.wrong("complete", "true or false")
        return value

    def lacks(self, field: str) -> bool:
        """Return whether the field is missing or null."""
        return self._fields.get(field) is None

    def name(self, field: str) -> str:
        value = self.text(field)
        if not (0 < len(value) <= _LONGEST_NAME and value.isprintable()):
            raise self.wrong(field, f"1 to {_LONGEST_NAME} printable characters")
        return value

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

    def reason(self, status: str) -> str:
        """Return why a job failed: a reason as text, an error as the result, or the status.

        The reason of a job that succeeded is empty.
        """
        if _SUCCEEDED[status]:
            return ""
        value = self._fields.get("reason")
        return value if isinstance(value, str) else failure(self._fields.get("result")) or status

    def wrong(self, field: str, expected: str) -> errors.InvalidMessage:
        if field not in self._fields:
            return self._malformed(f"{field!r} is missing, expected {expected}")
        return self._malformed(f"{field!r} is {self._fields[field]!r:.100}, expected {expected}")

    def _malformed(self, why: str) -> errors.InvalidMessage:
        return errors.InvalidMessage(
            f"malformed notification {self._body[:200]!r}: {why}; send one such as "
            f'{{"job": 7, "instance": "vm", "operation": "OP_TAGS_SET", "tags": [], '
            f'"status": "success"}}'
        )
