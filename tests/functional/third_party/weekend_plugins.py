"""Plugins of somebody else, and some that do not work."""

import os
import pathlib
import time
from collections.abc import Iterable, Mapping, Sequence

from steelyard import errors
from steelyard.attributes import read
from steelyard.filters.base import Filter
from steelyard.tags.backends.base import BackendIdentity, JobStatus, TagBackend
from steelyard.verdict import PASSED, Verdict
from steelyard.weighers.base import Weigher


class NameFilter(Filter):
    """Keeps hosts whose name ends in 1."""

    def examine(self, host: object, request: object) -> Verdict:
        name = str(read(host, "host"))
        return PASSED if name.endswith("1") else Verdict.rejected(f"{name!r} does not end in 1")


class NameWeigher(Weigher):
    """Prefers long names."""

    def _weigh_object(self, host: object, request: object) -> float:
        return float(len(str(read(host, "host"))))


class NoFilterAtAll:
    """Derives from nothing."""


class FailingFilter(NameFilter):
    """Cannot be constructed."""

    def __init__(self, conf: object = None) -> None:
        raise RuntimeError("no licence")


class FileTags(TagBackend):
    """A file for each instance with its tags, one a line. Jobs are over at once, and all number 1.

    Its jobs are not remembered.
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
