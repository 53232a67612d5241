"""The fields of a server in a cloud file that say how it was requested."""

from typing import Any

from steelyard.cloud.files import entries
from steelyard.cloud.files.records import Field, RecordFields
from steelyard.cloud.files.syntax import Path
from steelyard.cloud.values import Server


def _hints(value: Any, path: Path) -> dict[str, tuple[str, ...]]:
    """Return the values of each scheduler hint; the file may have a text instead of a list."""
    return {
        name: tuple(
            entries.texts(hint, (*path, name))
            if isinstance(hint, list)
            else [entries.text(hint, (*path, name))]
        )
        for name, hint in entries.mapping(value, path).items()
    }


# In the order of the attributes after the group.
FIELDS: RecordFields = {
    "project": Field(entries.text, ""),
    "user": Field(entries.text, ""),
    "availability_zone": Field(entries.text, ""),
    "image_properties": Field(entries.text_mapping, {}),
    "scheduler_hints": Field(_hints, {}),
}


def describe(server: Server) -> dict[str, Any]:
    """Return the fields of the server that differ from the default."""
    found: dict[str, Any] = {}
    if server.project:
        found["project"] = server.project
    if server.user:
        found["user"] = server.user
    if server.availability_zone:
        found["availability_zone"] = server.availability_zone
    if server.image_properties:
        found["image_properties"] = dict(server.image_properties)
    if server.scheduler_hints:
        found["scheduler_hints"] = {
            name: values[0] if len(values) == 1 else list(values)
            for name, values in server.scheduler_hints.items()
        }
    return found
