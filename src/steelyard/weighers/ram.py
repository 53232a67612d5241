"""A weigher for free RAM."""

from collections.abc import Sequence

from steelyard.attributes import read_all
from steelyard.weighers.free_amounts import FreeAmountWeigher


class RAMWeigher(FreeAmountWeigher):
    """A weigher that prefers hosts with more free RAM; with a negative multiplier, with less."""

    multiplier_key = "ram_weight_multiplier"

    def _free(self, hosts: Sequence[object]) -> list[float]:
        return [free or 0 for free in read_all(hosts, "free_ram_mb")]
