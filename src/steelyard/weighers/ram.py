"""A weigher for free RAM."""

from oslo_config import cfg

from steelyard import conf as options
from steelyard.attributes import read
from steelyard.weighers import base


class RAMWeigher(base.Weigher):
    """A weigher that prefers hosts with more free RAM; with a negative multiplier, with less."""

    host_local = True
    minval = 0.0
    multiplier_key = "ram_weight_multiplier"
    in_nova = False  # Nova has its own

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        super().__init__(conf)
        self._multiplier = options.Latest(options.register(conf), "ram_weight_multiplier")

    def by_kind(self, request: object) -> bool:
        return True

    def multiplier(self) -> float:
        return float(self._multiplier())

    def _weigh_object(self, host: object, request: object) -> float:
        return float(read(host, "free_ram_mb") or 0)
