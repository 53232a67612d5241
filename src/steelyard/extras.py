"""What needs an extra: imported when it is asked for, with an error that names the extra."""

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from steelyard import errors


def lazily(package: str, rooms: Mapping[str, tuple[str, str]]) -> Callable[[str], Any]:
    """A ``__getattr__`` for the package: for each of its names, the module and the extra."""

    def attribute(name: str) -> Any:
        if name not in rooms:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        room, extra = rooms[name]
        try:
            return getattr(importlib.import_module(f"{package}.{room}"), name)
        except ModuleNotFoundError as error:
            if str(error.name).startswith("steelyard"):
                raise
            raise errors.MissingExtra(
                f"{name} needs {error.name}, which is not installed: "
                f"python3 -m pip install 'steelyard[{extra}]'"
            ) from error

    return attribute
