"""A request to Placement, answered from a described cloud: each host is one provider."""

from collections.abc import Iterator

from oslo_config import cfg

from steelyard import conf as options
from steelyard.scheduler.host_state import HostState
from steelyard.traits import CandidatesRequest, ProvidersRequest, RequestGroup


class DescribedProviders:
    """Says of hosts whether a request selects them, and if not why."""

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        group = options.register(conf)
        self._ratios = {
            "VCPU": group.cpu_allocation_ratio,
            "MEMORY_MB": group.ram_allocation_ratio,
            "DISK_GB": group.disk_allocation_ratio,
        }

    def why_not(
        self, request: ProvidersRequest | CandidatesRequest, state: HostState
    ) -> Iterator[str]:
        """Each thing that keeps the host from being selected."""
        groups = _groups(request)
        for suffix, group in groups.items():
            of = f"group {suffix}: " if suffix else ""
            for what in group.traits.unmet(state.traits):
                yield of + what
            if group.member_of or group.not_member_of or group.in_tree:
                yield f"{of}a described host has no aggregates of Placement's, and no tree"
        yield from self._shortages(groups, state)
        if isinstance(request, CandidatesRequest):
            yield from _of_the_whole(request, state)

    def _shortages(self, groups: dict[str, RequestGroup], state: HostState) -> Iterator[str]:
        wanted: dict[str, int] = {}
        for group in groups.values():
            for name, amount in group.resources.items():
                wanted[name] = wanted.get(name, 0) + amount
        left = self._left(state)
        for name, amount in sorted(wanted.items()):
            if name not in left:
                yield f"{name}: a described host has none"
            elif amount > left[name]:
                yield f"{name}: {amount} wanted, {max(left[name], 0):.10g} left"

    def _left(self, state: HostState) -> dict[str, float]:
        return {
            "VCPU": state.vcpus_total * self._ratios["VCPU"] - state.vcpus_used,
            "MEMORY_MB": state.ram_mb_total * self._ratios["MEMORY_MB"] - state.ram_mb_used,
            "DISK_GB": state.disk_gb_total * self._ratios["DISK_GB"] - state.disk_gb_used,
        }


def _groups(request: ProvidersRequest | CandidatesRequest) -> dict[str, RequestGroup]:
    if isinstance(request, ProvidersRequest):
        return {"": request.group}
    return dict(request.groups)


def _of_the_whole(request: CandidatesRequest, state: HostState) -> Iterator[str]:
    yield from (f"root: {what}" for what in request.root_required.unmet(state.traits))
    apart = [suffix for suffix in request.groups if suffix]
    if request.group_policy == "isolate" and len(apart) > 1:
        yield f"groups {', '.join(apart)}: a described host is one provider, and they are to differ"
