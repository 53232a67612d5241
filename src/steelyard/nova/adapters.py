"""Plugins as subclasses of Nova's own base classes."""

import functools
import types
from collections.abc import Iterable, Iterator
from typing import Any

from nova.scheduler import filters, weights
from oslo_log import log as logging

from steelyard.attributes import read
from steelyard.filters.base import Filter
from steelyard.groups import Policy, multiplier_option
from steelyard.weighers.base import Weigher

LOG = logging.getLogger(__name__)


class _RebuildAware:
    """Lets a rebuild pass where the filter does not judge rebuilds.

    Nova does so in a method that is by-passed where ``filter_all`` is overridden. Without it, a
    server on a host that the filter would reject today could not be rebuilt.
    """

    RUN_ON_REBUILD = False

    def filter_all(self, hosts: Iterable[Any], request: object) -> Iterable[Any]:
        if not self.RUN_ON_REBUILD and is_rebuild(request):
            return hosts
        passing: Iterator[Any] = super().filter_all(hosts, request)  # type: ignore[misc]  # a plugin's
        return passing


class _Effective:
    """Warns if the configuration takes the effect of a soft policy's weigher away.

    Nova's conductor accepts groups with the policy as long as a weigher of that name is listed.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        policy = getattr(self, "policy", None)
        if isinstance(policy, Policy) and self.multiplier() == 0:  # type: ignore[attr-defined]
            LOG.warning(
                "%(weigher)s has no effect, because [steelyard] %(option)s is 0: servers of groups "
                "with the policy %(policy)r are placed like any other",
                {
                    "weigher": type(self).__name__,
                    "option": multiplier_option(policy),
                    "policy": policy.value,
                },
            )


def is_rebuild(request: object) -> bool:
    hints = read(request, "scheduler_hints") or {}
    return bool(hints.get("_nova_check_type") == ["rebuild"])


def adapt_filter(name: str, plugin: type[Filter]) -> type[Any]:
    """The filter as Nova wants it, under its registered name."""
    return _adapted(name, plugin.__doc__, (_RebuildAware, plugin, filters.BaseHostFilter))


def adapt_weigher(name: str, plugin: type[Weigher]) -> type[Any]:
    """The weigher as Nova wants it, under its registered name."""
    return _adapted(name, plugin.__doc__, (_Effective, plugin, weights.BaseHostWeigher))


@functools.cache
def _adapted(name: str, doc: str | None, bases: tuple[type[Any], ...]) -> type[Any]:
    """One class for each plugin, however often it is asked for."""
    return types.new_class(
        name, bases, exec_body=lambda body: body.update(__module__="steelyard.nova", __doc__=doc)
    )


@functools.cache
def names_of_nova() -> frozenset[str]:
    """The class names of Nova's own filters."""
    return frozenset(cls.__name__ for cls in filters.all_filters())
