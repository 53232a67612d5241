"""Plugins as subclasses of Nova's own base classes."""

import functools
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from nova.scheduler import filters, weights
from oslo_config import cfg
from oslo_log import log as logging

from steelyard import conf as options
from steelyard.attributes import read
from steelyard.filters.base import Filter
from steelyard.filters.trial import TrialMode
from steelyard.groups import Policy, multiplier_option
from steelyard.weighers.base import Weigher

LOG = logging.getLogger(__name__)


class _FilterInNova:
    """A mixin for filters that adds trial mode and handles rebuilds.

    Unless the filter runs on rebuilds, every host passes for a rebuild: a server must be rebuilt
    even on a host that the filter would reject today. Nova's own code for rebuilds does not run,
    because ``filter_all`` is overridden.
    """

    RUN_ON_REBUILD: bool

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        super().__init__(conf)  # type: ignore[call-arg]  # the plugin's
        self.__trial_mode = TrialMode(conf)  # private, so that no plugin has the same name

    def filter_all(self, hosts: Iterable[Any], request: object) -> Iterator[Any]:
        """Return the hosts that pass."""
        _warn_of_unknown_options()
        if not self.RUN_ON_REBUILD and is_rebuild(request):
            return iter(hosts)
        hosts = hosts if isinstance(hosts, Sequence) else list(hosts)
        plugin = cast(Filter, self)
        return self.__trial_mode.apply(type(self).__name__, plugin, hosts, request).passed()

    def host_passes(self, host: object, request: object) -> bool:
        """Return whether the host passes."""
        return any(True for _ in self.filter_all([host], request))


class _WeigherInNova:
    """A mixin for weighers that warns if a multiplier of 0 disables a soft policy.

    Nova's conductor accepts groups with the policy as long as a weigher of that name is listed.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        policy = getattr(self, "policy", None)
        # The plugin that the adapter mixes in has the multiplier.
        if isinstance(policy, Policy) and self.multiplier() == 0:  # type: ignore[attr-defined]
            LOG.warning(
                "%(weigher)s has no effect, because [steelyard] %(option)s is 0: servers of groups "
                "with the policy %(policy)r are placed without regard to their group",
                {
                    "weigher": type(self).__name__,
                    "option": multiplier_option(policy),
                    "policy": policy.value,
                },
            )

    def weigh_objects(self, *args: Any) -> Any:
        _warn_of_unknown_options()
        return super().weigh_objects(*args)  # type: ignore[misc]  # the plugin's


@functools.cache
def _warn_of_unknown_options() -> None:
    """Warn of unknown options, once.

    Call this at the first request: Nova has then constructed all plugins, which register options.
    """
    options.warn_of_unknown(cfg.CONF)


def is_rebuild(request: object) -> bool:
    """Return whether the request is for a rebuild of a server on its host."""
    hints = read(request, "scheduler_hints") or {}
    return bool(hints.get("_nova_check_type") == ["rebuild"])


def adapt_filter(name: str, plugin: type[Filter]) -> type[Any]:
    """Return the filter as a subclass of Nova's base class, under its registered name."""
    return _adapted(name, plugin.__doc__, (_FilterInNova, plugin, filters.BaseHostFilter))


def adapt_weigher(name: str, plugin: type[Weigher]) -> type[Any]:
    """Return the weigher as a subclass of Nova's base class, under its registered name."""
    return _adapted(name, plugin.__doc__, (_WeigherInNova, plugin, weights.BaseHostWeigher))


@functools.cache
def _adapted(name: str, doc: str | None, bases: tuple[type[Any], ...]) -> type[Any]:
    """Return the adapted class, the same one for each call with the same plugin."""
    return types.new_class(
        name, bases, exec_body=lambda body: body.update(__module__="steelyard.nova", __doc__=doc)
    )


@functools.cache
def names_of_nova() -> frozenset[str]:
    """Return the class names of Nova's own filters."""
    return frozenset(cls.__name__ for cls in filters.all_filters())
