"""The page that shows the consequences of changes to a cloud, as plain values."""

import base64
import dataclasses
import datetime
import gzip
import json
import urllib.parse
from collections.abc import Iterable, Sequence
from typing import Any

from steelyard.aggregates import FORCE_KEY
from steelyard.analysis.whatif.consequences import Consequences
from steelyard.analysis.whatif.flavors import FlavorChange
from steelyard.analysis.whatif.sections import Section, sections
from steelyard.cloud import Cloud
from steelyard.cloud.host_state import host_states
from steelyard.page.grouping import Tiles
from steelyard.text import escapes

# Higher levels take longer and save little.
_LEVEL = 5


@dataclasses.dataclass(frozen=True)
class ChangesForm:
    """The changes on the live page, and the one that was typed last."""

    changes: tuple[tuple[str, str], ...] = ()
    """The options of the changes, each with its value."""
    option: str = ""
    """The option that is chosen; it stays for the next change."""
    value: str = ""
    mistake: str = ""
    """The error in the change that was typed last, which is then not applied."""
    suggestions: Sequence[tuple[str, str]] = ()
    """Texts that begin values, each with the options that they suit."""

    def without(self, index: int) -> str:
        """Return the address of the live page without one of the changes."""
        left = [each for number, each in enumerate(self.changes) if number != index]
        query = urllib.parse.urlencode([("change", " ".join(each)) for each in left])
        return f"/whatif?{query}" if query else "/whatif"


@dataclasses.dataclass(frozen=True)
class WhatIfView:
    """The content of the page for the consequences of changes."""

    found: Consequences | None
    """The consequences; None if there are no changes yet."""
    command: str = ""
    """The command line that shows the same consequences."""
    strict: bool = False
    domains: Sequence[str] = ()
    """The metadata keys of failure domains."""
    source: str = ""
    modified: datetime.datetime | None = None
    form: ChangesForm | None = None
    """The form of the live page."""
    problem: str = ""
    """The reason why there are no consequences of the changes."""

    @property
    def worse(self) -> list[str]:
        """The deteriorations as text."""
        return [] if self.found is None else self.found.worse(strict=self.strict)

    @property
    def title(self) -> str:
        if self.found is None:
            return "What if"
        if not (self.found.flavors or self.sections):
            return "Nothing differs"
        return f"Worse: {', '.join(self.worse)}" if self.worse else "Nothing is worse"

    @property
    def sections(self) -> list[Section]:
        """The lists of differences, without empty ones."""
        return [] if self.found is None else sections(self.found)


def suggestions(cloud: Cloud) -> list[tuple[str, str]]:
    """Return texts that begin values of changes, each with the options that they suit."""
    found: dict[str, list[str]] = {}
    for name, aggregate in cloud.aggregates.items():
        found[name] = ["--unforce" if FORCE_KEY in aggregate.metadata else "--force"]
        found[f"{name}:"] = ["--add-host", "--remove-host"]
        found[f"aggregate:{name}"] = ["--out"]
        found[f"aggregate:{name}:"] = ["--set"]
        for key, value in aggregate.metadata.items():
            found[f"aggregate:{name}:{key}"] = ["--unset"]
            found[f"{key}={value}"] = ["--out"]
    for name, flavor in cloud.flavors.items():
        found[f"flavor:{name}:"] = ["--set"]
        for key in flavor.extra_specs:
            found[f"flavor:{name}:{key}"] = ["--unset"]
    for name, host in cloud.hosts.items():
        found[f"host:{name}"] = ["--in" if host.out_of_service else "--out"]
    return [(text, " ".join(options)) for text, options in found.items()]


def columns(view: WhatIfView) -> dict[str, Any]:
    """Return the hosts and their conditions before and after, as values for JSON.

    The conditions are compressed: a letter for each host, for each flavor that differs.
    """
    found = view.found
    if found is None:
        return {}
    before, after = found.before, found.after
    states = host_states(after)
    tiles = Tiles(states, after.aggregates.values(), view.domains)
    out_before = bytes(
        name in before.hosts and bool(before.hosts[name].out_of_service) for name in after.hosts
    )
    out_after = bytes(bool(host.out_of_service) for host in after.hosts.values())
    conditions = [
        [_letters(each.fits_before, out_before), _letters(each.fits_after, out_after)]
        for each in _comparable(found.flavors)
    ]
    return {
        "hosts": list(map(escapes.printable, after.hosts)),
        "tiles": [
            [escapes.printable(tile.name), escapes.printable(tile.within)] for tile in tiles.all
        ],
        "tile": tiles.of_hosts,
        "flavors": [escapes.printable(each.flavor) for each in _comparable(found.flavors)],
        "conditions": _compressed(conditions),
    }


def _comparable(flavors: Iterable[FlavorChange]) -> list[FlavorChange]:
    return [each for each in flavors if each.fits_after]


def _letters(fits: bytes, out: bytes) -> str:
    """Return the letter of each host's condition: out of service, fits, or rejected."""
    return "".join(
        "o" if is_out else "f" if is_fit else "r" for is_fit, is_out in zip(fits, out, strict=True)
    )


def _compressed(value: Any) -> str:
    content = gzip.compress(json.dumps(value).encode("ascii"), _LEVEL, mtime=0)
    return base64.b64encode(content).decode("ascii")
