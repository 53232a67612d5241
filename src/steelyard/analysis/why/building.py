"""The request that Nova sends to Placement for a wanted server, as demands with their origins."""

import dataclasses
from collections.abc import Iterator

from steelyard import errors
from steelyard.analysis.nova_conf import uses_novas_soft_weigher
from steelyard.analysis.why.demands import (
    NOTHING,
    DemandKind,
    DemandPart,
    GroupPolicy,
    PlacementDemand,
    requests_of,
)
from steelyard.analysis.why.facts import Facts
from steelyard.analysis.why.rebuilding.cpus import cpus
from steelyard.analysis.why.rebuilding.flavor_and_image import GROUP_POLICY, FlavorAndImage
from steelyard.analysis.why.rebuilding.releases import NovaInUse, Release
from steelyard.analysis.why.rebuilding.request_filters import (
    InAggregates,
    RequestFilters,
    RootTrait,
)
from steelyard.analysis.why.rebuilding.stated import Origin, RequestFails, Stated
from steelyard.analysis.why.switches import Switches
from steelyard.cloud.wanted import Source
from steelyard.groups import ServerGroup, needed_filter, needed_weigher
from steelyard.resources import described
from steelyard.traits import CandidatesRequest, RequestGroup, TraitQuery

# With one of these hints, Nova requests all candidates.
_HINTS_WITHOUT_LIMIT = ("group", "same_host", "different_host")


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Built:
    """The request, with everything that is assumed, ignored or not known about it."""

    demands: tuple[PlacementDemand, ...] = ()
    limit: int | None = None
    requests: tuple[CandidatesRequest, ...] = ()
    """The requests that Nova sends; none if Placement refuses them, or if Nova sends none."""
    failure: str = ""
    """The reason why Nova ends the request before it asks Placement; usually empty."""
    assumptions: tuple[str, ...] = ()
    not_known: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()
    """The extra specs and image properties without effect, with the reasons."""


def built(facts: Facts, switches: Switches, observed: Source = Source.NOW) -> Built:
    """Return the request that Nova sends for the wanted server.

    ``observed`` is how hosts and aggregates are read.
    """
    nova = NovaInUse(Release.of(facts.nova_microversion), switches, observed)
    if switches.assumed:
        nova.assumptions["Nova's options that decide the request have their default values"] = None
    builder = _Builder(facts, nova)
    demands: tuple[PlacementDemand, ...] = ()
    requests: tuple[CandidatesRequest, ...] = ()
    failure, limit = "", None
    try:
        demands = tuple(builder.demands())
        limit = builder.limit()
    except RequestFails as error:
        failure, demands = str(error), ()
    if not any(demand.fault for demand in demands):
        try:
            requests = requests_of(demands, limit)
        except errors.InvalidQuery:
            requests = ()  # demands contradict each other, so Placement refuses the request
    return Built(
        demands=demands,
        limit=limit,
        requests=requests,
        failure=failure,
        assumptions=tuple(nova.assumptions),
        not_known=tuple(nova.not_known),
        ignored=tuple(nova.ignored),
    )


class _Builder:
    def __init__(self, facts: Facts, nova: NovaInUse) -> None:
        self._facts = facts
        self._nova = nova
        self._stated = Stated(facts.wanted)
        self._has_one_node = True

    def limit(self) -> int | None:
        wanted = self._facts.wanted
        if wanted.group is not None or not self._has_one_node:
            return None
        if any(hint in wanted.scheduler_hints for hint in _HINTS_WITHOUT_LIMIT):
            return None
        return self._nova.switches.max_placement_results

    def demands(self) -> Iterator[PlacementDemand]:
        """Yield the demands; raise RequestFails if Nova ends the request."""
        self._check_group()
        policies = cpus(self._stated)
        first = FlavorAndImage(self._stated, policies, self._nova)
        second = None
        if policies.falls_back and not self._nova.switches.disable_fallback_pcpu_query:
            second = FlavorAndImage(self._stated, None, self._nova)
        additions = RequestFilters(
            self._stated, self._facts.aggregates, first.required_traits, self._nova
        ).additions()
        found = [
            *self._host(),
            *_resources(first, second),
            *_traits(first, second),
            *map(_addition, additions),
            *_group_policy(first, self._stated),
        ]
        requested = {demand.part.suffix for demand in found if demand.kind is DemandKind.RESOURCE}
        if not requested:
            text, origin = "the flavor requests no resources", self._stated.flavor_itself()
            demand = _demand(DemandKind.RESOURCE, NOTHING, text, origin)
            yield dataclasses.replace(demand, fault="a request must request a resource")
        for demand in found:
            needs_resources = demand.part.group != RequestGroup()
            if needs_resources and demand.part.suffix not in requested:
                yield _without_resources(demand)
            else:
                yield demand

    def _check_group(self) -> None:
        """Raise RequestFails if Nova has no plugin for the policy of the group."""
        group, switches = self._facts.wanted.group, self._nova.switches
        if group is None:
            return
        enabled, weighed = switches.enabled_filters, switches.weight_classes
        name = needed_filter(group.policy)
        if name is not None and name not in enabled:
            raise _without_plugin(group, f"filter {name!r}", "enabled_filters", name)
        name = needed_weigher(group.policy)
        if name is not None and not uses_novas_soft_weigher(weighed, name):
            raise _without_plugin(group, f"weigher {name!r} of Nova", "weight_classes", name)

    def _host(self) -> Iterator[PlacementDemand]:
        wanted, hosts = self._facts.wanted, self._facts.hosts
        if not wanted.host:
            return
        if hosts is None:
            self._nova.assumptions[
                f"the requested host {wanted.host!r} is left out, because hosts cannot be read"
            ] = None
            return
        uuids = [host.uuid for host in hosts if host.is_named(wanted.host)]
        if not uuids:
            raise RequestFails(f"no host {wanted.host!r} in Nova (Nova: No such host)")
        self._has_one_node = len(uuids) == 1
        if self._has_one_node:
            yield PlacementDemand(
                kind=DemandKind.IN_TREE,
                part=DemandPart(group=RequestGroup(in_tree=uuids[0])),
                text=f"host {wanted.host!r}",
                origin=f"requested host {wanted.host!r}",
                source=self._stated.source("host"),
            )


