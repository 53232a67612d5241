"""The base class of weighers for free amounts of vCPUs, RAM and disk."""

import abc
from collections.abc import Iterable, Sequence
from typing import ClassVar

from oslo_config import cfg

from steelyard import conf as options
from steelyard.weighers import base


class FreeAmountWeigher(base.Weigher):
    """A weigher that prefers hosts with more left of a resource.

    With a negative multiplier, it prefers hosts with less.
    """

    host_local = True
    minval: ClassVar[float] = 0.0
    multiplier_key: ClassVar[str]
    in_nova = False  # Nova has its own

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        super().__init__(conf)
        self._multiplier = options.Latest(options.register(conf), self.multiplier_key)

    def by_kind(self, request: object) -> bool:
        return True

    def weigh_objects(
        self, weighed_hosts: Sequence[base.WeighedHostLike], request: object
    ) -> list[float]:
        hosts = [each.obj for each in weighed_hosts]
        self.keep_multipliers(hosts)
        return [float(max(free, self.minval)) for free in self._free(hosts)]

    def _weigh_object(self, host: object, request: object) -> float:
        return float(next(iter(self._free([host]))))

    @abc.abstractmethod
    def _free(self, hosts: Sequence[object]) -> Iterable[float]:
        """Return the free amount of each host."""

    def multiplier(self) -> float:
        return float(self._multiplier())
