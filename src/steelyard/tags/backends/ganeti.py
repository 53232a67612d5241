"""Tags in Ganeti, set by jobs that its remote API is asked for.

Ganeti finds an instance by a part of its name, too, and in any case of letters. Whose tags are
meant must be beyond doubt: names are asked for as they are written, before a job is submitted.
"""

import re
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from oslo_config import cfg

from steelyard import conf as options
from steelyard import errors
from steelyard.tags.backends.base import BackendIdentity, JobStatus, TagBackend
from steelyard.tags.backends.rapi import Rapi, connections

_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,253}[a-z0-9])?")
_TAG = re.compile(r"[A-Za-z0-9_.+*/:@-]{1,128}")
# Ganeti closes the connection without a word if a request's first line is longer.
_LONGEST_LINE = 8192
# Ganeti's work grows with the square of the numbers that are asked about: for 1,000 it takes 0.3 s,
# for 20,000 it takes 40 s.
_AT_ONCE = 500
_OVER = {
    "success": JobStatus.SUCCEEDED,
    "error": JobStatus.FAILED,
    "canceled": JobStatus.FAILED,
}


ValueT = TypeVar("ValueT")


class GanetiBackend(TagBackend):
    """A Ganeti cluster, as the options that begin with ``ganeti_`` describe it."""

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        group = options.register_tags(conf)
        for option in ("ganeti_url", "ganeti_user", "ganeti_password"):
            if not getattr(group, option):
                raise errors.BadRequest(
                    f"the backend ganeti needs to know where Ganeti is, and who asks: set "
                    f"{option} in [{options.TAGS_GROUP}]"
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
                f"nobody has said what instances are made of: set ganeti_instance in "
                f"[{options.TAGS_GROUP}]"
            )
        if self.tags([instance]):
            raise errors.BackendRefused(f"there is already an instance {instance!r} in Ganeti")
        body = {**self._instance, "instance_name": instance, "tags": list(tags)}
        return self._rapi.submit("POST", "/2/instances", body)

    def add(self, instance: str, tags: Sequence[str]) -> int:
        return self._submit("PUT", instance, tags)

    def delete(self, instance: str, tags: Sequence[str]) -> int:
        return self._submit("DELETE", instance, tags)

    def jobs(self, numbers: Iterable[int]) -> Mapping[int, JobStatus]:
        found = dict.fromkeys(numbers, JobStatus.LOST)
        asked = [number for number in found if number > 0]  # others are no numbers to Ganeti
        for some in _a_few_hundred_each(asked):
            rows = self._rapi.rows("job", ["id", "status"], _any_of("id", some))
            found |= {number: _status(status) for number, status in rows if number in found}
        return found

    def horizon(self) -> int:
        """What is no longer listed has been archived, which is done with jobs that are over."""
        rows = self._rapi.rows("job", ["id", "status"])
        going_on = [number for number, status in rows if _status(status) is JobStatus.RUNNING]
        return min(going_on, default=max((number for number, _ in rows), default=0) + 1) - 1

    def tags(self, instances: Iterable[str]) -> Mapping[str, frozenset[str]]:
        names = [name for name in dict.fromkeys(instances) if _NAME.fullmatch(name)]
        there: dict[str, frozenset[str]] = {}
        for some in _a_few_hundred_each(names):
            # Without the "and" around it, one name that is not there fails the whole query.
            rows = self._rapi.rows("instance", ["name", "tags"], ["&", _any_of("name", some)])
            there |= {name: frozenset(tags) for name, tags in rows if name in some}
        return there

    def batches(self, instance: str, tags: Sequence[str]) -> list[Sequence[str]]:
        """As many in each as the first line of a request has room for."""
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
                f"there is no instance {instance!r} in Ganeti; names are to be written in full, as "
                f"gnt-instance list has them"
            )
        return self._rapi.submit(method, _target(instance, tags))


def _check(instance: str, tags: Iterable[str]) -> None:
    """Raises BackendRefused for what must not be sent: some of it would wedge a cluster."""
    if not _NAME.fullmatch(instance):
        raise errors.BackendRefused(
            f"{instance!r:.300} is no name of an instance in Ganeti; it is up to 255 of a-z, 0-9, "
            f"., - and _, and begins and ends with a letter or a digit"
        )
    for tag in tags:
        if not _TAG.fullmatch(tag):
            raise errors.BackendRefused(
                f"{tag!r:.300} is no tag in Ganeti; it is up to 128 of A-Z, a-z, 0-9 and _.+*/:@-"
            )


def _target(instance: str, tags: Iterable[str]) -> str:
    """What is asked for; each tag once, for Ganeti deletes none that is named twice."""
    query = "&".join(map(_parameter, dict.fromkeys(tags)))
    return f"/2/instances/{instance}/tags?{query}"


def _parameter(tag: str) -> str:
    return f"tag={urllib.parse.quote(tag, safe='*/:@')}"


def _a_few_hundred_each(values: Sequence[ValueT]) -> Iterator[Sequence[ValueT]]:
    return (values[start : start + _AT_ONCE] for start in range(0, len(values), _AT_ONCE))


def _any_of(field: str, values: Iterable[Any]) -> list[Any]:
    return ["|", *(["=", field, value] for value in values)]


def _status(status: str | None) -> JobStatus:
    """What Ganeti knows no status of it has never had, or has removed."""
    return JobStatus.LOST if status is None else _OVER.get(status, JobStatus.RUNNING)
