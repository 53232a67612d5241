"""A filter for hosts with enough free capacity."""

import functools
import itertools
import math
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from oslo_config import cfg

from steelyard import conf as options
from steelyard.attributes import read, read_all, read_mapping
from steelyard.filters import base
from steelyard.resources import HOST_CLASSES, Quantity, flavor_amounts, kind, on_host, quantity
from steelyard.verdict import PASSED, Verdict


class Supply(NamedTuple):
    """The amounts of one resource class on a host."""

    total: float
    limit: float
    """The amount that servers may use: the total minus the reserved part, after overcommitment."""
    left: float
    """The limit minus the used part; it may be negative."""


_NONE = Supply(0, 0, 0)

ResourceDemand = tuple[str, int, float, float]
"""A resource class, the amount that a flavor wants, and the limit and amount left on a host."""

# The number of texts that are kept; many hosts and flavors have the same amounts.
_KEPT = 65536


class Shortage(NamedTuple):
    """A resource class of which a host has less left than a flavor wants."""

    resource_class: str
    wanted: int
    supply: Supply


class _Column(NamedTuple):
    """The amounts of one resource class on many hosts: a ``Supply`` in three columns."""

    totals: Iterable[float]
    limits: Iterable[float]
    left: Iterable[float]


class _Kept(NamedTuple):
    """The amounts of hosts that do not change."""

    positions: Mapping[object, int]
    """The position of each host in the columns."""
    columns: Mapping[str, tuple[Sequence[float], ...]]


class FreeCapacity:
    """The free capacity of hosts by resource class, after overcommitment."""

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        group = options.register(conf)
        # The options apply to hosts without an allocation ratio of their own.
        self._resources = [
            (name, each, getattr(group, each.allocation_ratio))
            for name, each in HOST_CLASSES.items()
        ]
        # Replaced as a whole, because threads may share it.
        self._kept = _Kept({}, {})

    def keep(self, hosts: Sequence[object]) -> None:
        """Keep the vCPUs, RAM and disk of these hosts only, which must be hashable and not change.

        They are computed once for many questions about the hosts.
        """
        columns = self._computed(hosts)
        self._kept = _Kept(
            dict(zip(hosts, itertools.count(), strict=False)),
            {name: tuple(map(list, column)) for name, column in columns.items()},
        )

    def of(self, host: object) -> Iterator[tuple[str, Supply]]:
        """Yield each resource class of the host with its amounts.

        Only vCPUs, RAM and disk are overcommitted.
        """
        for resource_class, column in self.columns([host]).items():
            yield from zip([resource_class], map(Supply, *column), strict=True)
        used = read_mapping(host, "resources_used")
        for resource_class, limit in read_mapping(host, "resources").items():
            yield resource_class, Supply(limit, limit, limit - used.get(resource_class, 0))

    def columns(self, hosts: Sequence[object]) -> dict[str, _Column]:
        """Return the vCPUs, RAM and disk of each host; each column can be read once."""
        kept = self._kept
        if not kept.positions:
            return self._computed(hosts)
        try:
            positions = list(map(kept.positions.__getitem__, hosts))
        except (KeyError, TypeError):  # a host was not kept, or is not hashable
            return self._computed(hosts)
        return {
            name: _Column(*(map(each.__getitem__, positions) for each in column))
            for name, column in kept.columns.items()
        }

    def _computed(self, hosts: Sequence[object]) -> dict[str, _Column]:
        found = {}
        for resource_class, (field, _, ratio), usual_ratio in self._resources:
            totals = _numbers(hosts, f"{field}_total")
            limits = [
                max(total - reserved, 0) * (usual_ratio if ratio is None else ratio)
                for total, reserved, ratio in zip(
                    totals,
                    _numbers(hosts, f"{field}_reserved"),
                    read_all(hosts, ratio),
                    strict=True,
                )
            ]
            left = list(map(operator.sub, limits, _numbers(hosts, f"{field}_used")))
            found[resource_class] = _Column(totals, limits, left)
        return found

    def shortages(self, host: object, wanted: Mapping[str, int]) -> Iterator[Shortage]:
        """Yield each resource class of which the host has less left than wanted."""
        supplies = dict(self.of(host))
        for resource_class, amount in on_host(wanted, supplies).items():
            supply = supplies.get(resource_class, _NONE)
            if amount > max(supply.left, 0):
                yield Shortage(resource_class, amount, supply)

    def demands(
        self, hosts: Sequence[object], wanted: Mapping[str, int]
    ) -> Iterator[Iterable[ResourceDemand]]:
        """Yield for each host the wanted amounts and those that it has."""
        if not wanted or not wanted.keys() <= HOST_CLASSES.keys():
            return (self._demands(host, wanted) for host in hosts)
        columns = self.columns(hosts)
        rows = (
            zip(itertools.repeat(name), itertools.repeat(amount), *columns[name][1:], strict=False)
            for name, amount in wanted.items()
        )
        return zip(*rows, strict=True)

    def _demands(self, host: object, wanted: Mapping[str, int]) -> Iterator[ResourceDemand]:
        supplies = dict(self.of(host))
        for resource_class, amount in on_host(wanted, supplies).items():
            supply = supplies.get(resource_class, _NONE)
            yield resource_class, amount, supply.limit, supply.left


