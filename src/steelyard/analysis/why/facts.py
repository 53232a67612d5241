"""Facts on a server that was not placed, and on the cloud around it."""

import dataclasses
from collections.abc import Mapping, Sequence

from steelyard.cloud import Aggregate
from steelyard.cloud.wanted import WantedServer


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class GivenRequest:
    """The options that describe a request, or supply what the record of a server does not show.

    An option that is not given is empty.
    """

    flavor: str = ""
    """The name or the id of a flavor."""
    image: str = ""
    """The name or the UUID of an image."""
    availability_zone: str = ""
    host: str = ""
    group: str = ""
    """The name or the UUID of a server group."""
    project: str = ""
    """The id of a project."""
    boot_from_volume: bool = False
    """Whether the root disk is on a volume, so that it does not use the disk of the host."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerEvent:
    """One event of an action on the server, as Nova recorded it."""

    action: str
    event: str
    """Empty for the action itself."""
    at: str
    result: str = ""
    host: str = ""
    detail: str = ""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class ServerRecord:
    """Nova's record of a server."""

    uuid: str
    name: str
    status: str
    host: str = ""
    """The compute service that the server is on; empty if it is on none.

    If Nova hides the name, this is the id that Nova shows to the project instead.
    """
    fault: str = ""
    failed_at: str = ""
    last_action: str = ""
    """The newest action, such as ``create`` or ``resize``; empty if it is not known."""
    events: Sequence[ServerEvent] = ()


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class KnownHost:
    """A host of the cloud, apart from what Placement knows of it."""

    name: str
    uuid: str
    """The UUID of its resource provider."""
    node_of: str = ""
    """The name of the compute service; empty if it is the name of the host.

    Several hosts are nodes of one service, as with Ironic.
    """
    out_of_service: str = ""
    hypervisor_type: str = ""
    architecture: str = ""

    @property
    def service(self) -> str:
        """The name of the compute service, by which Nova compares hosts."""
        return self.node_of or self.name

    def is_named(self, name: str) -> bool:
        """Return whether a request for this host or service name may select the host."""
        return name in (self.name, self.service)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything that an answer is based on, apart from Placement.

    ``hosts`` and ``aggregates`` are None if they cannot be read.
    """

    wanted: WantedServer
    record: ServerRecord | None = None
    """None for a request that was never made."""
    hosts: Sequence[KnownHost] | None = None
    aggregates: Sequence[Aggregate] | None = None
    server_hosts: Mapping[str, str] = dataclasses.field(default_factory=dict)
    """The compute services of the servers that the request refers to, by UUID.

    These are the servers of its group, and those of the hints ``same_host`` and ``different_host``.
    The name is empty for a server on no host, and missing if it cannot be read.
    """
    group_known: bool = True
    """Whether it is known in which group the server is requested, if in any."""
    nova_microversion: str = ""
    """The newest microversion of the Nova; empty if it is not known."""
    assumptions: Sequence[str] = ()
    not_known: Sequence[str] = ()
