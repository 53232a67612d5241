"""Filters and weighers for Nova's scheduler.

Name the two functions in nova.conf::

    [filter_scheduler]
    available_filters = nova.scheduler.filters.all_filters
    available_filters = steelyard.nova.all_filters
    weight_classes = nova.scheduler.weights.all_weighers, steelyard.nova.all_weighers

or single classes by their path, such as ``steelyard.nova.AggregateInstanceTypeFilter``. Plugins
of other distributions have such paths too.
"""

from typing import Any

from oslo_config import cfg
from oslo_log import log as logging

from steelyard import conf as options
from steelyard import errors, plugins
from steelyard.filters.base import FILTERS
from steelyard.nova.adapters import adapt_filter, adapt_weigher, names_of_nova
from steelyard.weighers.base import WEIGHERS

__all__ = [
    "AggregateInstanceTypeFilter",
    "ServerGroupSoftAffinityWeigher",
    "ServerGroupSoftAntiAffinityWeigher",
    "all_filters",
    "all_weighers",
]

LOG = logging.getLogger(__name__)


def all_filters() -> list[type[Any]]:
    """Return every installed filter that can be used inside Nova, adapted to it.

    A filter that cannot be loaded is logged and left out.
    """
    found = []
    for plugin in plugins.installed(FILTERS):
        cls = _loaded(FILTERS, plugin.name)
        if cls is not None and cls.in_nova:
            found.append(_filter(plugin.name, cls))
    return found


def all_weighers() -> list[type[Any]]:
    """Return the weighers that the option ``[steelyard] nova_weighers`` names, adapted to Nova.

    Nova uses every weigher that it is offered, so other installed weighers are left out. A named
    weigher that cannot be loaded, or cannot be used inside Nova, is logged and left out.
    """
    found = []
    for name in dict.fromkeys(options.register(cfg.CONF).nova_weighers):
        cls = _loaded(WEIGHERS, name)
        if cls is not None and not cls.in_nova:
            LOG.warning(
                "Weigher %r of [steelyard] nova_weighers left out: it cannot be used inside Nova",
                name,
            )
        elif cls is not None:
            found.append(adapt_weigher(name, cls))
    return found


def __getattr__(name: str) -> type[Any]:
    """Return the adapted plugin of that name, for configurations that list single classes."""
    if not name.startswith("_"):
        for group, adapt in ((FILTERS, _filter), (WEIGHERS, adapt_weigher)):
            if any(plugin.name == name for plugin in plugins.installed(group)):
                return adapt(name, plugins.load_classes(group, [name])[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _filter(name: str, cls: type[Any]) -> type[Any]:
    if name in names_of_nova():
        # Nova keys filters by class name: one of the two would silently replace the other.
        raise errors.PluginError(
            f"the filter {name!r} has the name of one of Nova's own filters; rename it, or "
            f"uninstall the distribution that provides it",
            text=name,
        )
    return adapt_filter(name, cls)


def _loaded(group: plugins.EntryPointGroup, name: str) -> type[Any] | None:
    """Return the plugin's class; log the error and return None if it cannot be loaded."""
    try:
        return plugins.load_classes(group, [name])[name]
    except errors.PluginError as error:
        LOG.error("Plugin left out: %s", error)
        return None
