"""What the page shows, as plain values: everything is counted, numbered and laid out here."""

import dataclasses
import enum
import itertools
from collections.abc import Mapping

BAR_WIDTH = 100.0
"""How wide the bars of weights are, in the unit of their segments."""


class Mark(enum.StrEnum):
    """What a filter says of a host."""

    PASSED = "passed"
    DECISIVE = "decisive"
    """It has turned the host away."""
    ALSO = "also"
    """It has something against the host, which did not decide."""


class Verdict(enum.StrEnum):
    CHOSEN = "chosen"
    FITS = "fits"
    REJECTED = "rejected"


@dataclasses.dataclass(frozen=True, slots=True)
class Reason:
    """What a filter has against hosts, once for all of which it says the same."""

    number: int
    filter: str
    text: str
    hosts: int


@dataclasses.dataclass(frozen=True, slots=True)
class Cell:
    """What one filter says of one host, with the numbers of its reasons."""

    mark: Mark
    reasons: tuple[int, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class Segment:
    """What one weigher adds to the bar of a host."""

    style: int
    start: float
    width: float


@dataclasses.dataclass(frozen=True, slots=True)
class Contribution:
    weigher: str
    raw: float
    normalised: float
    multiplier: float
    multiplied: float


@dataclasses.dataclass(frozen=True, slots=True)
class Row:
    """One host."""

    host: str
    verdict: Verdict
    groups: tuple[str, ...]
    """The keys of the groups, and of the cause, that it counts in."""
    aggregates: tuple[str, ...]
    cells: tuple[Cell, ...]
    """What each filter says of it, in the order of the filters."""
    weight: float | None = None
    segments: tuple[Segment, ...] = ()
    contributions: tuple[Contribution, ...] = ()
    """Of the weighers that have something to say about it."""


@dataclasses.dataclass(frozen=True, slots=True)
class Group:
    """Hosts that belong together: an aggregate, or a failure domain."""

    key: str
    name: str
    hosts: int
    fit: int
    chosen: bool
    metadata: Mapping[str, str] = dataclasses.field(default_factory=dict)
    level: int = 0
    """How many domains it lies in."""

    @property
    def rejected(self) -> int:
        return self.hosts - self.fit


@dataclasses.dataclass(frozen=True, slots=True)
class Cause:
    """How many hosts a filter has turned away for one cause."""

    key: str
    filter: str
    text: str
    hosts: int


@dataclasses.dataclass(frozen=True, slots=True)
class Weigher:
    name: str
    style: int
    """Which of the colours and patterns its segments have."""
    used: bool
    """Whether it adds anything to the weight of any host."""


@dataclasses.dataclass(frozen=True, slots=True)
class Flavor:
    name: str
    vcpus: int
    memory_mb: int
    root_gb: int
    extra_specs: Mapping[str, str]


@dataclasses.dataclass(frozen=True, slots=True)
class ServerGroup:
    name: str
    policy: str
    rules: Mapping[str, int]
    hosts: tuple[str, ...]
    """The hosts that have a server of it."""


@dataclasses.dataclass(frozen=True, slots=True)
class View:
    """One decision."""

    flavor: Flavor
    group: ServerGroup | None
    filters: tuple[str, ...]
    weighers: tuple[Weigher, ...]
    causes: tuple[Cause, ...]
    aggregates: tuple[Group, ...]
    domains: tuple[Group, ...]
    """Each with those that lie in it behind it."""
    domain_keys: tuple[str, ...]
    """The metadata keys that name them, from far to near."""
    rows: tuple[Row, ...]
    """The chosen host, the others that fit, the best first, and the rejected."""
    reasons: tuple[Reason, ...]
    axis: float = 0.0
    """Where in a bar nothing is: negative weights lie left of it."""
    source: str = ""
    """What describes the cloud."""

    @property
    def chosen(self) -> Row | None:
        first = self.rows[0] if self.rows else None
        return first if first and first.verdict is Verdict.CHOSEN else None

    @property
    def next_best(self) -> Row | None:
        second = self.rows[1] if len(self.rows) > 1 else None
        return second if second and second.verdict is Verdict.FITS else None

    @property
    def fit(self) -> int:
        return sum(row.verdict is not Verdict.REJECTED for row in self.rows)

    @property
    def reasons_of_filters(self) -> list[tuple[str, list[Reason]]]:
        """The reasons that each filter has, of those that have any."""
        by_filter = itertools.groupby(self.reasons, key=lambda reason: reason.filter)
        return [(name, list(reasons)) for name, reasons in by_filter]

    @property
    def title(self) -> str:
        if self.chosen is None:
            return f"No host fits {self.flavor.name}"
        return f"{self.flavor.name} goes to {self.chosen.host}"


@dataclasses.dataclass(frozen=True, slots=True)
class Form:
    """What can be asked of the live page, and what has been."""

    flavors: tuple[str, ...]
    groups: tuple[str, ...]
    flavor: str | None = None
    group: str | None = None
