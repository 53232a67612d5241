"""The hosts of a page as columns of numbers and names, which its script reads.

Repeated values, such as sets of traits, are written once and numbered. The servers are compressed:
there are many, and the script reads them only when a host is unfolded.
"""

import base64
import gzip
import json
import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

from steelyard.page.view import BAR_WIDTH, CellMark, HostCondition, Row, View
from steelyard.text import escapes

CODES = {condition: condition[0] for condition in HostCondition} | {HostCondition.FULL: "l"}
"""The letter of each condition in a column."""

ValueT = TypeVar("ValueT", bound=Hashable)

# Higher levels take longer and save little.
_LEVEL = 5


def columns(view: View) -> dict[str, Any]:
    """Return the hosts of the view as values for JSON, one column for each property."""
    rows = view.rows
    keys = [group.key for group in (*view.aggregates, *view.domains)]
    number_of = {key: number for number, key in enumerate(keys)}
    weights = [row.weight for row in rows if row.weight is not None]
    fitting = rows[: len(weights)]
    weighers = {weigher.name: number for number, weigher in enumerate(view.weighers)}
    return {
        "filters": _printable(view.filters),
        "weighers": _printable(tuple(weighers)),
        "width": _number(BAR_WIDTH),
        "axis": _number(view.axis, 4),
        "hosts": [escapes.printable(row.host) for row in rows],
        "conditions": "".join(CODES[row.condition] for row in rows),
        "tiles": [
            [escapes.printable(tile.name), escapes.printable(tile.within)] for tile in view.tiles
        ],
        "tile": [row.tile for row in rows],
        "keys": keys,
        "groups": _numbered(
            (tuple(number_of[key] for key in row.groups if key in number_of) for row in rows), list
        ),
        "cause": [row.groups[-1] for row in rows[len(weights) :]],
        "reasons": _numbered(map(_reasons, rows), list),
        "texts": [
            [
                view.filters.index(each.filter),
                escapes.printable(each.text),
                each.hosts,
                *_printable(each.typos),
            ]
            for each in view.reasons
        ],
        "weight": [_number(weight, 4) for weight in weights],
        "bar": [[round(width) for width in row.bar] for row in fitting],
        "weights": [_weights(row, weighers) for row in fitting],
        "amounts": _numbered(
            (tuple(each.resource_class for each in row.free) for row in rows), list
        ),
        "limits": _numbered(
            (tuple(_number(each.limit) for each in row.free) for row in rows), list
        ),
        "free": [[_number(each.left) for each in row.free] for row in rows],
        "traits": _numbered((row.traits for row in rows), _printable),
        "servers": _servers(rows),
    }


def as_json(value: Any) -> str:
    """Return the value as JSON that can be part of a ``script`` element."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return text.replace("<", "\\u003c")


def _numbered(values: Iterable[ValueT], written: Callable[[ValueT], Any]) -> dict[str, list[Any]]:
    """Return the different values, and the number of each value."""
    numbers: dict[ValueT, int] = {}
    of = [numbers.setdefault(value, len(numbers)) for value in values]
    return {"all": list(map(written, numbers)), "of": of}


def _reasons(row: Row) -> tuple[int, ...]:
    """Return the number of the filter that decided, or -1, and the numbers of all reasons."""
    decisive = -1
    found: list[int] = []
    for number, cell in enumerate(row.cells):
        if cell.mark is not CellMark.PASSED:
            found += cell.reasons
            if cell.mark is CellMark.DECISIVE:
                decisive = number
    return (decisive, *found) if found else ()


def _weights(row: Row, numbers: Mapping[str, int]) -> list[list[float | str]]:
    """Return for each contribution the number of the weigher, two weights and the multiplier."""
    return [
        [
            numbers[each.weigher],
            _number(each.raw, 6),
            _number(each.normalised, 4),
            *([] if each.multiplier == 1 else [_number(each.multiplier, 4)]),
        ]
        for each in row.contributions
    ]


def _number(value: float, digits: int = 10) -> float | str:
    """Return the number with these significant digits, as text if JSON has no such number.

    No digit of the whole part is dropped.
    """
    if not math.isfinite(value):
        return str(value)
    if value == int(value) or abs(value) >= 10**digits:
        return round(value)
    return float(f"{value:.{digits}g}")


def _printable(texts: Sequence[str]) -> list[str]:
    return list(map(escapes.printable, texts))


def _servers(rows: Sequence[Row]) -> str:
    """Return the servers of each host and the names of their flavors, compressed in Base64."""
    flavors: dict[str, int] = {}
    servers = [
        [
            part
            for server in row.servers
            for part in (
                escapes.printable(server.name or server.uuid),
                flavors.setdefault(server.flavor.name, len(flavors)),
            )
        ]
        for row in rows
    ]
    text = json.dumps({"flavors": _printable(list(flavors)), "servers": servers})
    content = gzip.compress(text.encode("ascii"), _LEVEL, mtime=0)
    return base64.b64encode(content).decode("ascii")
