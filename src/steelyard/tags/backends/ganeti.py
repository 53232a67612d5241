"""The Ganeti backend, which changes tags by jobs of Ganeti's remote API.

Ganeti also accepts a part of an instance's name, and ignores case. So that a job does not change
another instance, the backend first checks that an instance with exactly this name exists.
"""

import dataclasses
import re
import urllib.parse
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from oslo_config import cfg
from oslo_log import log as logging

from steelyard import conf as options
from steelyard import errors
from steelyard._once import Once
from steelyard.tags.backends.base import BackendIdentity, JobStatus, TagBackend, TagJob
from steelyard.tags.backends.rapi import Rapi, connections
from steelyard.tags.jobs import messages
from steelyard.tags.states.values import Kind

LOG = logging.getLogger(__name__)

# Two dots in a row would be an empty label, which Ganeti refuses.
_NAME = re.compile(r"(?!.*\.\.)[a-z0-9]([a-z0-9._-]{0,253}[a-z0-9])?")
_TAG = re.compile(r"[A-Za-z0-9_.+*/:@-]{1,128}")
# Ganeti closes the connection without an answer if a request's first line is longer.
_LONGEST_LINE = 8192
# The most ids in one query. The time for a query grows with their square: 0.3 s for 1,000 ids, 40 s
# for 20,000.
_AT_ONCE = 500
_CHANGES_TAGS = {"OP_TAGS_SET": Kind.ADD, "OP_TAGS_DEL": Kind.DELETE}
_TYPED = _CHANGES_TAGS.values()
_CHANGES_INSTANCES = {"OP_INSTANCE_CREATE": Kind.CREATE, "OP_INSTANCE_REMOVE": Kind.REMOVE}
_FINISHED = {
    "success": JobStatus.SUCCEEDED,
    "error": JobStatus.FAILED,
    "canceled": JobStatus.FAILED,
}


ValueT = TypeVar("ValueT")

_first_time = Once()


class GanetiBackend(TagBackend):
    """A Ganeti cluster, configured by the options that begin with ``ganeti_``."""

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        group = options.register_tags(conf)
        for option in ("ganeti_url", "ganeti_user", "ganeti_password"):
            if not getattr(group, option):
                raise errors.BadRequest(
                    f"missing option of the backend 'ganeti': set {option} in "
                    f"[{options.TAGS_GROUP}]"
                )
        self._rapi = Rapi(
            group.ganeti_url,
            group.ganeti_user,
            group.ganeti_password,
            connections(
                group.ganeti_ca,
                group.ganeti_fingerprint,
                group.ganeti_connect_timeout,
                group.ganeti_timeout,
            ),
        )
        self._instance: Mapping[str, Any] | None = group.ganeti_instance

    def identity(self) -> BackendIdentity:
        return BackendIdentity("ganeti", self._rapi.cluster_name())

    def create(self, instance: str, tags: Sequence[str]) -> int:
        _check(instance, tags)
        if self._instance is None:
            raise errors.BackendRefused(
                f"cannot create instance {instance!r}: its parameters are missing; set "
                f"ganeti_instance in [{options.TAGS_GROUP}]"
            )
        if self.tags([instance]):
            raise errors.BackendRefused(
                f"cannot create instance {instance!r}: Ganeti has it already"
            )
        body = {**self._instance, "instance_name": instance, "tags": list(tags)}
        return self._rapi.submit("POST", "/2/instances", body)

    def add(self, instance: str, tags: Sequence[str]) -> int:
        return self._submit("PUT", instance, tags)

    def delete(self, instance: str, tags: Sequence[str]) -> int:
        return self._submit("DELETE", instance, tags)

    def jobs(self, numbers: Iterable[int]) -> Mapping[int, JobStatus]:
        found = dict.fromkeys(numbers, JobStatus.LOST)
        asked = [number for number in found if number > 0]  # Ganeti rejects other numbers
        for some in _a_few_hundred_each(asked):
            rows = self._rapi.rows("job", ["id", "status"], _any_of("id", some))
            found |= {number: _status(status) for number, status in rows if number in found}
        return found

    def horizon(self) -> int:
        """Return the number before the oldest unfinished job.

        Jobs that are not listed are archived, and Ganeti archives only finished jobs.
        """
        rows = self._rapi.rows("job", ["id", "status"])
        running = [number for number, status in rows if _status(status) is JobStatus.RUNNING]
        return min(running, default=max((number for number, _ in rows), default=0) + 1) - 1

    def jobs_since(self, number: int) -> Mapping[int, JobStatus]:
        rows = self._rapi.rows("job", ["id", "status"], [">", "id", number])
        return {each: _status(status) for each, status in rows}

    def tag_jobs(self, numbers: Iterable[int]) -> Mapping[int, Sequence[TagJob]]:
        done: dict[int, list[TagJob]] = {}
        for some in _a_few_hundred_each(list(numbers)):
            rows = self._rapi.rows("job", ["id", "ops", "opstatus"], _any_of("id", some))
            for number, operations, statuses in rows:
                pairs = zip(operations or (), statuses or (), strict=False)
                found = [_tag_job(number, each) for each, status in pairs if status == "success"]
                done[number] = [each for each in found if each is not None]
        return self._with_full_names(done)

    def _with_full_names(
        self, done: Mapping[int, Sequence[TagJob]]
    ) -> Mapping[int, Sequence[TagJob]]:
        """Return the same jobs with the full names of the instances.

        A job about tags has the name as it was typed: perhaps only a part, or in another case.
        """
        typed = {each.instance for jobs in done.values() for each in jobs if each.kind in _TYPED}
        exact = self.tags(typed).keys() if typed else ()
        if not typed.difference(exact):
            return done
        names = self.instances()
        return {
            number: [
                dataclasses.replace(each, instance=_matching(each.instance, names))
                if each.kind in _TYPED
                else each
                for each in jobs
            ]
            for number, jobs in done.items()
        }

    def has_issued(self, number: int) -> bool:
        """Return whether Ganeti knows the job, or lists one with a greater number.

        Ganeti knows archived jobs until they are removed from the archive. After that, only a
        greater number shows that a number was issued.
        """
        if self.jobs([number])[number] is not JobStatus.LOST:
            return True
        return bool(self.jobs_since(number))

    def tags(self, instances: Iterable[str]) -> Mapping[str, frozenset[str]]:
        names = [name for name in dict.fromkeys(instances) if _NAME.fullmatch(name)]
        there: dict[str, frozenset[str]] = {}
        for some in _a_few_hundred_each(names):
            # Without the "and" around it, one missing name fails the whole query.
            rows = self._rapi.rows("instance", ["name", "tags"], ["&", _any_of("name", some)])
            there |= {name: frozenset(tags) for name, tags in rows if name in some}
        return there

    def check_name(self, instance: str) -> None:
        if not _NAME.fullmatch(instance):
            raise errors.BadRequest(_not_a_name(instance))

    def reasons(self, numbers: Iterable[int]) -> Mapping[int, str]:
        """Return the first error of each of the jobs, or its status if it has none."""
        found: dict[int, str] = {}
        for some in _a_few_hundred_each(list(numbers)):
            rows = self._rapi.rows("job", ["id", "status", "opresult"], _any_of("id", some))
            found |= {number: _reason(status, results) for number, status, results in rows}
        return found

    def instances(self) -> list[str]:
        return [name for (name,) in self._rapi.rows("instance", ["name"])]

    def batches(self, instance: str, tags: Sequence[str]) -> list[Sequence[str]]:
        """Split the tags so that the first line of each request fits Ganeti's limit."""
        room = _LONGEST_LINE - len(f"DELETE {self._rapi.path}{_target(instance, ())} HTTP/1.1")
        batches: list[list[str]] = []
        left = 0
        for tag in tags:
            length = len(_parameter(tag)) + 1
            if length > left or not batches:
                batches.append([])
                left = room
            batches[-1].append(tag)
            left -= length
        return list(batches)

    def _submit(self, method: str, instance: str, tags: Sequence[str]) -> int:
        _check(instance, tags)
        if not self.tags([instance]):
            raise errors.BackendRefused(
                f"no instance {instance!r} in Ganeti; use the full name, as printed by "
                f"gnt-instance list"
            )
        return self._rapi.submit(method, _target(instance, tags))


