"""A filter for hosts with enough free capacity."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from oslo_config import cfg

from steelyard import conf as options
from steelyard.attributes import read, read_mapping
from steelyard.filters import base
from steelyard.resources import HOST_CLASSES, Quantity, flavor_amounts, kind, on_host, quantity
from steelyard.verdict import Verdict


class Supply(NamedTuple):
    """The amounts of one resource class on a host."""

    total: float
    limit: float
    """The amount that servers may use: the total minus the reserved part, after overcommitment."""
    left: float
    """The limit minus the used part; it may be negative."""


_NONE = Supply(0, 0, 0)


class Shortage(NamedTuple):
    """A resource class of which a host has less left than a flavor wants."""

    resource_class: str
    wanted: int
    supply: Supply


class FreeCapacity:
    """The free capacity of hosts by resource class, after overcommitment."""

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        group = options.register(conf)
        # The options apply to hosts without an allocation ratio of their own.
        self._resources = [
            (name, each, getattr(group, each.allocation_ratio))
            for name, each in HOST_CLASSES.items()
        ]

    def of(self, host: object) -> Iterator[tuple[str, Supply]]:
        """Yield each resource class of the host with its amounts.

        Only vCPUs, RAM and disk are overcommitted.
        """
        for resource_class, (field, _, own_ratio), usual_ratio in self._resources:
            total = read(host, f"{field}_total") or 0
            ratio = read(host, own_ratio)
            free = total - (read(host, f"{field}_reserved") or 0)
            limit = max(free, 0) * (usual_ratio if ratio is None else ratio)
            yield resource_class, Supply(total, limit, limit - (read(host, f"{field}_used") or 0))
        used = read_mapping(host, "resources_used")
        for resource_class, limit in read_mapping(host, "resources").items():
            yield resource_class, Supply(limit, limit, limit - used.get(resource_class, 0))

    def shortages(self, host: object, wanted: Mapping[str, int]) -> Iterator[Shortage]:
        """Yield each resource class of which the host has less left than wanted."""
        supplies = dict(self.of(host))
        for resource_class, amount in on_host(wanted, supplies).items():
            supply = supplies.get(resource_class, _NONE)
            if amount > max(supply.left, 0):
                yield Shortage(resource_class, amount, supply)


class CapacityFilter(base.Filter):
    """A filter for hosts with enough left of each resource class that the flavor uses."""

    host_local = True
    in_nova = False  # in Nova, Placement does this

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        super().__init__(conf)
        self._capacity = FreeCapacity(conf)

    def by_kind(self, request: object) -> bool:
        return True

    def judge(self, request: object) -> base.Rejections:
        wanted = flavor_amounts(read(request, "flavor"))

        def rejections(host: object) -> Iterator[Verdict]:
            for name, amount, supply in self._capacity.shortages(host, wanted):
                # Rounded up here and down in left_of, so that the two amounts never read the same.
                wants = quantity(name, amount, math.ceil)
                yield Verdict.rejected(
                    f"{kind(name)}: flavor wants {wants}, the host has {left_of(name, supply)}",
                    f"not enough {kind(name)}: flavor wants {wants}",
                )

        return rejections

    def passing(self, hosts: Sequence[object], request: object) -> list[bool]:
        """Return whether each host passes, without the text of a reason."""
        wanted = flavor_amounts(read(request, "flavor"))
        return [not any(self._capacity.shortages(host, wanted)) for host in hosts]


def left_of(resource_class: str, supply: Supply) -> str:
    """Return the free amount and the limit as text, such as ``1 of 4 GiB left``."""
    limit = quantity(resource_class, supply.limit)
    left = Quantity("0", "")
    if supply.left > 0:
        left = quantity(resource_class, supply.left, math.floor)
    return f"{left.number if left.unit == limit.unit else left} of {limit} left"
