"""The service of tags as the configuration describes it."""

import contextlib
import glob
import os
import stat
import urllib.parse
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import sqlalchemy as sa
from oslo_config import cfg

from steelyard import conf as options
from steelyard import errors, plugins
from steelyard.tags.backends.base import TagBackend
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.codec import encode
from steelyard.tags.names import Clashes, Prefixes
from steelyard.tags.service import TagService
from steelyard.tags.states import Instance, Kind, State, Status
from steelyard.tags.store import TagStore

# Instances that are read at once.
_AT_ONCE = 500


def service(conf: cfg.ConfigOpts | None = None, url: str | None = None) -> TagService:
    """Return the service, over the database at the URL or the configured one.

    The caller closes the service's store.
    """
    group = options.register_tags(conf)
    with _naming("user_prefix and system_prefix"):
        prefixes = Prefixes(group.user_prefix, group.system_prefix)
    with _naming("incompatible"):
        clashes = Clashes.parse(group.incompatible)
    with contextlib.ExitStack() as opened:
        tables = opened.enter_context(store(conf, url))
        if group.ganeti_password is not None:
            _check_files_with(conf, ["ganeti_password"])
        name = group.backend
        backend: TagBackend = plugins.load(plugins.TAG_BACKENDS, [name], conf)[name]
        # A database of another backend has no instances in memory.
        if isinstance(backend, MemoryBackend) and tables.backend() == backend.identity():
            _adopt(backend, tables)
        service = TagService(tables, backend, prefixes, clashes, group.give_up_after)
        opened.pop_all()  # the caller closes the store of a service that was made
    return service


def names_backend(conf: cfg.ConfigOpts | None = None) -> bool:
    """Return whether the configuration itself sets ``backend``, rather than its default."""
    options.register_tags(conf)
    found = (cfg.CONF if conf is None else conf).get_location("backend", options.TAGS_GROUP)
    return found is not None and found.location not in (
        cfg.Locations.opt_default,
        cfg.Locations.set_default,
    )


def store(conf: cfg.ConfigOpts | None = None, url: str | None = None) -> TagStore:
    """Return the store alone, in the database at the URL or in the configured one.

    The caller closes it.
    """
    return TagStore(_url(conf, options.register_tags(conf).connection, url))


def transport_url(conf: cfg.ConfigOpts | None = None) -> str | None:
    """The URL of the broker that is configured, if one is."""
    url: str | None = options.register_tags(conf).transport_url
    if url is None:
        return None
    with _naming("transport_url"):
        _check_transport(url)
    if "@" in url:
        _check_files_with(conf, ["transport_url"])
    return url


@contextlib.contextmanager
def _naming(option: str) -> Iterator[None]:
    """Says of what is wrong where it stands."""
    try:
        yield
    except errors.BadRequest as error:
        raise errors.BadRequest(f"{option} in [{options.TAGS_GROUP}]: {error}") from error


def _url(conf: cfg.ConfigOpts | None, configured: str | None, given: str | None) -> sa.URL:
    if given is not None:
        if _has_password(_parsed(given)):
            raise errors.BadRequest(
                "a password on the command line can be read by everybody on this machine: put the "
                f"URL into a file, as connection in [{options.TAGS_GROUP}]"
            )
        return _parsed(given)
    if configured is None:
        raise errors.BadRequest(
            f"no database is named: set connection in [{options.TAGS_GROUP}] of a configuration "
            f"file"
        )
    url = _parsed(configured)
    if _has_password(url):
        _check_files_with(conf, ["connection"])
    return url


def _parsed(text: str) -> sa.URL:
    """The URL; what is none is not repeated, for there may be a password in it."""
    try:
        return sa.make_url(text)
    except (sa.exc.ArgumentError, ValueError):  # the latter about the port
        raise errors.BadRequest(
            f"connection in [{options.TAGS_GROUP}], or what is given in its place, is no URL of a "
            f"database; write one such as sqlite:////var/lib/steelyard/tags.db, with %40, %2F and "
            f"%3A for @, / and : in a password"
        ) from None


def _check_transport(url: str) -> None:
    """Raises BadRequest if it is of no broker; and does not repeat it: there may be a password."""
    try:
        parts = urllib.parse.urlsplit(url)
        known = (
            parts.scheme in ("amqp", "amqps")
            and bool(parts.hostname)
            and parts.port != 0
            and not (parts.query or parts.fragment or ";" in url or "@" in parts.path)
        )
    except ValueError:  # about the port, and perhaps with what stands in its place
        known = False
    if not known:
        raise errors.BadRequest(
            "this is no URL of a broker; write one such as "
            "amqp://user:password@mq.example.org:5672/vhost, or amqps:// for TLS, with %40, %2F, "
            "%3A, %3B, %3F and %23 for @, /, :, ;, ? and # in a name or a password"
        )


def _has_password(url: sa.URL) -> bool:
    return url.password is not None or any("pass" in key.lower() for key in url.query)


def _check_files_with(conf: cfg.ConfigOpts | None, names: Collection[str]) -> None:
    """Raises BadRequest if everybody can read a file that sets one of the options."""
    check_permissions(_files_with(cfg.CONF if conf is None else conf, names))


def _files_with(conf: cfg.ConfigOpts, names: Collection[str]) -> Iterator[str]:
    """The files that set one of the options, whichever of them counts in the end."""
    paths = [*(getattr(conf, "config_file", None) or ()), *_files_in(conf)]
    for path in map(os.path.expanduser, paths):
        sections: dict[str, dict[str, Any]] = {}
        cfg.ConfigParser(path, sections).parse()
        if any(
            section.lower() == options.TAGS_GROUP and not said.keys().isdisjoint(names)
            for section, said in sections.items()
        ):
            yield path


def _files_in(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Those in directories of configuration."""
    for directory in dict.fromkeys([*conf.config_dirs, *(getattr(conf, "config_dir", None) or ())]):
        yield from sorted(glob.glob(os.path.join(os.path.expanduser(directory), "*.conf")))


def check_permissions(paths: Iterable[str]) -> None:
    """Raises BadRequest if a file that has credentials can be read by everybody."""
    for path in paths:
        if os.stat(path).st_mode & (stat.S_IROTH | stat.S_IWOTH):
            raise errors.BadRequest(
                f"{path} has credentials in it, and everybody can read or change it: chmod o-rw "
                f"{path}"
            )


def _adopt(backend: MemoryBackend, tables: TagStore) -> None:
    """Gives a backend that is new what it would have if it were not, instance by instance."""
    last = ""
    while snapshots := tables.snapshots(_AT_ONCE, after=last):
        for each in snapshots:
            backend.adopt(_there(each.instance, each.state), _last(each.state))
        last = snapshots[-1].instance.id


def _there(instance: Instance, state: State) -> Mapping[str, Iterable[str]]:
    """Of what was under way nothing has been done; so an instance that was being created is not."""
    if any(each.kind is Kind.CREATE for each in state.operations):
        return {}
    active = (key for key, status in state.tags.items() if status is Status.ACTIVE)
    deleted = (key for each in state.operations if not each.kind.adds for key in each.keys)
    return {instance.name: {encode(name, prefix) for prefix, name in (*active, *deleted)}}


def _last(state: State) -> int:
    """The greatest number of a job that is known: what comes now must be later."""
    marked = (mark.job for mark in state.marks.values())
    return max((state.horizon, *marked, *(each.job or 0 for each in state.operations)))