def _without_plugin(group: ServerGroup, plugin: str, option: str, name: str) -> RequestFails:
    return RequestFails(
        f"policy '{group.policy}' of server group {group.name!r} is not supported: the {plugin} is "
        f"not in [filter_scheduler] {option} (Nova: {name} not configured)"
    )


def _resources(first: FlavorAndImage, second: FlavorAndImage | None) -> Iterator[PlacementDemand]:
    # The second request has VCPU where the first one has PCPU.
    only_second = (
        {}
        if second is None
        else {key: found for key, found in second.amounts.items() if key not in first.amounts}
    )
    for key, (amount, origin) in first.amounts.items():
        part, fault = _amount(*key, amount)
        fallback = None
        if second is not None and not fault:
            if key in second.amounts:
                other = _amount(*key, second.amounts[key][0])[0]
                fallback = None if other == part else other
            else:
                instead = (_amount(*each, number)[0] for each, (number, _) in only_second.items())
                fallback = next(instead, NOTHING)
        text = described(key[1], amount) + _in_group(key[0])
        demand = _demand(DemandKind.RESOURCE, part, text, origin)
        yield dataclasses.replace(demand, fallback=fallback, fault=fault)


def _traits(first: FlavorAndImage, second: FlavorAndImage | None) -> Iterator[PlacementDemand]:
    for (suffix, trait, required), origin in first.traits.items():
        query, fault = _query(trait, required=required)
        is_in_second = second is None or (suffix, trait, required) in second.traits
        text = f"trait {trait} {'required' if required else 'forbidden'}{_in_group(suffix)}"
        part = DemandPart(suffix, RequestGroup(traits=query))
        demand = _demand(DemandKind.TRAIT, part, text, origin)
        yield dataclasses.replace(demand, fallback=None if is_in_second else NOTHING, fault=fault)


def _addition(addition: RootTrait | InAggregates) -> PlacementDemand:
    if isinstance(addition, RootTrait):
        query, fault = _query(addition.trait, required=addition.required)
        state = "required" if addition.required else "forbidden"
        assumed = " (assumed)" if addition.origin.source is Source.ASSUMED else ""
        text = f"trait {addition.trait} {state}{assumed}"
        demand = _demand(DemandKind.TRAIT, DemandPart(root=query), text, addition.origin)
        return dataclasses.replace(demand, fault=fault)
    group = (
        RequestGroup(member_of=frozenset([addition.uuids]))
        if addition.wanted
        else RequestGroup(not_member_of=addition.uuids)
    )
    return _demand(DemandKind.MEMBER_OF, DemandPart(group=group), addition.text, addition.origin)


def _group_policy(first: FlavorAndImage, stated: Stated) -> Iterator[PlacementDemand]:
    several = len(first.suffixes) > 1
    if first.policy == "none" or not (several or first.overlapping):
        return
    groups = "the group" + "s" * several + f" {', '.join(map(repr, sorted(first.suffixes)))}"
    kind = DemandKind.GROUP_POLICY
    if first.policy is not None:
        text = f"a provider of its own for each of {groups}" if several else "group_policy=isolate"
        origin = stated.spec(GROUP_POLICY)
        yield _demand(kind, DemandPart(policy=GroupPolicy.ISOLATE), text, origin)
        return
    part = DemandPart(policy=GroupPolicy.MISSING)
    demand = _demand(kind, part, f"no group_policy for {groups}", stated.flavor_itself())
    fault = "missing extra spec 'group_policy'; expected 'none' or 'isolate'"
    yield dataclasses.replace(demand, fault=fault if several else "")


def _without_resources(demand: PlacementDemand) -> PlacementDemand:
    suffix = demand.part.suffix
    group = f"the group {suffix!r}" if suffix else "the group without a suffix"
    fault = f"missing 'resources{suffix}:…'; {group} must request a resource"
    return dataclasses.replace(
        demand, part=DemandPart(suffix), fallback=None, fault=demand.fault or fault
    )


def _amount(suffix: str, name: str, amount: int) -> tuple[DemandPart, str]:
    """Return the part for the amount, or the reason why Placement refuses it."""
    try:
        return DemandPart(suffix, RequestGroup({name: amount})), ""
    except errors.InvalidQuery as error:
        return DemandPart(suffix), error.message


def _query(trait: str, *, required: bool) -> tuple[TraitQuery, str]:
    """Return the query for the trait, or the reason why Placement refuses it."""
    one, none = frozenset([trait]), frozenset[str]()
    try:
        return (TraitQuery(one) if required else TraitQuery(none, one)), ""
    except errors.InvalidTrait as error:
        return TraitQuery(), error.message


def _demand(kind: DemandKind, part: DemandPart, text: str, origin: Origin) -> PlacementDemand:
    return PlacementDemand(
        kind=kind, part=part, text=text, origin=origin.text, source=origin.source
    )


def _in_group(suffix: str) -> str:
    return f" in group {suffix!r}" if suffix else ""
