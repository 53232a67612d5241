"""The demands of a request to Placement: the parts that a repair keeps or drops one by one."""

import dataclasses
import enum
from collections.abc import Collection, Iterable, Mapping, Sequence

from steelyard import errors
from steelyard.cloud.wanted import Source
from steelyard.traits import CandidatesRequest, RequestGroup, TraitQuery

_NO_GROUP = RequestGroup()
_NO_TRAITS = TraitQuery()
_FIRST_CLASSES = ("MEMORY_MB", "VCPU", "PCPU", "DISK_GB")


class DemandKind(enum.StrEnum):
    """The kinds of demands."""

    RESOURCE = "resource"
    TRAIT = "trait"
    MEMBER_OF = "member_of"
    IN_TREE = "in_tree"
    GROUP_POLICY = "group_policy"


class GroupPolicy(enum.Enum):
    """The group policies that are stricter than ``none``."""

    ISOLATE = enum.auto()
    """Each group with a suffix needs a provider of its own."""
    MISSING = enum.auto()
    """No policy is sent.

    Placement then counts amounts twice if a group with a suffix and the one without request the
    same resource class.
    """


@dataclasses.dataclass(frozen=True, slots=True)
class DemandPart:
    """The part of a request that expresses one demand."""

    suffix: str = ""
    """The suffix of the group that the part belongs to."""
    group: RequestGroup = _NO_GROUP
    """The conditions on that group."""
    root: TraitQuery = _NO_TRAITS
    """The conditions on the traits of the root provider."""
    policy: "GroupPolicy | None" = None
    """The policy for groups with a suffix; without one, their providers may overlap."""


NOTHING = DemandPart()
"""The part of a demand that a request does not have."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class PlacementDemand:
    """One demand, with its origin."""

    kind: DemandKind
    part: DemandPart
    text: str
    """The demand for people, such as ``trait CUSTOM_X required``."""
    origin: str
    """The place that states it, such as ``flavor 'm1.large', extra spec 'trait:CUSTOM_X'``."""
    source: Source
    fallback: DemandPart | None = None
    """The part in Nova's second request, with VCPU instead of PCPU; None if it is the same."""
    fault: str = ""
    """The reason why Placement refuses every request with this demand; usually empty."""

    @property
    def rank(self) -> tuple[object, ...]:
        """The place of the demand in the order of preference.

        A repair rather keeps the demands that come first. Resources come before the other parts of
        their group, because Placement answers no request without resources. Demands that Nova may
        not send come last, so that they never hide another cause.
        """
        part, group = self.part, self.part.group
        if self.source is Source.ASSUMED:
            stage = 7
        elif self.kind is DemandKind.IN_TREE:
            stage = 0
        elif self.kind is DemandKind.GROUP_POLICY:
            stage = 6
        elif part.suffix:
            stage = 5
        elif self.kind is DemandKind.RESOURCE:
            stage = 1
        elif part.root:
            stage = 2
        elif self.kind is DemandKind.MEMBER_OF:
            stage = 3
        else:
            stage = 4
        names = sorted(group.resources)
        first = [_FIRST_CLASSES.index(name) for name in names if name in _FIRST_CLASSES]
        return (
            stage,
            part.suffix,
            self.kind is not DemandKind.RESOURCE,
            first or [len(_FIRST_CLASSES)],
            names,
            self.kind is not DemandKind.MEMBER_OF,
            bool(group.traits.forbidden),
            self.text,
        )


def requests_of(
    demands: Iterable[PlacementDemand], limit: int | None = None
) -> tuple[CandidatesRequest, ...]:
    """Return the requests that Nova sends for the demands.

    There are two if a demand has a fallback, and none if no demand requests a resource. A group
    without resources is left out with all its demands. Raises InvalidQuery if demands contradict
    each other.
    """
    demands = list(demands)
    variants = [[demand.part for demand in demands]]
    if any(demand.fallback is not None for demand in demands):
        variants.append(
            [demand.part if demand.fallback is None else demand.fallback for demand in demands]
        )
    found = (_request(parts, limit) for parts in variants)
    return tuple(dict.fromkeys(request for request in found if request is not None))


def without_resources(
    demands: Iterable[PlacementDemand], kept: Iterable[PlacementDemand]
) -> list[PlacementDemand]:
    """Return the demands on groups for which no kept demand requests a resource.

    Demands for resources are left out.
    """
    suffixes = {demand.part.suffix for demand in kept if demand.part.group.resources}
    return [
        demand
        for demand in demands
        if demand.part.group != _NO_GROUP
        and not demand.part.group.resources
        and demand.part.suffix not in suffixes
    ]


def _request(parts: Sequence[DemandPart], limit: int | None) -> CandidatesRequest | None:
    found: dict[str, RequestGroup] = {}
    root = _NO_TRAITS
    for part in parts:
        root &= part.root
        if part.group != _NO_GROUP:
            found[part.suffix] = _both(found.get(part.suffix, _NO_GROUP), part.group)
    groups = {suffix: group for suffix, group in found.items() if group.resources}
    if not groups:
        return None
    return CandidatesRequest(
        groups,
        _policy(groups, {part.policy for part in parts}),
        limit,
        root,
    )


def _policy(
    groups: Mapping[str, RequestGroup], policies: Collection[GroupPolicy | None]
) -> str | None:
    apart = [group for suffix, group in groups.items() if suffix]
    plain = groups.get("", _NO_GROUP).resources.keys()
    overlap = any(plain & group.resources.keys() for group in apart)
    if len(apart) < 2 and not overlap:
        return None  # no policy has an effect
    if GroupPolicy.ISOLATE in policies:
        return "isolate"
    return None if GroupPolicy.MISSING in policies and len(apart) < 2 else "none"


def _both(one: RequestGroup, other: RequestGroup) -> RequestGroup:
    """Return the group that meets the conditions of both groups."""
    if one.in_tree and other.in_tree and one.in_tree != other.in_tree:
        raise errors.InvalidQuery(
            f"in_tree: one provider cannot be in the trees of both {one.in_tree!r} and "
            f"{other.in_tree!r}",
            other.in_tree,
        )
    return RequestGroup(
        {**one.resources, **other.resources},
        one.traits & other.traits,
        one.member_of | other.member_of,
        one.not_member_of | other.not_member_of,
        one.in_tree or other.in_tree,
    )