def _numbers(hosts: Sequence[object], name: str) -> list[float]:
    """Return the attribute of each host, with 0 for a missing one."""
    found = read_all(hosts, name)
    return [number or 0 for number in found] if None in found else found


def keep_amounts(filters: Iterable[base.Filter], hosts: Sequence[object]) -> None:
    """Let the filters keep the amounts of these hosts only; the hosts must not change."""
    for each in filters:
        if isinstance(each, CapacityFilter):
            each.keep_amounts(hosts)


class CapacityFilter(base.Filter):
    """A filter for hosts with enough left of each resource class that the flavor uses."""

    host_local = True
    in_nova = False  # in Nova, Placement does this

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        super().__init__(conf)
        self._capacity = FreeCapacity(conf)

    def by_kind(self, request: object) -> bool:
        return True

    def keep_amounts(self, hosts: Sequence[object]) -> None:
        """Keep the amounts of these hosts only, which must be hashable and not change."""
        self._capacity.keep(hosts)

    def judge(self, request: object) -> base.Rejections:
        wanted = flavor_amounts(read(request, "flavor"))
        return lambda host: map(_rejected, self._capacity.shortages(host, wanted))

    def passing(self, hosts: Sequence[object], request: object) -> list[bool]:
        """Return whether each host passes, without the text of a reason."""
        wanted = flavor_amounts(read(request, "flavor"))
        if not wanted or not wanted.keys() <= HOST_CLASSES.keys():
            return [not any(self._capacity.shortages(host, wanted)) for host in hosts]
        columns = self._capacity.columns(hosts)
        enough = (
            map(operator.ge, columns[name].left, itertools.repeat(amount))
            for name, amount in wanted.items()
        )
        return list(functools.reduce(functools.partial(map, operator.and_), enough))

    def server_limits(
        self, hosts: Sequence[object], request: object, most: int
    ) -> list[base.ServerLimit]:
        """Return how many servers each host has room for, computed from the amounts left."""
        wanted = flavor_amounts(read(request, "flavor"))
        demands = self._capacity.demands(hosts, wanted)
        return list(map(_limit, map(tuple, demands), itertools.repeat(most)))


@functools.lru_cache(maxsize=_KEPT)
def _limit(demands: tuple[ResourceDemand, ...], most: int) -> base.ServerLimit:
    servers, scarce = most + 1, None
    for demand in demands:
        _, amount, _, left = demand
        if left < servers * amount:
            servers, scarce = max(int(left // amount), 0), demand
            if not servers:
                break
    if scarce is None:
        return base.ServerLimit(most, PASSED)
    name, amount, limit, left = scarce
    return base.ServerLimit(servers, _rejection(name, amount, limit, left - servers * amount))


def _rejected(shortage: Shortage) -> Verdict:
    name, amount, supply = shortage
    return _rejection(name, amount, supply.limit, supply.left)


@functools.lru_cache(maxsize=_KEPT)
def _rejection(name: str, amount: int, limit: float, left: float) -> Verdict:
    # Rounded up here and down in left_of, so that the two amounts never read the same.
    wants = f"{kind(name)}: flavor wants {quantity(name, amount, math.ceil)}"
    there = left_of(name, limit, left)
    return Verdict.rejected(f"{wants}, the host has {there}", f"not enough {wants}")


@functools.lru_cache(maxsize=_KEPT)
def left_of(resource_class: str, limit: float, left: float) -> str:
    """Return the free amount and the limit as text, such as ``1 of 4 GiB left``."""
    of = quantity(resource_class, limit)
    free = quantity(resource_class, left, math.floor) if left > 0 else Quantity("0", "")
    return f"{free.number if free.unit == of.unit else free} of {of} left"
