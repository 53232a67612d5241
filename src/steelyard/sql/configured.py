"""The URL of a database, from the configuration or the command line."""

import sqlalchemy as sa
from oslo_config import cfg

from steelyard import conf as options
from steelyard import errors


def database_url(conf: cfg.ConfigOpts | None, group: str, given: str | None = None) -> sa.URL:
    """Return the given URL, or by default the option ``connection`` of the group.

    Raises BadRequest if there is none or it is invalid, or if other users of this machine could
    read a password in it.
    """
    if given is not None:
        url = _parsed(given, group)
        if _names_password(url):
            raise errors.BadRequest(
                "cannot use a password on the command line: all users of this machine could read "
                f"it; set connection in [{group}] of a configuration file"
            )
        return url
    configured = options.Values(cfg.CONF if conf is None else conf, group).connection
    if configured is None:
        raise errors.BadRequest(
            f"no database configured: set connection in [{group}] of a configuration file"
        )
    url = _parsed(configured, group)
    if _names_password(url):
        options.check_files_with(conf, group, ["connection"])
    return url


def _parsed(text: str, group: str) -> sa.URL:
    """Return the parsed URL; errors do not quote it, because it may contain a password."""
    try:
        return sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):  # ValueError is about the port
        raise errors.BadRequest(
            f"invalid database URL on the command line or in connection of [{group}]: expected one "
            f"such as sqlite:////var/lib/steelyard/steelyard.db, with %40, %2F and %3A for @, / "
            f"and : in a password"
        ) from None


def has_password(text: str | None) -> bool:
    """Return whether the text is a valid URL with a password."""
    try:
        return text is not None and _names_password(sa.make_url(text))
    except (sa.exc.ArgumentError, ValueError):  # ValueError is about the port
        return False


def _names_password(url: sa.URL) -> bool:
    return url.password is not None or any("pass" in key.lower() for key in url.query)
