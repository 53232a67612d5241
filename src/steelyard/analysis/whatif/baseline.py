"""A cloud before changes."""

import functools
from collections.abc import Mapping

from oslo_config import cfg

from steelyard.analysis.capacity import HostRooms
from steelyard.analysis.checks import check
from steelyard.analysis.progress import Watching, unwatched
from steelyard.cloud import Cloud
from steelyard.cloud.host_state import HostState, host_states
from steelyard.findings import Finding
from steelyard.scheduler import FilterScheduler


class Baseline:
    """A cloud before changes, with the answers that all of its changes need."""

    def __init__(self, cloud: Cloud, conf: cfg.ConfigOpts | None = None) -> None:
        self.cloud = cloud
        self.conf = conf
        self._findings: list[Finding] | None = None

    def findings(self, watch: Watching = unwatched) -> list[Finding]:
        """Return the findings of the checks, which are run once."""
        if self._findings is None:
            self._findings = check(self.cloud, self.conf, watch)
        return self._findings

    @functools.cached_property
    def hosts(self) -> Mapping[str, HostState]:
        """The states of the hosts, by name."""
        return {state.host: state for state in host_states(self.cloud)}

    @functools.cached_property
    def rooms(self) -> HostRooms:
        """The room of the hosts."""
        return HostRooms(FilterScheduler(self.cloud, self.conf), self.hosts.values())
