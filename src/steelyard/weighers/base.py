"""The contract of weighers.

The scheduler asks a weigher for the raw weights of all hosts, brings them into the range from 0
to 1, multiplies each by the weigher's multiplier for that host and adds up the results of all
weighers. The protocols of hosts and requests are those of :mod:`steelyard.filters.base`.
"""

import abc
from collections.abc import Sequence
from typing import ClassVar, Protocol

from oslo_config import cfg
from oslo_log import log as logging

from steelyard.attributes import read, read_all
from steelyard.once import Once
from steelyard.string_sets import finite_number

LOG = logging.getLogger(__name__)


class WeighedHost(Protocol):
    """A host with the weight it has so far."""

    @property
    def obj(self) -> object:
        """The host."""


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
        # The hosts of the last request by their identity, replaced as a whole by the next one.
        self._kept: dict[int, tuple[object, float]] = {}

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
        known, multiplier = self._kept.get(id(host), (None, 0.0))
        return multiplier if known is host else self._multipliers([host])[0]

    def keep_multipliers(self, hosts: Sequence[object]) -> None:
        """Works the multipliers of a request's hosts out in one go.

        Schedulers weigh all hosts and then ask for the multiplier of each: a ``weigh_objects``
        that calls this once makes those answers cheap, and equal for the whole request.
        """
        self._kept = dict(
            zip(map(id, hosts), zip(hosts, self._multipliers(hosts), strict=True), strict=True)
        )

    def _multipliers(self, hosts: Sequence[object]) -> list[float]:
        default = self.multiplier()
        if self.multiplier_key is None:
            return [default] * len(hosts)
        memberships = [aggregates or () for aggregates in read_all(hosts, "aggregates")]
        # By identity: aggregates are whatever the scheduler has, and need not be hashable.
        distinct = {id(each): each for aggregates in memberships for each in aggregates}
        stated = {
            identity: number
            for identity, aggregate in distinct.items()
            if (number := self._stated_multiplier(aggregate)) is not None
        }
        if not stated:
            return [default] * len(hosts)
        return [
            min((stated[id(each)] for each in aggregates if id(each) in stated), default=default)
            for aggregates in memberships
        ]

    def _stated_multiplier(self, aggregate: object) -> float | None:
        """The smallest of the numbers that the aggregate's metadata lists."""
        text = (read(aggregate, "metadata") or {}).get(self.multiplier_key)
        if text is None:
            return None
        numbers = {part: finite_number(part) for part in str(text).split(",")}
        for part, number in numbers.items():
            if number is None and self._first_time((read(aggregate, "name"), text, part)):
                LOG.warning(
                    "Aggregate %(name)r has %(key)r = %(text)r: %(part)r is not a finite number "
                    "and is ignored; write a number such as 2.0",
                    {
                        "name": read(aggregate, "name"),
                        "key": self.multiplier_key,
                        "text": text,
                        "part": part.strip(),
                    },
                )
        return min((number for number in numbers.values() if number is not None), default=None)

    def _clamp(self, weight: float) -> float:
        if self.minval is not None:
            weight = max(weight, self.minval)
        if self.maxval is not None:
            weight = min(weight, self.maxval)
        return weight
