"""Single fields of responses, parsed into values.

Each function raises LookupError, TypeError, ValueError or AttributeError for a malformed value.
"""

import json
import sys
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

ValueT = TypeVar("ValueT")

_GREATEST = 10**15 - 1


def read(record: Any, name: str, parse: Callable[[Any], ValueT]) -> ValueT:
    """Return the parsed value of a field. Raises ValueError, naming the field, if it is invalid."""
    try:
        return parse(record[name])
    except KeyError:
        raise ValueError(f"{name}: missing") from None
    except (TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{name}: {error}") from error


def by_name(value: Any, parse: Callable[[Any], ValueT]) -> dict[str, ValueT]:
    return {text(name): read(value, name, parse) for name in mapping(value)}


def mapping(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError(f"expected an object, got {value!r:.100}")
    return value


def text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected text, got {value!r:.100}")
    # JSON can contain a lone surrogate, which cannot be written to a file.
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


def texts(value: Any) -> dict[str, str]:
    return by_name(value, text)


def list_of_texts(value: Any) -> list[str]:
    return [text(item) for item in value]


def amount(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= _GREATEST:
        raise ValueError(f"expected a whole number from 0 to {_GREATEST}, got {value!r:.100}")
    return value


def unit(value: Any) -> int:
    if amount(value) < 1:
        raise ValueError("expected at least 1, got 0")
    return int(value)


def ratio(value: Any) -> float:
    if not isinstance(value, int | float) or not 0 <= value <= sys.float_info.max:
        raise ValueError(f"expected a finite number of at least 0, got {value!r:.100}")
    return float(value)


def as_text(value: Any) -> str:
    """Return a text as it is, and any other value as JSON."""
    return text(value if isinstance(value, str) else json.dumps(value))
