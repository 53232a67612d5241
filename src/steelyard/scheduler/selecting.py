"""A request to Placement, answered from a described cloud: each host is one provider."""

from collections.abc import Iterator

from oslo_config import cfg

from steelyard.filters.capacity import Capacity
from steelyard.scheduler.host_state import HostState
from steelyard.traits import CandidatesRequest, ProvidersRequest, RequestGroup


class DescribedProviders:
    """Says of hosts whether a request selects them, and if not why.

    As Nova's drivers report it, one group of a request can have at most what a host has in all,
    and all groups together what is left of it after overcommitment.
    """

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        self._capacity = Capacity(conf)

    def why_not(
        self, request: ProvidersRequest | CandidatesRequest, state: HostState
    ) -> Iterator[str]:
        """Each thing that keeps the host from being selected."""
        groups = _groups(request)
        for suffix, group in groups.items():
            of = f"group {suffix}: " if suffix else ""
            for what in group.traits.unmet(state.traits):
                yield of + what
            if group.member_of or group.not_member_of:
                yield f"{of}a described host has no aggregates of Placement's"
            if not _has_uuid(state, group.in_tree):
                yield f"{of}in_tree is {group.in_tree!r}, {_uuid_of(state)}"
        yield from self._shortages(groups, state)
        yield from _of_the_whole(request, state)

    def _shortages(self, groups: dict[str, RequestGroup], state: HostState) -> Iterator[str]:
        wanted: dict[str, list[int]] = {}
        for group in groups.values():
            for name, amount in group.resources.items():
                wanted.setdefault(name, []).append(amount)
        supplies = dict(self._capacity.of(state))
        for name, amounts in sorted(wanted.items()):
            supply = supplies.get(name)
            if supply is None:
                yield f"{name}: a described host has none"
            elif sum(amounts) > supply.left:
                yield f"{name}: {sum(amounts)} wanted, {max(supply.left, 0):.10g} left"
            elif max(amounts) > supply.total:
                yield f"{name}: {max(amounts)} wanted at once, the host has {supply.total:.10g}"


def _groups(request: ProvidersRequest | CandidatesRequest) -> dict[str, RequestGroup]:
    if isinstance(request, ProvidersRequest):
        return {"": request.group}
    return dict(request.groups)


def _of_the_whole(request: ProvidersRequest | CandidatesRequest, state: HostState) -> Iterator[str]:
    if isinstance(request, ProvidersRequest):
        if request.name not in (None, state.host):
            yield f"its name is not {request.name!r}"
        if not _has_uuid(state, request.uuid):
            yield f"uuid is {request.uuid!r}, {_uuid_of(state)}"
        return
    yield from (f"root: {what}" for what in request.root_required.unmet(state.traits))
    apart = [suffix for suffix in request.groups if suffix]
    if request.group_policy == "isolate" and len(apart) > 1:
        yield f"groups {', '.join(apart)}: a described host is one provider, and they are to differ"


def _has_uuid(state: HostState, wanted: str | None) -> bool:
    return wanted is None or wanted.lower() == state.uuid.lower()


def _uuid_of(state: HostState) -> str:
    return f"the host has the UUID {state.uuid!r}" if state.uuid else "the host has no UUID"
