"""steelyard's filters and weighers, as Nova's scheduler wants them.

Name the two functions in nova.conf::

    [filter_scheduler]
    available_filters = nova.scheduler.filters.all_filters
    available_filters = steelyard.nova.all_filters
    weight_classes = nova.scheduler.weights.all_weighers, steelyard.nova.all_weighers

or single classes by their path, such as ``steelyard.nova.AggregateInstanceTypeFilter``. Plugins
of other distributions are there by their names too.
"""

from typing import Any

from oslo_config import cfg
from oslo_log import log as logging

from steelyard import conf as options
from steelyard import errors, plugins
from steelyard.nova.adapters import adapt_filter, adapt_weigher, names_of_nova

LOG = logging.getLogger(__name__)


def all_filters() -> list[type[Any]]:
    """Every installed filter that makes sense inside Nova, adapted to it."""
    found = []
    for plugin in plugins.installed(plugins.FILTERS):
        cls = _usable(plugins.FILTERS, plugin.name)
        if cls is not None:
            found.append(_filter(plugin.name, cls))
    return found


def all_weighers() -> list[type[Any]]:
    """The weighers that the option ``[steelyard] nova_weighers`` names, adapted to Nova.

    Nova uses every weigher that it is given, so this is never simply all that are installed.
    """
    found = []
    for name in dict.fromkeys(options.register(cfg.CONF).nova_weighers):
        cls = _usable(plugins.WEIGHERS, name)
        if cls is None:
            LOG.warning("[steelyard] nova_weighers: %s is left out", name)
        else:
            found.append(adapt_weigher(name, cls))
    return found


def __getattr__(name: str) -> type[Any]:
    """The adapted plugin of that name, for configurations that name single classes."""
    if not name.startswith("_"):
        for group, adapt in ((plugins.FILTERS, _filter), (plugins.WEIGHERS, adapt_weigher)):
            if any(plugin.name == name for plugin in plugins.installed(group)):
                return adapt(name, plugins.load_classes(group, [name])[name])
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def _filter(name: str, cls: type[Any]) -> type[Any]:
    if name in names_of_nova():
        # Nova keys filters by class name: one of the two would silently take the other's place.
        raise errors.PluginError(
            f"the filter {name!r} has the name of one of Nova's own; Nova tells filters apart by "
            f"their names only: rename it, or uninstall the distribution that provides it"
        )
    return adapt_filter(name, cls)


def _usable(group: str, name: str) -> type[Any] | None:
    """The plugin's class, if it loads and makes sense inside Nova."""
    try:
        cls = plugins.load_classes(group, [name])[name]
    except errors.PluginError as error:
        LOG.error("Left out: %s", error)
        return None
    return cls if cls.in_nova else None
