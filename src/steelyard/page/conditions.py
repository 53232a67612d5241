"""The condition of each host for the chosen flavor: why it is coloured as it is on the map."""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from steelyard.analysis.kinds import HostKinds
from steelyard.cloud.host_state import HostState
from steelyard.filters.base import Filter
from steelyard.filters.in_service import InServiceFilter
from steelyard.page.matrix import Judged
from steelyard.page.view import HostCondition
from steelyard.resources import FIELDS
from steelyard.scheduler import Decision

_NOTHING_USED: dict[str, Any] = {f"{field}_used": 0 for field in FIELDS.values()}


def conditions(
    hosts: Sequence[Judged], decision: Decision, filters: Mapping[str, Filter]
) -> list[HostCondition]:
    """Return the condition of each host.

    A rejected host is full if every filter that objects to it accepts it with no capacity in use.
    Its servers stay on it, so a host that is rejected for the servers of a group is not full.
    """
    objecting = [_rejecting(host, decision.on_trial) for host in hosts]
    out = {name for name, each in filters.items() if isinstance(each, InServiceFilter)}
    found = [
        HostCondition.CHOSEN
        if host.chosen
        else HostCondition.FITS
        if host.fits
        else HostCondition.OUT_OF_SERVICE
        if not out.isdisjoint(names)
        else HostCondition.REJECTED
        for host, names in zip(hosts, objecting, strict=True)
    ]
    rejected = [index for index, each in enumerate(found) if each is HostCondition.REJECTED]
    by_names: dict[tuple[str, ...], list[int]] = {}
    for index in rejected:
        by_names.setdefault(objecting[index], []).append(index)
    for names, indices in by_names.items():
        asked = {name: filters[name] for name in names}
        unused = [_unused(hosts[index].state) for index in indices]
        for index, passes in zip(indices, _passing(unused, decision, asked), strict=True):
            if passes:
                found[index] = HostCondition.FULL
    return found


def _rejecting(host: Judged, on_trial: frozenset[str]) -> tuple[str, ...]:
    """Return the filters that reject the host."""
    return tuple(
        name for name in host.objections if name == host.rejected_by or name not in on_trial
    )


def _passing(
    states: Sequence[HostState], decision: Decision, filters: Mapping[str, Filter]
) -> Iterator[bool]:
    """Yield whether all filters accept each host."""
    kinds = HostKinds(states)
    answers = [
        kinds.passing(name, filter_, states, decision.request) for name, filter_ in filters.items()
    ]
    return map(all, zip(*answers, strict=True))


def _unused(state: HostState) -> HostState:
    """Return the state of the host with none of its capacity in use."""
    unused = dict.fromkeys(state.resources, 0)
    return dataclasses.replace(state, resources_used=unused, **_NOTHING_USED)
