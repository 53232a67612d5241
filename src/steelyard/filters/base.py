"""The contract of filters.

Hosts and requests are the scheduler's own objects. The protocols, such as ``HostLike``, list the
attributes that steelyard's filters read. They are read through :mod:`steelyard.attributes`, so an
attribute may be missing, None or not loaded.
"""

import abc
import itertools
import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import ClassVar, NamedTuple, Protocol, TypeVar, final

from oslo_config import cfg

from steelyard import plugins
from steelyard.verdict import PASSED, Verdict

__all__ = ["Filter", "ServerLimit"]


class AggregateLike(Protocol):
    """A group of hosts, with metadata about them."""

    @property
    def name(self) -> str: ...

    @property
    def metadata(self) -> Mapping[str, str]: ...


class HostLike(Protocol):
    """A host that a filter judges."""

    @property
    def host(self) -> str:
        """The host's name."""

    @property
    def aggregates(self) -> Iterable[AggregateLike]: ...

    @property
    def instances(self) -> Mapping[str, object]:
        """The servers on the host, by UUID."""


class FlavorLike(Protocol):
    """The flavor of the servers that are requested."""

    @property
    def extra_specs(self) -> Mapping[str, str]: ...


class ServerGroupLike(Protocol):
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
        """The names of the hosts that have at least one of these servers."""


class RequestLike(Protocol):
    """A request for servers, while one of them is being placed."""

    @property
    def flavor(self) -> FlavorLike: ...

    @property
    def instance_uuid(self) -> str:
        """The UUID of the server that is being placed."""

    @property
    def instance_group(self) -> ServerGroupLike | None: ...


# The type of the scheduler's hosts.
HostT = TypeVar("HostT")

SILENT = Verdict.rejected("no reason given")
"""The verdict on a host that ``passing`` rejects, but ``judge`` does not: a bug in the filter."""

# Unlike the truth value, the attribute makes a filter fail that yields text instead of verdicts.
_has_passed = operator.attrgetter("passed")

Rejections = Callable[[object], Iterable[Verdict]]
"""A function that yields the rejections of a host; nothing if it passes."""


class ServerLimit(NamedTuple):
    """The number of additional servers that a filter accepts on a host."""

    servers: int
    verdict: Verdict
    """The rejection of the next server, or PASSED if the filter accepts that one, too."""


class Filter(abc.ABC):
    """The base class of filters; derive from it and write ``judge``."""

    run_filter_once_per_request: ClassVar[bool] = False
    """Whether the answer for one server of a request is valid for all of them."""

    host_local: ClassVar[bool] = False
    """Whether the answer depends only on the host and the request.

    The request's server group and its members are part of the request; the UUID of the server that
    is being placed is not. Schedulers may keep such an answer until the host or the group changes.
    """

    RUN_ON_REBUILD: ClassVar[bool] = False
    """Whether Nova also applies this filter when a server is rebuilt on its host."""

    in_nova: ClassVar[bool] = True
    """Whether the filter can be used inside Nova."""

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:  # noqa: B027  (a hook)
        """Read all options, so that a bad value stops the service at start."""

    def by_kind(self, request: object) -> bool:
        """Return whether the answers depend only on the flavor and the kinds of the hosts.

        Hosts of one kind differ at most in their name, their UUID and their servers. Schedulers
        then ask about one host of each kind, and keep the answer for other requests with the same
        flavor. Placing servers must not change the answers of a filter with
        ``run_filter_once_per_request``.
        """
        return False

    @abc.abstractmethod
    def judge(self, request: object) -> Rejections:
        """Return a function that yields the rejections of a host for this request.

        Read the request here: this method is called once for many hosts. The function yields one
        rejection for each reason, the most important first, and nothing for a host that passes.
        """

    def passing(self, hosts: Sequence[object], request: object) -> Sequence[bool]:
        """Return whether each host passes.

        Override this method if many hosts can be judged faster at once. The answers must agree with
        ``judge``.
        """
        rejections = self.judge(request)
        return [all(map(_has_passed, rejections(host))) for host in hosts]

    def server_limits(
        self, hosts: Sequence[object], request: object, most: int
    ) -> Sequence[ServerLimit] | None:
        """Return how many servers of the request's flavor each host accepts, up to ``most``.

        Each server that is accepted counts as running on the host, and as a member of the request's
        group. Override this method if the number can be computed. The answers must agree with
        ``judge``. By default, the result is None: one server after the other must be tried.
        """
        return None

    @final
    def rejections(self, host: object, request: object) -> Iterator[Verdict]:
        """Yield the rejections of the host; nothing if it passes."""
        return _rejected(self.judge(request)(host))

    @final
    def examine(self, host: object, request: object) -> Verdict:
        """Return the verdict on the host; a rejection has the first reason."""
        return next(self.rejections(host, request), PASSED)

    @final
    def rejections_all(
        self, hosts: Iterable[object], request: object
    ) -> Iterator[Iterator[Verdict]]:
        """Yield the rejections of each host; the request is read once."""
        rejections = self.judge(request)
        return (_rejected(rejections(host)) for host in hosts)

    @final
    def first_rejections(self, hosts: Iterable[object], request: object) -> Iterator[Verdict]:
        """Yield the first rejection of each host, for hosts that ``passing`` rejects."""
        return (next(found, SILENT) for found in self.rejections_all(hosts, request))

    @final
    def host_passes(self, host: object, request: object) -> bool:
        """Return whether the host passes."""
        return all(map(_has_passed, self.judge(request)(host)))

    @final
    def filter_all(self, hosts: Iterable[HostT], request: object) -> Iterator[HostT]:
        """Return the hosts that pass, in their order.

        A sequence is judged at once by ``passing``, which may be much faster. Any other iterable is
        read lazily, host by host.
        """
        if isinstance(hosts, Sequence):
            return itertools.compress(hosts, answers(self, hosts, request))
        rejections = self.judge(request)
        return (host for host in hosts if all(map(_has_passed, rejections(host))))


def answers(filter_: Filter, hosts: Sequence[object], request: object) -> Sequence[bool]:
    """Return the answers of the filter's ``passing``.

    Raises ValueError unless there is one answer for each host.
    """
    found = filter_.passing(hosts, request)
    if not isinstance(found, Collection) or len(found) != len(hosts):
        # With fewer answers than hosts, or an exhausted iterator, hosts would get lost.
        raise ValueError(
            f"{type(filter_).__name__}.passing must return a sequence with an answer for each of "
            f"the {len(hosts)} hosts"
        )
    return found


def _rejected(verdicts: Iterable[Verdict]) -> Iterator[Verdict]:
    """Return the verdicts that are rejections."""
    return itertools.filterfalse(_has_passed, verdicts)


FILTERS = plugins.of_subclasses("steelyard.filters", Filter, kind="filter")
