"""Numbers and names as readable text."""

import math
from typing import Any

_DECIMALS = 15
_VERY_GREAT = 1e21
_UNITS = (("d", 86400), ("h", 3600), ("min", 60), ("s", 1))


def counted(count: int, what: str) -> str:
    """Return the count with its noun, such as ``1 host`` or ``2 hosts``."""
    return f"{count} {what}{'' if count == 1 else 's'}"


def listed(names: list[str], most: int = 3) -> str:
    """Return the first ``most`` names in quotes, and the number of the others."""
    more = len(names) - most
    shown = ", ".join(map(repr, names[:most]))
    return f"{shown} and {more} more" if more > 0 else shown


def duration(seconds: float) -> str:
    """Return the time with its two greatest units, such as ``3 h 20 min``."""
    left = int(seconds)
    parts: list[str] = []
    for unit, size in _UNITS:
        count, left = divmod(left, size)
        if count or parts:
            parts.append(f"{count} {unit}")
    return " ".join(parts[:2]) or "0 s"


def plain(number: Any, digits: int = 10) -> str:
    """Return the number with at most ``digits`` significant digits and without trailing zeros.

    No digit of the whole part is dropped. Only numbers from 1e21 on have an exponent; numbers below
    1e-15 read ``0``.
    """
    if not math.isfinite(number) or abs(number) >= _VERY_GREAT:
        return f"{number:.{digits}g}"
    magnitude = math.floor(math.log10(abs(number))) if number else 0
    text = f"{number:.{min(max(digits - 1 - magnitude, 0), _DECIMALS)}f}"
    if "." in text:
        text = text.rstrip("0").rstrip(".")
    return "0" if text == "-0" else text
