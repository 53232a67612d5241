"""Hosts by whether they are in service."""

from steelyard.attributes import read
from steelyard.filters import base
from steelyard.verdict import PASSED, Verdict


class InServiceFilter(base.Filter):
    """Keeps hosts that are in service: neither switched off for new servers, nor down."""

    run_filter_once_per_request = True
    in_nova = False  # Nova's ComputeFilter does this there

    def examine(self, host: object, request: object) -> Verdict:
        why = read(host, "out_of_service")
        if not why:
            return PASSED
        return Verdict.rejected(f"the host is out of service: {why}", "the host is out of service")
