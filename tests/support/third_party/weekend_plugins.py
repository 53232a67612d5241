"""Plugins of a third party, some of them broken."""

import os
import pathlib
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from oslo_config import cfg

from steelyard import errors
from steelyard.attributes import read
from steelyard.filters.base import Filter, Rejections
from steelyard.tags.backends.base import BackendIdentity, JobStatus, TagBackend
from steelyard.verdict import Verdict
from steelyard.weighers.base import Weigher


class NameFilter(Filter):
    """A filter that passes hosts whose name ends in 1."""

    def judge(self, request: object) -> Rejections:
        return _rejections


def _rejections(host: object) -> Iterator[Verdict]:
    name = str(read(host, "host"))
    if not name.endswith("1"):
        yield Verdict.rejected(f"{name!r} does not end in 1")


class NameWeigher(Weigher):
    """A weigher that prefers hosts with long names."""

    def _weigh_object(self, host: object, request: object) -> float:
        return float(len(str(read(host, "host"))))


class NoFilterAtAll:
    """A class that is not a subclass of Filter."""


class FailingFilter(NameFilter):
    """A filter whose constructor raises."""

    def __init__(self, conf: object = None) -> None:
        raise RuntimeError("no licence")


class LicensedFilter(NameFilter):
    """A filter with an option in steelyard's group, and one in its own."""

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        conf = cfg.CONF if conf is None else conf
        conf.register_opts([cfg.StrOpt("licence")], group="steelyard")
        conf.register_opts([cfg.IntOpt("seats", default=1, min=1)], group="weekend")
        self._seats = conf.weekend.seats


class NotedConsumers:
    """A consumer model with the required methods, in which each project has one consumer."""

    def __init__(self, where: str) -> None:
        scheme, _, self._kind = where.partition(":")
        if scheme != "note":
            raise ValueError(f"not a note: {where}")

    def post_allocations(self, body: object) -> None:
        raise errors.Conflict("a note cannot be changed")

    def get_allocations(self, consumer: str) -> dict[str, Any]:
        return {"allocations": {}}

    def usages(
        self, project_id: str, user_id: str | None = None, consumer_type: str | None = None
    ) -> dict[str, Any]:
        return {"usages": {consumer_type or self._kind: {"consumer_count": 1, "VCPU": 2}}}

    def count(self, project_id: str, user_id: str | None = None, consumer_type: str = "all") -> int:
        return 1


class FileTags(TagBackend):
    """A tag backend with one file per instance and one tag per line.

    Jobs finish at once, all have the number 1, and none is kept.
    """

    def __init__(self, conf: object = None) -> None:
        self._directory = pathlib.Path(os.environ["WEEKEND_TAGS"])
        self._pause = float(os.environ.get("WEEKEND_PAUSE", "0"))

    def identity(self) -> BackendIdentity:
        return BackendIdentity("files", self._directory.name)

    def create(self, instance: str, tags: Sequence[str]) -> int:
        self._path(instance).touch()
        return self.add(instance, tags)

    def add(self, instance: str, tags: Sequence[str]) -> int:
        return self._write(instance, self._read(instance).union(tags))

    def delete(self, instance: str, tags: Sequence[str]) -> int:
        return self._write(instance, self._read(instance).difference(tags))

    def jobs(self, numbers: Iterable[int]) -> Mapping[int, JobStatus]:
        return {}

    def horizon(self) -> int:
        return 0

    def tags(self, instances: Iterable[str]) -> Mapping[str, frozenset[str]]:
        time.sleep(self._pause)
        there = [name for name in instances if self._path(name).exists()]
        return {name: frozenset(self._read(name)) for name in there}

    def instances(self) -> Iterable[str]:
        return [path.name for path in self._directory.iterdir()]

    def _path(self, instance: str) -> pathlib.Path:
        return self._directory / instance

    def _read(self, instance: str) -> set[str]:
        try:
            return set(self._path(instance).read_text().split())
        except OSError as error:
            raise errors.BackendRefused(f"{instance!r}: {error.strerror}") from error

    def _write(self, instance: str, tags: Iterable[str]) -> int:
        self._path(instance).write_text("\n".join(tags))
        return 1
