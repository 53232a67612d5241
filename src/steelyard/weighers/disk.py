"""A weigher for free disk."""

from steelyard.attributes import read
from steelyard.weighers.free_amounts import FreeAmountWeigher


class DiskWeigher(FreeAmountWeigher):
    """A weigher that prefers hosts with more free disk; with a negative multiplier, with less."""

    multiplier_key = "disk_weight_multiplier"

    def _weigh_object(self, host: object, request: object) -> float:
        return float(read(host, "free_disk_mb") or 0)
