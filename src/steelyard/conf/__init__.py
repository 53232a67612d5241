"""All options of steelyard: ``[steelyard]``, ``[steelyard_consumers]`` and ``[steelyard_tags]``.

Importing registers nothing. Plugins register the options when they are constructed, on the
configuration that they are given or on oslo.config's global one.
"""

from typing import Any

from oslo_config import cfg

from steelyard.conf.consumers import CONSUMERS_GROUP, CONSUMERS_OPTS
from steelyard.conf.scheduling import GROUP, OPTS, REMOVED_OPTS
from steelyard.conf.secret_files import check_files_with, insecure_files_with
from steelyard.conf.sources import (
    BAD_VALUE,
    InvalidOption,
    Setting,
    explained,
    files,
    settings,
    unknown,
    warn_of_typos,
    warn_of_unknown,
)
from steelyard.conf.tags import TAGS_GROUP, TAGS_OPTS
from steelyard.conf.values import Latest, Values

__all__ = [
    "BAD_VALUE",
    "CONSUMERS_GROUP",
    "GROUP",
    "REMOVED_OPTS",
    "TAGS_GROUP",
    "InvalidOption",
    "Latest",
    "Setting",
    "Values",
    "check_files_with",
    "explained",
    "files",
    "insecure_files_with",
    "list_opts",
    "register",
    "register_consumers",
    "register_tags",
    "settings",
    "unknown",
    "warn_of_typos",
    "warn_of_unknown",
]


def register(conf: cfg.ConfigOpts | None) -> Any:
    """Register the options of ``[steelyard]`` and return their values.

    None stands for the global configuration.
    """
    return _registered(conf, GROUP, [*OPTS, *REMOVED_OPTS])


def register_consumers(conf: cfg.ConfigOpts | None) -> Any:
    """Register the options of ``[steelyard_consumers]`` and return their values.

    None stands for the global configuration.
    """
    return _registered(conf, CONSUMERS_GROUP, CONSUMERS_OPTS)


def register_tags(conf: cfg.ConfigOpts | None) -> Any:
    """Register the options of ``[steelyard_tags]`` and return their values.

    None stands for the global configuration.
    """
    return _registered(conf, TAGS_GROUP, TAGS_OPTS)


def _registered(conf: cfg.ConfigOpts | None, group: str, opts: list[cfg.Opt]) -> Values:
    conf = cfg.CONF if conf is None else conf
    conf.register_opts(opts, group=group)
    return Values(conf, group)


def list_opts() -> list[tuple[str, list[cfg.Opt]]]:
    """Return all options by group, for oslo-config-generator and the documentation."""
    return [(GROUP, OPTS), (CONSUMERS_GROUP, CONSUMERS_OPTS), (TAGS_GROUP, TAGS_OPTS)]
