"""The contract of weighers.

The scheduler asks a weigher for the raw weights of all hosts, brings them into the range from 0
to 1, multiplies each by the weigher's multiplier for that host and adds up the results of all
weighers. The protocols of hosts and requests are those of :mod:`steelyard.filters.base`.
"""

import abc
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Protocol

from oslo_config import cfg
from oslo_log import log as logging

from steelyard.attributes import by_identity, read, read_all, read_mapping
from steelyard.once import Once
from steelyard.string_sets import finite_number

LOG = logging.getLogger(__name__)


class WeighedHost(Protocol):
    """A host with the weight it has so far."""

    @property
    def obj(self) -> object:
        """The host."""


class _Multipliers(dict[int, float]):
    """The multipliers of one request's hosts, by the identity of the hosts.

    It holds the hosts, so that none of them can go and leave its identity to another. Empty, it
    stands for what has not been asked for yet.
    """

    __slots__ = ("hosts",)

    def __init__(self, hosts: Sequence[object], values: Iterable[float] = ()) -> None:
        super().__init__(zip(map(id, hosts), values, strict=False))
        self.hosts = hosts

    def with_values(self, work_out: Callable[[Sequence[object]], list[float]]) -> "_Multipliers":
        return _Multipliers(self.hosts, work_out(self.hosts))


class Weigher(abc.ABC):
    """Derive from this and write ``_weigh_object``; everything else follows from it."""

    minval: ClassVar[float | None] = None
    """The weight that counts as 0; None stands for the least that occurs."""

    maxval: ClassVar[float | None] = None
    """The weight that counts as 1; None stands for the greatest that occurs."""

    multiplier_key: ClassVar[str | None] = None
    """The aggregate metadata key that overrides the multiplier, where there is one."""

    in_nova: ClassVar[bool] = True
    """Whether the weigher makes sense inside Nova."""

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        """Reads all options, so that a bad value is found before the first request."""
        self._first_time = Once()
        self._kept = _Multipliers(())

    @abc.abstractmethod
    def _weigh_object(self, host: object, request: object) -> float:
        """The raw weight of the host; more is better."""

    def weigh_objects(self, weighed_hosts: Sequence[WeighedHost], request: object) -> list[float]:
        """The raw weights of the hosts, none beyond ``minval`` and ``maxval``."""
        self.keep_multipliers([each.obj for each in weighed_hosts])
        return [self._clamp(self._weigh_object(each.obj, request)) for each in weighed_hosts]

    def multiplier(self) -> float:
        """How much the weigher counts where no aggregate says otherwise."""
        return 1.0

    def weight_multiplier(self, host: object) -> float:
        """How much the weigher counts for this host.

        Of the values that the host's aggregates state, the smallest counts.
        """
        kept = self._kept.get(id(host))
        return self._worked_out(host) if kept is None else kept

    def keep_multipliers(self, hosts: Sequence[object]) -> None:
        """Says which hosts a request has, so that their multipliers are worked out in one go.

        Schedulers weigh all hosts and then ask for the multiplier of each: a ``weigh_objects``
        that calls this makes those answers cheap, and equal for the whole request.
        """
        self._kept = _Multipliers(hosts)

    def _worked_out(self, host: object) -> float:
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
                "Aggregate %(name)r has %(key)r = %(text)r, which is not a finite number and is "
                "ignored; write a number such as 2.0",
                {"name": name, "key": self.multiplier_key, "text": text},
            )
        return number

    def _clamp(self, weight: float) -> float:
        if self.minval is not None:
            weight = max(weight, self.minval)
        if self.maxval is not None:
            weight = min(weight, self.maxval)
        return weight
