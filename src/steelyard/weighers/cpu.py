"""A weigher for free vCPUs."""

from collections.abc import Sequence

from oslo_config import cfg

from steelyard import conf as options
from steelyard.attributes import read_all
from steelyard.weighers.free_amounts import FreeAmountWeigher


class CPUWeigher(FreeAmountWeigher):
    """A weigher that prefers hosts with more free vCPUs; with a negative multiplier, with less.

    As in Nova, the free vCPUs are the total times the allocation ratio, minus the reserved and the
    used ones. The free RAM and the free disk are without an allocation ratio.
    """

    multiplier_key = "cpu_weight_multiplier"

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        super().__init__(conf)
        # The option applies to hosts without an allocation ratio of their own.
        self._usual_ratio = options.register(conf).cpu_allocation_ratio

    def _free(self, hosts: Sequence[object]) -> list[float]:
        names = ("vcpus_total", "cpu_allocation_ratio", "vcpus_reserved", "vcpus_used")
        rows = zip(*(read_all(hosts, name) for name in names), strict=True)
        # Nova's hosts count the reserved vCPUs as used.
        return [
            (total or 0) * (self._usual_ratio if ratio is None else ratio)
            - (reserved or 0)
            - (used or 0)
            for total, ratio, reserved, used in rows
        ]
