"""A filter and a weigher that count servers."""

from oslo_config import cfg

from steelyard.attributes import read
from steelyard.filters.base import Filter
from steelyard.verdict import PASSED, Verdict
from steelyard.weighers.base import Weigher

_OPTS = [
    cfg.IntOpt("most_servers", default=2, min=1, help="How many servers a host may have."),
]


class ServerCountFilter(Filter):
    """Keeps hosts that have fewer servers than the option says."""

    def __init__(self, conf=None):
        super().__init__(conf)
        conf = cfg.CONF if conf is None else conf
        conf.register_opts(_OPTS, group="acme")
        self._most = conf.acme.most_servers

    def examine(self, host, request):
        count = len(read(host, "instances") or ())
        if count < self._most:
            return PASSED
        return Verdict.rejected(f"has {count} of at most {self._most} servers")


class FewestServersWeigher(Weigher):
    """Prefers hosts with fewer servers."""

    maxval = 0.0
    multiplier_key = "fewest_servers_weight_multiplier"

    def _weigh_object(self, host, request):
        return -len(read(host, "instances") or ())
