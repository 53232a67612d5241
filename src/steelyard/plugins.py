"""Plugins by name, from the entry points of all installed distributions.

Each package declares its :class:`EntryPointGroup` next to the contract of its plugins.
"""

import contextlib
import dataclasses
import functools
import importlib.metadata
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

from oslo_config import cfg
from stevedore import named

from steelyard import conf as options
from steelyard import errors
from steelyard.text import spelling

# Names of one kind share an ending, such as Filter; a lower value would suggest unrelated ones.
_LIKENESS = 0.8


@dataclasses.dataclass(frozen=True)
class EntryPointGroup:
    """An entry point group, and the contract of its plugins."""

    name: str
    kind: str
    """The word for one of its plugins in messages, such as "query builder"."""
    fault: Callable[[Any], str]
    """A function that returns how an object breaks the contract, or an empty text."""


def of_subclasses(name: str, base: type[Any], *, kind: str) -> EntryPointGroup:
    """Return a group whose plugins are subclasses of the base class."""

    def fault(found: Any) -> str:
        if isinstance(found, type) and issubclass(found, base):
            return ""
        return f"is not a subclass of {base.__qualname__}"

    return EntryPointGroup(name, kind, fault)


def of_protocol(name: str, protocol: type[Any], *, kind: str) -> EntryPointGroup:
    """Return a group whose plugins have the methods that the protocol declares."""
    methods = [method for method in vars(protocol) if not method.startswith("_")]

    def fault(found: Any) -> str:
        missing = [method for method in methods if not callable(getattr(found, method, None))]
        return f"has no method {', '.join(missing)}" if missing else ""

    return EntryPointGroup(name, kind, fault)


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return "; did you mean …?" with similar names of plugins, or an empty text."""
    return spelling.suggestion(name, names, _LIKENESS)


@dataclasses.dataclass(frozen=True, order=True)
class Installed:
    """A registered plugin, loaded or not, with the name and version of its distribution."""

    name: str
    distribution: str


def registered(group: str) -> importlib.metadata.EntryPoints:
    """Return the entry points in the group with this name, without loading them.

    A process reads them once for each search path.
    """
    return _read(group, tuple(sys.path))


@functools.lru_cache(maxsize=64)
def _read(group: str, _path: tuple[str, ...]) -> importlib.metadata.EntryPoints:
    return importlib.metadata.entry_points(group=group)


def installed(group: EntryPointGroup) -> list[Installed]:
    """Return the plugins registered in the entry point group, sorted by name."""
    return _with_distributions(registered(group.name))


def load_classes(group: EntryPointGroup, names: Sequence[str]) -> dict[str, type[Any]]:
    """Return the classes of the named plugins, in the order of the names.

    Raises PluginError if a plugin is missing, ambiguous or broken, and MissingExtra if it needs an
    extra of steelyard that is not installed.
    """
    points = registered(group.name)
    for name in names:
        _require_one(group, name, points)

    def fail(_: object, point: importlib.metadata.EntryPoint, error: BaseException) -> NoReturn:
        if isinstance(error, errors.MissingExtra):
            raise error  # its message is complete
        raise _broken(group, point.name, error) from error

    manager: named.NamedExtensionManager[Any] = named.NamedExtensionManager(
        group.name, list(names), name_order=True, on_load_failure_callback=fail
    )
    classes = {name: manager[name].plugin for name in names}
    for name, found in classes.items():
        fault = group.fault(found)
        if fault:
            raise _broken(group, name, TypeError(f"{found!r} {fault}"))
    return classes


def load(
    group: EntryPointGroup, names: Sequence[str], conf: cfg.ConfigOpts | None
) -> dict[str, Any]:
    """Return an instance of each named plugin, in the order of the names.

    Raises PluginError as ``load_classes`` does, and if a constructor fails. Errors about
    options are raised as they are, with the name of the option.
    """
    plugins = {}
    for name, found in load_classes(group, names).items():
        try:
            plugins[name] = _constructed(group, name, found, conf)
        except options.BAD_VALUE as error:
            # oslo.config's error is not chained, because the value in it may be secret.
            raise options.explained(cfg.CONF if conf is None else conf, error) from None
    return plugins


def load_with(group: EntryPointGroup, name: str, argument: Any) -> Any:
    """Return an instance of the named plugin, whose constructor gets the argument.

    Raises PluginError as ``load_classes`` does, and if the constructor fails. Errors of steelyard
    are raised as they are.
    """
    return _constructed(group, name, load_classes(group, [name])[name], argument)


def _constructed(group: EntryPointGroup, name: str, found: type[Any], argument: Any) -> Any:
    try:
        return found(argument)
    except (errors.SteelyardError, cfg.Error):
        raise  # the message is complete, or names the option
    except Exception as error:  # a plugin's constructor can raise anything
        raise _broken(group, name, error) from error


@contextlib.contextmanager
def blamed(group: EntryPointGroup, name: str) -> Iterator[None]:
    """Raise a PluginError that names the plugin if the block fails.

    Errors of steelyard pass unchanged.
    """
    try:
        yield
    except errors.SteelyardError:
        raise  # its message is complete
    except Exception as error:  # a plugin can raise anything
        raise errors.PluginError(
            f"the {group.kind} {name!r} failed: {type(error).__name__}: {error}"
        ) from error


def _with_distributions(points: importlib.metadata.EntryPoints) -> list[Installed]:
    # Each access to the metadata of a distribution parses it, which is slow.
    distributions = {id(point.dist): point.dist for point in points}
    texts = {key: _distribution(each) for key, each in distributions.items()}
    return sorted({Installed(point.name, texts[id(point.dist)]) for point in points})


def _distribution(found: importlib.metadata.Distribution | None) -> str:
    if found is None:
        return "unknown distribution"
    metadata = found.metadata
    return f"{metadata['Name']} {metadata['Version']}"


def _require_one(group: EntryPointGroup, name: str, points: importlib.metadata.EntryPoints) -> None:
    providers = points.select(name=name)
    kind = group.kind
    if not providers:
        present = _with_distributions(points)
        meant = suggestion(name, points.names)
        raise errors.PluginError(
            f"no {kind} {name!r}", f"installed: {_listing(present)}{meant}", name
        )
    # A distribution that is on the path twice provides one plugin.
    if len(providers) > 1 and len(different := _with_distributions(providers)) > 1:
        both = " and ".join(plugin.distribution for plugin in different)
        raise errors.PluginError(
            f"the {kind} {name!r} is provided by {both}; uninstall one of them", text=name
        )


def _broken(group: EntryPointGroup, name: str, error: BaseException) -> errors.PluginError:
    present = installed(group)
    (plugin,) = (plugin for plugin in present if plugin.name == name)
    what = traceback.format_exception_only(error)[-1].strip()
    return errors.PluginError(
        f"the {group.kind} {name!r} of {plugin.distribution} cannot be loaded: {what}",
        f"installed: {_listing(present)}",
    )


def _listing(present: list[Installed]) -> str:
    if not present:
        return "none; install steelyard instead of adding it to PYTHONPATH"
    return ", ".join(f"{plugin.name} ({plugin.distribution})" for plugin in present)
