"""Plugins of somebody else, and some that do not work."""

from steelyard.attributes import read
from steelyard.filters.base import Filter
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
