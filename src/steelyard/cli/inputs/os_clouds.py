"""The option ``--os-cloud``, which names a cloud in clouds.yaml."""

from typing import TYPE_CHECKING

from steelyard import extras

if TYPE_CHECKING:
    from steelyard.cli.inputs.os_connection import Connection

MODEL = "placement"
"""The consumer model for the Placement of such a cloud."""


def connect(cloud: str) -> "Connection":
    """Return a connection to the named cloud."""
    with extras.required("placement", "a connection to a live cloud"):
        from steelyard.cli.inputs.os_connection import Connection  # noqa: PLC0415  (an extra)
    return Connection(cloud)
