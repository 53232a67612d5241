"""Entries of described files, checked and converted; a mistake names the path of the entry.

The syntax module returns every value as text; numbers are converted here. A description that is
to be saved has numbers already.
"""

import json
from collections.abc import Callable, Collection, Mapping
from typing import Any

from steelyard._string_sets import finite_number
from steelyard.cloud.files.syntax import Mistake, Path
from steelyard.text import spelling

# More than any host has, and small enough to be exact as a float.
_GREATEST = 10**15 - 1


def numbered(noun: str) -> Callable[[Path], str]:
    """Return a function that returns the text for a path in a list, counted from 1."""

    def where(path: Path) -> str:
        if not path:
            return ""
        index, *keys = path
        return ": ".join([f"{noun} {int(index) + 1}", *keys])

    return where


def mapping(value: Any, path: Path) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Mistake(f"expected a mapping, got {shown(value)}", path, text=value)
    return value


def fields(
    value: Any, path: Path, required: Collection[str] = (), optional: Collection[str] = ()
) -> dict[str, Any]:
    found = mapping(value, path)
    allowed = [*required, *optional]
    for name in found:
        if name not in allowed:
            raise Mistake(
                f"unknown key {name!r}{spelling.near(name, allowed)}", (*path, name), text=name
            )
    for name in required:
        if name not in found:
            raise Mistake(f"missing key {name!r}; required: {', '.join(required)}", path)
    return found


def known(kind: str, value: Any, there: Mapping[str, Any], path: Path) -> str:
    name = text(value, path)
    if name not in there:
        raise Mistake(f"no {kind} {name!r}{spelling.near(name, there)}", path, text=name)
    return name


def number(value: Any, path: Path, least: int = 0, most: int = _GREATEST) -> int:
    if type(value) is int and least <= value <= most:
        return value
    digits = value if isinstance(value, str) and value.isascii() and value.isdecimal() else ""
    if 0 < len(digits) <= len(str(_GREATEST)) and least <= int(digits) <= most:
        return int(digits)
    raise Mistake(
        f"expected a whole number from {least} to {most}, got {shown(value)}",
        path,
        text=value,
    )


def ratio(value: Any, path: Path) -> float:
    found = finite_number(value) if isinstance(value, str | float) else None
    if found is None or found < 0:
        raise Mistake(f"expected a number of at least 0, got {shown(value)}", path, text=value)
    return found


def text(value: Any, path: Path) -> str:
    if isinstance(value, bool):  # true or false in JSON
        return str(value).lower()
    if not isinstance(value, str):
        raise Mistake(f"expected text, got {shown(value)}", path)
    return value


def name(value: Any, path: Path) -> str:
    """Return the name of something in a cloud."""
    found = text(value, path)
    if not found or not found.isprintable():
        raise Mistake(
            f"invalid name {found!r}: expected at least one character, all printable",
            path,
            text=found,
        )
    return found


def texts(value: Any, path: Path) -> list[str]:
    if not isinstance(value, list):
        raise Mistake(f"expected a list, got {shown(value)}", path, text=value)
    if set(map(type, value)) <= {str}:
        return value
    return [text(item, (*path, str(index))) for index, item in enumerate(value)]


def text_mapping(value: Any, path: Path) -> dict[str, str]:
    found = mapping(value, path)
    if set(map(type, found.values())) <= {str}:
        return found
    return {key: text(item, (*path, key)) for key, item in found.items()}


def shown(value: Any) -> str:
    """Return the value as text for a message, cut if it is long."""
    shown = json.dumps(value, ensure_ascii=False)
    return shown if len(shown) <= 60 else f"{shown[:57]}..."
