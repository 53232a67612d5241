"""A weigher for free vCPUs."""

from oslo_config import cfg

from steelyard import conf as options
from steelyard.attributes import read
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

    def _weigh_object(self, host: object, request: object) -> float:
        ratio = read(host, "cpu_allocation_ratio")
        limit = (read(host, "vcpus_total") or 0) * (self._usual_ratio if ratio is None else ratio)
        reserved = read(host, "vcpus_reserved") or 0  # Nova's hosts count them as used
        return float(limit - reserved - (read(host, "vcpus_used") or 0))
