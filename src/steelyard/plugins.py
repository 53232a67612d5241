"""Plugins by name, from the entry points of whatever distributions are installed."""

import contextlib
import dataclasses
import importlib.metadata
import traceback
from collections.abc import Iterator, Sequence
from typing import Any

from oslo_config import cfg
from stevedore import named

from steelyard import errors
from steelyard.filters.base import Filter
from steelyard.tags.backends.base import TagBackend
from steelyard.weighers.base import Weigher

FILTERS = "steelyard.filters"
WEIGHERS = "steelyard.weighers"
QUERY_BUILDERS = "steelyard.query_builders"
CONSUMER_MODELS = "steelyard.consumer_models"
TAG_BACKENDS = "steelyard.tag_backends"

_BASES: dict[str, type[Filter | Weigher | TagBackend]] = {
    FILTERS: Filter,
    WEIGHERS: Weigher,
    TAG_BACKENDS: TagBackend,
}
# What plugins of the other groups must have.
_METHODS = {
    QUERY_BUILDERS: ["from_flavor"],
    CONSUMER_MODELS: ["post_allocations", "get_allocations", "usages", "count"],
}


@dataclasses.dataclass(frozen=True, order=True)
class Installed:
    """A plugin as it is registered, not yet loaded."""

    group: str
    name: str
    distribution: str

    @property
    def kind(self) -> str:
        return _kind(self.group)


def installed(group: str) -> list[Installed]:
    """The plugins registered in the entry point group, by name."""
    return sorted(
        {
            Installed(group, point.name, _distribution(point))
            for point in importlib.metadata.entry_points(group=group)
        }
    )


def load_classes(group: str, names: Sequence[str]) -> dict[str, type[Any]]:
    """The classes of the named plugins, in the order of the names."""
    present = installed(group)
    for name in names:
        _require_one(group, name, present)
    failures: dict[str, BaseException] = {}
    manager: named.NamedExtensionManager[Any] = named.NamedExtensionManager(
        group,
        list(names),
        name_order=True,
        on_load_failure_callback=lambda _, point, error: failures.update({point.name: error}),
        on_missing_entrypoints_callback=lambda missing: None,  # they are among the failures
    )
    for name, error in failures.items():
        raise _broken(group, name, present, error) from error
    classes = {name: manager[name].plugin for name in names}
    for name, found in classes.items():
        fault = _fault(group, found)
        if fault:
            raise _broken(group, name, present, TypeError(f"{found!r} {fault}"))
    return classes


def load(group: str, names: Sequence[str], conf: cfg.ConfigOpts | None) -> dict[str, Any]:
    """The named plugins, ready for use, in the order of the names."""
    plugins = {}
    for name, found in load_classes(group, names).items():
        try:
            plugins[name] = found(conf)
        except (cfg.Error, errors.SteelyardError):
            raise  # a bad option: the message is about the option
        except Exception as error:  # a plugin's constructor can raise anything
            raise _broken(group, name, installed(group), error) from error
    return plugins


@contextlib.contextmanager
def blamed(kind: str, name: str) -> Iterator[None]:
    """Says whose fault it is when a plugin fails."""
    try:
        yield
    except errors.SteelyardError:
        raise  # it says what is wrong itself
    except Exception as error:  # a plugin can raise anything
        raise errors.PluginError(
            f"the {kind} {name!r} has failed: {type(error).__name__}: {error}"
        ) from error


def _kind(group: str) -> str:
    return group.rpartition(".")[2].removesuffix("s").replace("_", " ")


def _fault(group: str, found: Any) -> str:
    """What is missing for a plugin of the group."""
    if group in _METHODS:
        missing = [name for name in _METHODS[group] if not callable(getattr(found, name, None))]
        return f"has no {', '.join(missing)}" if missing else ""
    base = _BASES[group]
    if isinstance(found, type) and issubclass(found, base):
        return ""
    return f"is no subclass of {base.__qualname__}"


def _distribution(point: importlib.metadata.EntryPoint) -> str:
    return f"{point.dist.name} {point.dist.version}" if point.dist else "unknown distribution"


def _require_one(group: str, name: str, present: list[Installed]) -> None:
    providers = [plugin for plugin in present if plugin.name == name]
    kind = _kind(group)
    if not providers:
        raise errors.PluginError(f"there is no {kind} {name!r}; installed are {_listing(present)}")
    if len(providers) > 1:
        both = " and ".join(plugin.distribution for plugin in providers)
        raise errors.PluginError(
            f"the {kind} {name!r} is provided by {both}; uninstall one of them"
        )


def _broken(
    group: str, name: str, present: list[Installed], error: BaseException
) -> errors.PluginError:
    (plugin,) = (plugin for plugin in present if plugin.name == name)
    what = traceback.format_exception_only(error)[-1].strip()
    return errors.PluginError(
        f"the {plugin.kind} {name!r} of {plugin.distribution} cannot be loaded: {what}; "
        f"installed are {_listing(present)}"
    )


def _listing(present: list[Installed]) -> str:
    if not present:
        return "none at all: is steelyard itself installed, or only on the path?"
    return ", ".join(f"{plugin.name} ({plugin.distribution})" for plugin in present)
