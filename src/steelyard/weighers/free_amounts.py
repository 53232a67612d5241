"""The base class of weighers for free amounts of vCPUs, RAM and disk."""

from typing import ClassVar

from oslo_config import cfg

from steelyard import conf as options
from steelyard.weighers import base


class FreeAmountWeigher(base.Weigher):
    """A weigher that prefers hosts with more left of a resource.

    With a negative multiplier, it prefers hosts with less.
    """

    host_local = True
    minval = 0.0
    multiplier_key: ClassVar[str]
    in_nova = False  # Nova has its own

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        super().__init__(conf)
        self._multiplier = options.Latest(options.register(conf), self.multiplier_key)

    def by_kind(self, request: object) -> bool:
        return True

    def multiplier(self) -> float:
        return float(self._multiplier())
