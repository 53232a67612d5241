"""The permissions of configuration files with credentials."""

import os
import stat
from collections.abc import Collection, Iterator
from typing import Any

from oslo_config import cfg

from steelyard import errors
from steelyard.conf.sources import files


def check_files_with(conf: cfg.ConfigOpts | None, group: str, names: Collection[str]) -> None:
    """Raise BadRequest if all users can read or change a file that sets one of the options.

    None stands for the global configuration.
    """
    for path in insecure_files_with(conf, group, names):
        raise errors.BadRequest(
            f"insecure configuration file {path!r}: it contains credentials, and all users can "
            f"read or change it; run 'chmod o-rw {path}'"
        )


def insecure_files_with(
    conf: cfg.ConfigOpts | None, group: str, names: Collection[str]
) -> Iterator[str]:
    """Yield the files that set one of the options, and that all users can read or change.

    None stands for the global configuration.
    """
    for path in _files_with(cfg.CONF if conf is None else conf, group, names):
        if os.stat(path).st_mode & (stat.S_IROTH | stat.S_IWOTH):
            yield path


def _files_with(conf: cfg.ConfigOpts, group: str, names: Collection[str]) -> Iterator[str]:
    """Yield all files that set one of the options, even if a later file overrides them."""
    for path in files(conf):
        sections: dict[str, dict[str, Any]] = {}
        cfg.ConfigParser(path, sections).parse()
        if any(
            section.lower() == group and not values.keys().isdisjoint(names)
            for section, values in sections.items()
        ):
            yield path
