"""The contract of weighers.

The scheduler gets the raw weights of all hosts from a weigher, scales them to the range from 0 to
1, multiplies each by the weigher's multiplier for that host, and adds up the results of all
weighers. The protocols of hosts and requests are in :mod:`steelyard.filters.base`.
"""

import abc
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import ClassVar, Protocol

from oslo_config import cfg
from oslo_log import log as logging

from steelyard import plugins
from steelyard._once import Once
from steelyard._string_sets import finite_number
from steelyard.attributes import by_identity, read, read_all, read_mapping

__all__ = ["Weigher"]

LOG = logging.getLogger(__name__)


class WeighedHostLike(Protocol):
    """A host with its weight so far."""

    @property
    def obj(self) -> object:
        """The host."""


class _Multipliers(dict[int, float]):
    """The multipliers of one request's hosts, by the ``id`` of the host.

    References to the hosts are kept, so that no ``id`` is reused. The mapping is empty until the
    first multiplier is needed.
    """

    __slots__ = ("hosts",)

    def __init__(self, hosts: Sequence[object], values: Iterable[float] = ()) -> None:
        super().__init__(zip(map(id, hosts), values, strict=False))
        self.hosts = hosts

    def with_values(self, compute: Callable[[Sequence[object]], list[float]]) -> "_Multipliers":
        """Return the multipliers of the same hosts, computed by the function."""
        return _Multipliers(self.hosts, compute(self.hosts))


class Weigher(abc.ABC):
    """The base class of weighers; derive from it and write ``_weigh_object``."""

    minval: ClassVar[float | None] = None
    """The raw weight that is scaled to 0; None stands for the lowest of a request."""

    maxval: ClassVar[float | None] = None
    """The raw weight that is scaled to 1; None stands for the highest of a request."""

    multiplier_key: ClassVar[str | None] = None
    """The aggregate metadata key that overrides the multiplier, if the weigher has one."""

    host_local: ClassVar[bool] = False
    """Whether a raw weight depends only on the host and the request, not on the other hosts.

    The request's server group and its members are part of the request.
    """

    in_nova: ClassVar[bool] = True
    """Whether the weigher can be used inside Nova."""

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        """Read all options, so that a bad value stops the service at start."""
        self._first_time = Once()
        self._kept = _Multipliers(())

    def by_kind(self, request: object) -> bool:
        """Return whether the raw weights depend only on the flavor and the kinds of the hosts.

        Hosts of one kind differ at most in their name, their UUID and their servers. Schedulers
        then ask about one host of each kind, and keep the weight for other requests with the same
        flavor. A weigher that overrides ``weight_multiplier`` is always asked about every host.
        """
        return False

    def keys_without_members(self, hosts: Sequence[object]) -> Sequence[Hashable] | None:
        """Return a key for each host; None if the weigher must be asked about every host.

        Schedulers then ask about one host of each key, and about every host that has servers of the
        request's group. Hosts without such servers must have equal weights if their keys are equal,
        and leaving out all but one of them must not change other weights. Keys are kept: they may
        depend only on the names, the aggregates and the traits of the hosts.
        """
        return None

    @abc.abstractmethod
    def _weigh_object(self, host: object, request: object) -> float:
        """Return the raw weight of the host; higher is better."""

    def weigh_objects(
        self, weighed_hosts: Sequence[WeighedHostLike], request: object
    ) -> list[float]:
        """Return the raw weights of the hosts, limited to ``minval`` and ``maxval``."""
        self.keep_multipliers([each.obj for each in weighed_hosts])
        return [self._clamp(self._weigh_object(each.obj, request)) for each in weighed_hosts]

    def multiplier(self) -> float:
        """Return the multiplier for hosts whose aggregates do not override it."""
        return 1.0

    def weight_multiplier(self, host: object) -> float:
        """Return the multiplier for this host.

        If several of the host's aggregates override it, the lowest value counts.
        """
        kept = self._kept.get(id(host))
        return self._computed(host) if kept is None else kept

    def keep_multipliers(self, hosts: Sequence[object]) -> None:
        """Set the hosts of the request, so that their multipliers are computed together.

        Schedulers weigh all hosts and then get the multiplier of each. If ``weigh_objects`` calls
        this method, the multipliers are computed once, and are consistent for the whole request.
        Another thread may set other hosts meanwhile: multipliers are then computed host by host.
        """
        self._kept = _Multipliers(hosts)

    def _computed(self, host: object) -> float:
        if not self._kept:
            self._kept = self._kept.with_values(self._multipliers)
        found = self._kept.get(id(host))
        return self._multipliers([host])[0] if found is None else found

    def _multipliers(self, hosts: Sequence[object]) -> list[float]:
        default = self.multiplier()
        if self.multiplier_key is None:
            return [default] * len(hosts)
        memberships = read_all(hosts, "aggregates")
        if None in memberships:
            memberships = [aggregates or () for aggregates in memberships]
        stated = {
            identity: number
            for identity, aggregate in by_identity(memberships).items()
            if (number := self._stated_multiplier(aggregate)) is not None
        }
        if not stated:
            return [default] * len(hosts)
        return [
            min((stated[id(each)] for each in aggregates if id(each) in stated), default=default)
            for aggregates in memberships
        ]

    def _stated_multiplier(self, aggregate: object) -> float | None:
        stated = read_mapping(aggregate, "metadata").get(self.multiplier_key)
        if stated is None:
            return None
        text, name = str(stated), read(aggregate, "name")
        number = finite_number(text)
        if number is None and self._first_time((str(name), text)):
            LOG.warning(
                "Invalid %(key)r = %(text)r of aggregate %(name)r ignored: expected a finite "
                "number such as 2.0",
                {"name": name, "key": self.multiplier_key, "text": text},
            )
        return number

    def _clamp(self, weight: float) -> float:
        if self.minval is not None:
            weight = max(weight, self.minval)
        if self.maxval is not None:
            weight = min(weight, self.maxval)
        return weight


WEIGHERS = plugins.of_subclasses("steelyard.weighers", Weigher, kind="weigher")
