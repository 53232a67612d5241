"""The contract of filters.

Hosts and requests are whatever the scheduler has. The protocols name the attributes that the
filters here read, all of them through :mod:`steelyard.attributes`: one that is missing, None or
not loaded counts as "none".
"""

import abc
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import ClassVar, Protocol, TypeVar

from oslo_config import cfg

from steelyard.verdict import Verdict


class Aggregate(Protocol):
    """A group of hosts with something to say about them."""

    @property
    def name(self) -> str: ...

    @property
    def metadata(self) -> Mapping[str, str]: ...


class Host(Protocol):
    """A candidate."""

    @property
    def host(self) -> str:
        """The name."""

    @property
    def aggregates(self) -> Iterable[Aggregate]: ...

    @property
    def instances(self) -> Mapping[str, object]:
        """The servers on the host, by UUID."""


class Flavor(Protocol):
    @property
    def extra_specs(self) -> Mapping[str, str]: ...


class InstanceGroup(Protocol):
    """A server group."""

    @property
    def policy(self) -> str: ...

    @property
    def rules(self) -> Mapping[str, int]: ...

    @property
    def members(self) -> Collection[str]:
        """The UUIDs of the group's servers."""

    @property
    def hosts(self) -> Collection[str]:
        """The names of the hosts that have one of them."""


class Request(Protocol):
    @property
    def flavor(self) -> Flavor: ...

    @property
    def instance_uuid(self) -> str:
        """The server that is being placed."""

    @property
    def instance_group(self) -> InstanceGroup | None: ...


# A scheduler passes its own types, and gets back the hosts it passed.
HostT = TypeVar("HostT")


class Filter(abc.ABC):
    """Derive from this and write ``examine``; everything else follows from it."""

    run_filter_once_per_request: ClassVar[bool] = False
    """Whether the answer for one server of a request holds for all of them."""

    RUN_ON_REBUILD: ClassVar[bool] = False
    """Whether Nova should ask this filter also when a server is rebuilt where it is."""

    in_nova: ClassVar[bool] = True
    """Whether the filter makes sense inside Nova."""

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:  # noqa: B027  (a hook)
        """Reads all options, so that a bad value is found before the first request."""

    @abc.abstractmethod
    def examine(self, host: object, request: object) -> Verdict:
        """Whether the host may take the request, and if not why."""

    def host_passes(self, host: object, request: object) -> bool:
        return self.examine(host, request).passed

    def rejections(self, host: object, request: object) -> Iterator[Verdict]:
        """Everything for which the host is rejected; ``examine`` gives the first of it."""
        verdict = self.examine(host, request)
        if not verdict.passed:
            yield verdict

    def filter_all(self, hosts: Iterable[HostT], request: object) -> Iterator[HostT]:
        """The hosts that pass, lazily and in their order."""
        return (host for host in hosts if self.host_passes(host, request))
