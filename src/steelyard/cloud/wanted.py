"""A server as its user requested it, as far as it is known."""

import dataclasses
import enum
from collections.abc import Mapping

from steelyard.cloud.values import Flavor
from steelyard.groups import ServerGroup


class Source(enum.StrEnum):
    """The sources of facts about a request."""

    RECORD = "read from the server's record"
    """As it was when the server was requested."""
    NOW = "observed now"
    """As it is in the live cloud; it may have changed since the request."""
    FILE = "read from the cloud file"
    OPTION = "given as an option"
    ASSUMED = "assumed"


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class WantedServer:
    """The request for a server.

    An empty text means that nothing is requested, or that the value is not known.
    """

    flavor: Flavor
    """The disk of the flavor does not include a root disk that is on a volume."""
    image_properties: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """The properties of the image, including those that require traits."""
    disk_format: str = ""
    from_volume: bool = False
    project: str = ""
    availability_zone: str = ""
    host: str = ""
    """The name of the host that was requested."""
    scheduler_hints: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
    group: ServerGroup | None = None
    """The group without the servers that are requested."""
    count: int = 1
    """The number of servers that were requested together."""
    sources: Mapping[str, Source] = dataclasses.field(default_factory=dict)
    """The sources of the other fields, by their names, and of ``image traits``."""
