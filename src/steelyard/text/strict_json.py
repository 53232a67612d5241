"""A JSON parser that rejects repeated keys."""

import json
from typing import Any


class RepeatedKeyError(ValueError):
    """A JSON object that has the same key twice."""

    def __init__(self, key: str) -> None:
        super().__init__(f"duplicate key {key!r} in an object")
        self.key = key


class NestingError(ValueError):
    """Objects and lists that are nested too deeply to be parsed."""

    def __init__(self) -> None:
        super().__init__("objects and lists are nested too deeply")


def loads(text: str | bytes, **options: Any) -> Any:
    """Return the value of the JSON text.

    The options are those of :func:`json.loads`. Raises RepeatedKeyError, NestingError or another
    ValueError.
    """
    try:
        return json.loads(text, object_pairs_hook=_object, **options)
    except RecursionError:
        raise NestingError from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise RepeatedKeyError(key)
            seen.add(key)
    return found
