"""A filter that limits how many servers a host has."""

from oslo_config import cfg

from steelyard.attributes import read
from steelyard.filters.base import Filter
from steelyard.verdict import Verdict

OPTS = [cfg.IntOpt("most_servers", default=2, min=1, help="How many servers a host may have.")]


class ServerCountFilter(Filter):
    """A filter that keeps hosts with fewer servers than the option says."""

    def __init__(self, conf=None):
        super().__init__(conf)
        conf = cfg.CONF if conf is None else conf
        conf.register_opts(OPTS, group="acme")
        self._most = conf.acme.most_servers

    def judge(self, request):
        def rejections(host):
            count = len(read(host, "instances") or ())
            if count >= self._most:
                yield Verdict.rejected(f"has {count} of at most {self._most} servers")

        return rejections