def _check(instance: str, tags: Iterable[str]) -> None:
    """Raise BackendRefused for an invalid name or tag: some of these would block a cluster."""
    if not _NAME.fullmatch(instance):
        raise errors.BackendRefused(_not_a_name(instance))
    for tag in tags:
        if not _TAG.fullmatch(tag):
            raise errors.BackendRefused(
                f"invalid Ganeti tag {tag!r:.300}: expected 1 to 128 of A-Z, a-z, 0-9 and _.+*/:@-"
            )


def _not_a_name(instance: str) -> str:
    return (
        f"invalid instance name {instance!r:.300}: expected 1 to 255 of a-z, 0-9, ., - and _, "
        f"beginning and ending with a letter or a digit, without two dots in a row"
    )


def _tag_job(number: int, operation: Mapping[str, Any]) -> TagJob | None:
    """Return the effect of an opcode on an instance's tags, or None if it has none."""
    name = operation.get("OP_ID")
    if operation.get("dry_run"):
        return None
    if name in _CHANGES_TAGS and operation.get("kind") == "instance":
        kind, field = _CHANGES_TAGS[name], "name"
    elif name in _CHANGES_INSTANCES:
        kind, field = _CHANGES_INSTANCES[name], "instance_name"
    else:
        return None
    instance = operation.get(field)
    if not isinstance(instance, str):
        if _first_time((number, name)):
            LOG.warning("Skipped opcode %s of Ganeti's job %s: %r is missing", name, number, field)
        return None
    return TagJob(instance, kind, frozenset(operation.get("tags") or ()))


def _matching(typed: str, names: Collection[str]) -> str:
    """Return the full name if Ganeti finds exactly one for the typed name, else the typed name."""
    wanted = typed.lower()
    if wanted in names:
        return wanted
    found = [name for name in names if name.startswith(f"{wanted}.")]
    return found[0] if len(found) == 1 else typed


def _target(instance: str, tags: Iterable[str]) -> str:
    """Return the request target, with each tag once: Ganeti deletes no tag that is repeated."""
    query = "&".join(map(_parameter, dict.fromkeys(tags)))
    return f"/2/instances/{instance}/tags?{query}"


def _parameter(tag: str) -> str:
    return f"tag={urllib.parse.quote(tag, safe='*/:@')}"


def _a_few_hundred_each(values: Sequence[ValueT]) -> Iterator[Sequence[ValueT]]:
    return (values[start : start + _AT_ONCE] for start in range(0, len(values), _AT_ONCE))


def _any_of(field: str, values: Iterable[Any]) -> list[Any]:
    return ["|", *(["=", field, value] for value in values)]


def _reason(status: str, results: Any) -> str:
    """Return the first error among the results of a job's opcodes, or the job's status."""
    found = map(messages.failure, results if isinstance(results, list) else ())
    return next(filter(None, found), status)


def _status(status: str | None) -> JobStatus:
    """Return the job status for Ganeti's status, which is None for an unknown job."""
    return JobStatus.LOST if status is None else _FINISHED.get(status, JobStatus.RUNNING)
