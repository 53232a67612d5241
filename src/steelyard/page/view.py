"""The content of the page as plain values, counted, numbered and laid out."""

import collections
import dataclasses
import datetime
import enum
import itertools
from collections.abc import Mapping
from typing import NamedTuple

from steelyard.cloud import Server

BAR_WIDTH = 100.0
"""The width of the bars of weights."""


class CellMark(enum.StrEnum):
    """The result of one filter for one host."""

    PASSED = "passed"
    DECISIVE = "decisive"
    """The filter rejected the host in the decision."""
    ALSO = "also"
    """The filter would reject the host too, but an earlier one did."""


class HostVerdict(enum.StrEnum):
    """The outcome of the decision for a host."""

    CHOSEN = "chosen"
    FITS = "fits"
    REJECTED = "rejected"


class HostCondition(enum.StrEnum):
    """The outcome of the decision for a host, as the map shows it."""

    CHOSEN = "chosen"
    FITS = "fits"
    FULL = "full"
    """The host would pass all filters if none of its capacity were in use."""
    REJECTED = "rejected"
    OUT_OF_SERVICE = "out of service"


class FreeAmount(NamedTuple):
    """The amount of a resource class that is left on a host, and the limit for servers."""

    resource_class: str
    left: float
    limit: float


@dataclasses.dataclass(frozen=True, slots=True)
class ShownReason:
    """A reason of a filter, with the number of hosts that it applies to."""

    number: int
    filter: str
    text: str
    hosts: int
    typos: tuple[str, ...] = ()
    """The possible typos that explain it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Cell:
    """The result of one filter for one host, with the numbers of its reasons."""

    mark: CellMark
    reasons: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Contribution:
    weigher: str
    raw: float
    normalised: float
    multiplier: float
    multiplied: float


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One host in the table."""

    host: str
    verdict: HostVerdict
    groups: tuple[str, ...]
    """The keys of its groups, and of the cause of its rejection."""
    aggregates: tuple[str, ...]
    cells: tuple[Cell, ...]
    """In the order of the filters."""
    weight: float | None = None
    bar: tuple[float, ...] = ()
    """The width of each weigher's segment, below 0 left of the axis; without a last segment of 0.
    """
    contributions: tuple[Contribution, ...] = ()
    """Only of weighers whose raw or multiplied weight is not 0."""
    condition: HostCondition = HostCondition.REJECTED
    tile: int = 0
    """The number of the tile that has the host on the map."""
    free: tuple[FreeAmount, ...] = ()
    servers: tuple[Server, ...] = ()
    traits: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class ShownRoom:
    """The room for additional servers on some hosts together."""

    name: str
    more: int
    at_least: bool
    """Whether more servers than that may fit."""
    fitting_hosts: int
    hosts: int


@dataclasses.dataclass(frozen=True, slots=True)
class HostGroup:
    """The hosts of an aggregate or of a failure domain."""

    key: str
    name: str
    hosts: int
    fit: int
    chosen: bool
    metadata: Mapping[str, str] = dataclasses.field(default_factory=dict)
    level: int = 0
    """The number of domains around this one."""
    room: ShownRoom | None = None

    @property
    def rejected(self) -> int:
        return self.hosts - self.fit


@dataclasses.dataclass(frozen=True, slots=True)
class Tile:
    """A part of the map: the hosts of an innermost failure domain, or of an aggregate."""

    name: str
    within: str = ""
    """The domains around it."""


@dataclasses.dataclass(frozen=True, slots=True)
class ShownCause:
    """A cause of rejections by a filter, with the number of hosts."""

    key: str
    filter: str
    text: str
    hosts: int
    typos: tuple[str, ...] = ()
    """The possible typos that explain it."""


@dataclasses.dataclass(frozen=True, slots=True)
class ShownWeigher:
    """A weigher, with the style of its segments."""

    name: str
    style: int
    """The number of the colour and pattern of its segments."""
    used: bool
    """Whether it changes the weight of any host."""


@dataclasses.dataclass(frozen=True, slots=True)
class ShownFlavor:
    name: str
    vcpus: int
    memory_mb: int
    root_gb: int
    extra_specs: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class ShownServerGroup:
    """The server group of the request."""

    name: str
    policy: str
    rules: Mapping[str, int]
    hosts: tuple[str, ...]
    """The hosts that run a server of the group."""


@dataclasses.dataclass(frozen=True, slots=True)
class View:
    """The content of the page for one decision."""

    flavor: ShownFlavor
    group: ShownServerGroup | None
    filters: tuple[str, ...]
    weighers: tuple[ShownWeigher, ...]
    causes: tuple[ShownCause, ...]
    aggregates: tuple[HostGroup, ...]
    domains: tuple[HostGroup, ...]
    """Each is followed by the domains inside it."""
    domain_keys: tuple[str, ...]
    """The metadata keys that name the domains, from far to near."""
    rows: tuple[Row, ...]
    """The chosen host, then the others that fit, the best first, then the rejected."""
    reasons: tuple[ShownReason, ...]
    tiles: tuple[Tile, ...] = ()
    room: ShownRoom | None = None
    """The room of all hosts for servers like the requested one, if it was counted."""
    zones: tuple[ShownRoom, ...] = ()
    """The room of each availability zone, if the cloud has any."""
    axis: float = 0.0
    """The position of weight 0 in a bar; negative weights lie left of it."""
    source: str = ""
    """The name of the cloud that the page shows."""
    modified: datetime.datetime | None = None
    """The time when the cloud file was modified, if the cloud is in a file."""

    @property
    def chosen(self) -> Row | None:
        first = self.rows[0] if self.rows else None
        return first if first and first.verdict is HostVerdict.CHOSEN else None

    @property
    def next_best(self) -> Row | None:
        second = self.rows[1] if len(self.rows) > 1 else None
        return second if second and second.verdict is HostVerdict.FITS else None

    @property
    def fit(self) -> int:
        return sum(row.verdict is not HostVerdict.REJECTED for row in self.rows)

    @property
    def conditions(self) -> list[tuple[HostCondition, int]]:
        """Each condition with the number of its hosts."""
        counts = collections.Counter(row.condition for row in self.rows)
        return [(each, counts[each]) for each in HostCondition]

    def reasons_of_first(self, rows: int) -> list[tuple[str, list[ShownReason]]]:
        """Return the reasons of the first rows by filter, without filters that have none."""
        numbers = {
            number for row in self.rows[:rows] for cell in row.cells for number in cell.reasons
        }
        found = (reason for reason in self.reasons if reason.number in numbers)
        by_filter = itertools.groupby(found, key=lambda reason: reason.filter)
        return [(name, list(reasons)) for name, reasons in by_filter]

    @property
    def title(self) -> str:
        if self.chosen is None:
            return f"No host fits {self.flavor.name}"
        return f"{self.flavor.name} goes to {self.chosen.host}"


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """The choices of the live page, and the current selection."""

    flavors: tuple[str, ...]
    groups: tuple[str, ...]
    flavor: str | None = None
    group: str | None = None
    fitting_nowhere: frozenset[str] = frozenset()
    """The flavors that no host fits."""
