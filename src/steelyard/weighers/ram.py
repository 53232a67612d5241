"""A weigher for free RAM."""

from steelyard.attributes import read
from steelyard.weighers.free_amounts import FreeAmountWeigher


class RAMWeigher(FreeAmountWeigher):
    """A weigher that prefers hosts with more free RAM; with a negative multiplier, with less."""

    multiplier_key = "ram_weight_multiplier"

    def _weigh_object(self, host: object, request: object) -> float:
        return float(read(host, "free_ram_mb") or 0)
