"""Arguments that name a part of the cloud, and the names that a shell can complete them with."""

import importlib.resources
import itertools
import os
from collections.abc import Sequence
from typing import Any

from steelyard import errors
from steelyard.cloud.files import loading

USUAL_FILES = ("cloud.yaml", "cloud.json")
"""The files that commands read by default; only one of them may exist."""

IMPORTED_FILE = "cloud.json"
"""The file that an import writes by default."""

EXAMPLE = importlib.resources.files("steelyard.cloud") / "example.yaml"
"""The cloud that comes with steelyard."""

# The options that name a cloud file, in the order in which commands look for a flavor, and the one
# that stands for the example.
_FILE_OPTIONS = ("--cloud", "--against")
_EXAMPLE_OPTION = "--example"


class CloudName:
    """The type of an argument that names something in a section of the cloud file."""

    def __init__(self, section: str) -> None:
        self.section = section

    def __call__(self, text: str) -> str:
        return text


FLAVOR = CloudName("flavors")
HOST = CloudName("hosts")
GROUP = CloudName("server_groups")
AGGREGATE = CloudName("aggregates")
SERVER = CloudName("servers")

BREAKDOWNS = ("host", "aggregate", "reason")
"""The words that an argument of the type ``BREAKDOWN`` may have besides metadata keys."""

BREAKDOWN = CloudName("breakdowns")  # not a section of the cloud file
"""The type of an argument that is one of ``BREAKDOWNS`` or a metadata key of the aggregates."""


def names(section: str, arguments: Sequence[str]) -> list[str]:
    """Return the names in a section of the cloud that the arguments of a command choose.

    Without a cloud that can be read, there are none. Mistakes elsewhere in the file are ignored.
    """
    if section == BREAKDOWN.section:
        aggregates = _section("aggregates", arguments).values()
        metadata = (each.get("metadata") for each in aggregates if isinstance(each, dict))
        keys = {key for each in metadata if isinstance(each, dict) for key in each}
        return [*BREAKDOWNS, *sorted(key for key in keys if isinstance(key, str))]
    return [name for name in _section(section, arguments) if isinstance(name, str)]


def _section(section: str, arguments: Sequence[str]) -> dict[Any, Any]:
    """Return the section of the cloud file; empty if it cannot be read."""
    with importlib.resources.as_file(EXAMPLE) as example:
        path = os.fspath(example) if _EXAMPLE_OPTION in arguments else _cloud_file(arguments)
        # A pipe or a terminal would make the shell wait.
        if not os.path.isfile(path):
            return {}
        try:
            content = loading.load_content(path)
        except (errors.SteelyardError, ValueError, RecursionError):
            return {}
    found = content.get(section) if isinstance(content, dict) else None
    return found if isinstance(found, dict) else {}


def usual_files() -> list[str]:
    """Return which of the files that commands read by default exist."""
    return [name for name in USUAL_FILES if os.path.exists(name)]


def _cloud_file(arguments: Sequence[str]) -> str:
    files: dict[str, str] = {}
    for option, following in itertools.pairwise([*arguments, ""]):
        name, equals, value = option.partition("=")
        files[name] = value if equals else following
    named = [files[name] for name in _FILE_OPTIONS if name in files]
    return next(iter([*named, *usual_files()]), "")
