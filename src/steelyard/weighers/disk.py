"""A weigher for free disk."""

from collections.abc import Sequence

from steelyard.attributes import read_all
from steelyard.weighers.free_amounts import FreeAmountWeigher


class DiskWeigher(FreeAmountWeigher):
    """A weigher that prefers hosts with more free disk; with a negative multiplier, with less."""

    multiplier_key = "disk_weight_multiplier"

    def _free(self, hosts: Sequence[object]) -> list[float]:
        return [free or 0 for free in read_all(hosts, "free_disk_mb")]
