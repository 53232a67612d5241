"""The releases of Nova, told by the newest microversion of its API."""

import dataclasses

from steelyard import microversions
from steelyard.analysis.why.switches import Switches
from steelyard.cloud.wanted import Source

CARACAL, DALMATIAN, FLAMINGO, GAZPACHO, HIBISCUS = 29, 30, 32, 33, 34
"""The major versions of Nova in which its requests to Placement have changed."""

_NAMES = {29: "2024.1", 30: "2024.2", 32: "2025.2", 33: "2026.1", 34: "2026.2"}
# The newest microversions, each with the first and the last major version that has it.
_MAXIMA = {"2.96": (29, 30), "2.100": (31, 32), "2.101": (33, 33), "2.104": (34, 34)}
_OLDEST, _NEWEST = 28, 34


@dataclasses.dataclass(frozen=True, slots=True)
class Release:
    """The major version of Nova, as far as its newest microversion tells it."""

    first: int = _OLDEST
    last: int = _NEWEST

    @classmethod
    def of(cls, microversion: str) -> "Release":
        """Return the release with this newest microversion; an empty text tells nothing."""
        found = cls()
        for maximum, (first, last) in _MAXIMA.items() if microversion else ():
            if microversions.number(microversion) >= microversions.number(maximum):
                found = cls(first, last)
        if microversion and found == cls():
            return cls(_OLDEST, _OLDEST)
        return found

    def may_be(self, since: int) -> bool:
        """Return whether this may be the given major version or a newer one."""
        return self.last >= since

    def is_surely(self, since: int) -> bool:
        """Return whether this is the given major version or a newer one."""
        return self.first >= since


class NovaInUse:
    """The Nova that sends the request, and notes on how it reads the request."""

    def __init__(self, release: Release, switches: Switches, observed: Source = Source.NOW) -> None:
        self.release = release
        self.switches = switches
        self.observed = observed
        """The source of the data on aggregates and hosts."""
        self.assumptions: dict[str, None] = {}
        """Each text once, in order; so are the other notes."""
        self.not_known: dict[str, None] = {}
        self.ignored: dict[str, None] = {}

    def sends(self, since: int, trait: str) -> bool:
        """Return whether Nova sends the trait, which it does from this major version on.

        If the release is not certain, it is assumed to send it, and the assumption is noted.
        """
        if not self.release.may_be(since):
            return False
        if not self.release.is_surely(since):
            self.assumptions[
                f"Nova is of release {_NAMES[since]} or newer, so it requests the trait {trait}"
            ] = None
        return True
