"""Types of options that oslo.config lacks.

Their errors do not quote the value, because :class:`InvalidOption` does.
"""

import json
import math
import re
from typing import Any

from oslo_config import types

from steelyard.text import strict_json


class Count(types.Integer):
    """A whole number. Unlike Integer, it rejects an empty value."""

    def __call__(self, value: Any) -> Any:
        number = super().__call__(value)
        if number is None:
            raise ValueError("expected a whole number")
        return number


class FiniteFloat(types.Float):
    """A number. Unlike Float, it rejects infinity, NaN and an empty value."""

    def __call__(self, value: Any) -> Any:
        number = super().__call__(value)
        if number is None:
            raise ValueError("expected a finite number")
        if not math.isfinite(number):
            raise ValueError("expected a finite number")
        return number


class DomainKeys(types.List):
    """Unique metadata keys without ``host``, which is always the nearest domain."""

    def __call__(self, value: Any) -> Any:
        keys = super().__call__(value)
        for key in keys:
            if not key:
                raise ValueError("empty key; write keys separated by commas")
            if key == "host":
                raise ValueError("'host' is always the nearest domain; leave it out")
            if keys.count(key) > 1:
                raise ValueError(f"duplicate key {key!r}")
        return keys


class Removed(types.ConfigType):
    """The type of a removed option, which rejects every value."""

    def __init__(self, remedy: str) -> None:
        super().__init__(type_name="removed option")
        self._remedy = remedy

    def __call__(self, value: Any) -> Any:
        raise ValueError(f"this option was removed; delete the line, and {self._remedy}")

    def _formatter(self, value: Any) -> str:
        return str(value)


class BrokerName(types.String):
    """A name at a message broker. ``allowed`` describes the pattern in words."""

    def __init__(self, regex: str, allowed: str) -> None:
        super().__init__(regex=regex)
        self.allowed = allowed


class ListenAddress(types.ConfigType):
    """A host and a port to listen on, as a tuple; an IPv6 address is in brackets."""

    _ADDRESS = re.compile(r"(?:\[([^\[\]]+)\]|([^\[\]:]+)):([0-9]{1,5})")
    _LAST_PORT = 65535

    def __init__(self) -> None:
        super().__init__(type_name="host and port")

    def __call__(self, value: Any) -> tuple[str, int]:
        if isinstance(value, tuple):
            return value
        found = self._ADDRESS.fullmatch(value)
        if found is None or int(found[3]) > self._LAST_PORT:
            raise ValueError(
                "expected a host and a port, such as 127.0.0.1:9781 or [::1]:9781, with a port "
                f"from 0 to {self._LAST_PORT}"
            )
        return found[1] or found[2], int(found[3])

    def _formatter(self, value: Any) -> str:
        host, port = value
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


class CreationParameters(types.ConfigType):
    """The parameters of new Ganeti instances as a JSON object, without name and tags."""

    _DEFAULTS = {"__version__": 1, "mode": "create", "name_check": False, "ip_check": False}
    _OURS = ("instance_name", "name", "tags")

    def __init__(self) -> None:
        super().__init__(type_name="parameters as JSON")

    def __call__(self, value: Any) -> dict[str, Any]:
        try:
            found = strict_json.loads(value) if isinstance(value, str) else value
        except ValueError as error:
            raise ValueError(f"invalid JSON: {error}") from None
        if not isinstance(found, dict):
            raise ValueError('expected a JSON object, such as {"os_type": "…", …}')
        for key in self._OURS:
            if key in found:
                raise ValueError(f"key {key!r} differs for each instance; leave it out")
        return {**self._DEFAULTS, **found}

    def _formatter(self, value: Any) -> str:
        return json.dumps(value)
