"""A filter for hosts that are in service."""

import operator
from collections.abc import Iterator, Sequence

from steelyard.attributes import read, read_all
from steelyard.filters import base
from steelyard.verdict import Verdict


class InServiceFilter(base.Filter):
    """A filter that rejects hosts that are out of service: disabled for new servers, or down."""

    run_filter_once_per_request = True
    host_local = True
    in_nova = False  # in Nova, the ComputeFilter does this

    def by_kind(self, request: object) -> bool:
        return True

    def judge(self, request: object) -> base.Rejections:
        return _rejections

    def passing(self, hosts: Sequence[object], request: object) -> list[bool]:
        """Return whether each host passes; the attribute of all hosts is read at once."""
        return list(map(operator.not_, read_all(hosts, "out_of_service")))


def _rejections(host: object) -> Iterator[Verdict]:
    why = read(host, "out_of_service")
    if why:
        yield Verdict.rejected(f"the host is out of service: {why}", "the host is out of service")
