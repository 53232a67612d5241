"""The tag service that the configuration describes."""

import contextlib
import urllib.parse
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from oslo_config import cfg

from steelyard import conf as options
from steelyard import errors, extras, plugins
from steelyard.sql.configured import database_url
from steelyard.tags.backends.base import TAG_BACKENDS, TagBackend
from steelyard.tags.database.store import TagStore
from steelyard.tags.names import Clashes, Prefixes
from steelyard.tags.service import TagService
from steelyard.tags.states.values import Instance, Kind, State, Status

if TYPE_CHECKING:
    from steelyard.tags.jobs.broker import Broker

# Instances that are read in one transaction.
_AT_ONCE = 500


def service(conf: cfg.ConfigOpts | None = None, url: str | None = None) -> TagService:
    """Return the service, over the database at the URL, by default the configured one.

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
            options.check_files_with(conf, options.TAGS_GROUP, ["ganeti_password"])
        name = group.backend
        backend: TagBackend = plugins.load(TAG_BACKENDS, [name], conf)[name]
        options.warn_of_unknown(conf, options.TAGS_GROUP)
        # A database of another backend has other instances.
        if backend.in_process and tables.backend() == backend.identity():
            _adopt(backend, tables)
        service = TagService(tables, backend, prefixes, clashes, group.give_up_after)
        service.request_timeout = group.request_timeout
        service.instances_per_project = group.instances_per_project or None
        opened.pop_all()  # the caller closes the store
    return service


def names_backend(conf: cfg.ConfigOpts | None = None) -> bool:
    """Return whether the configuration sets ``backend``, so that its default is not used."""
    _ = options.register_tags(conf).backend  # raises InvalidOption if it is invalid
    found = (cfg.CONF if conf is None else conf).get_location("backend", options.TAGS_GROUP)
    return found is not None and found.location not in (
        cfg.Locations.opt_default,
        cfg.Locations.set_default,
    )


def store(conf: cfg.ConfigOpts | None = None, url: str | None = None) -> TagStore:
    """Return the store alone, in the database at the URL, by default the configured one.

    The caller closes it.
    """
    options.register_tags(conf)
    return TagStore(database_url(conf, options.TAGS_GROUP, url))


def transport_url(conf: cfg.ConfigOpts | None = None) -> str | None:
    """Return the configured URL of the broker, or None if none is configured."""
    url: str | None = options.register_tags(conf).transport_url
    if url is None:
        return None
    with _naming("transport_url"):
        _check_transport(url)
    if "@" in url:
        options.check_files_with(conf, options.TAGS_GROUP, ["transport_url"])
    return url


def broker(conf: cfg.ConfigOpts | None = None, *, bound: bool = False) -> "Broker | None":
    """Return the configured broker, or None if none is configured.

    If ``bound``, its queue also receives the messages of the configured exchange.
    """
    url = transport_url(conf)
    if url is None:
        return None
    with extras.required("amqp", "the message broker"):
        from steelyard.tags.jobs.broker import Broker  # noqa: PLC0415  (an extra)
    group = options.register_tags(conf)
    exchange = (group.exchange, group.routing_key) if bound and group.exchange else None
    return Broker(url, group.queue, exchange)


@contextlib.contextmanager
def _naming(option: str) -> Iterator[None]:
    """Name the option in BadRequest errors that the block raises."""
    try:
        yield
    except errors.BadRequest as error:
        message = f"{option} in [{options.TAGS_GROUP}]: {error.message}"
        raise errors.BadRequest(message, error.text, error.position) from error


def _check_transport(url: str) -> None:
    """Raise BadRequest unless this is the URL of a broker.

    The error does not quote the URL, because it may contain a password.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        known = (
            parts.scheme in ("amqp", "amqps")
            and bool(parts.hostname)
            and parts.port != 0
            and not (parts.query or parts.fragment or ";" in url or "@" in parts.path)
        )
    except ValueError:  # about the port; the message may quote a password
        known = False
    if not known:
        raise errors.BadRequest(
            "invalid broker URL: expected one such as "
            "amqp://user:password@mq.example.org:5672/vhost, or amqps:// for TLS, with %40, %2F, "
            "%3A, %3B, %3F and %23 for @, /, :, ;, ? and # in a name or a password"
        )


def _adopt(backend: TagBackend, tables: TagStore) -> None:
    """Give a new backend the instances and the last job number of the database."""
    last = ""
    while snapshots := tables.snapshots(_AT_ONCE, after=last):
        for each in snapshots:
            backend.adopt(_there(each.instance, each.state), _last(each.state))
        last = snapshots[-1].instance.id
    backend.adopt({}, tables.watched().job or 0)


def _there(instance: Instance, state: State) -> Mapping[str, Iterable[str]]:
    """Return the encoded tags that a new backend has for the instance, by the instance's name.

    A new backend has applied no pending operation. So tags whose deletion is pending are included,
    and the result is empty if the creation of the instance is pending.
    """
    if any(each.kind is Kind.CREATE for each in state.operations):
        return {}
    active = (tag for tag, status in state.tags.items() if status is Status.ACTIVE)
    deleted = (tag for each in state.operations if not each.kind.adds for tag in each.tags)
    return {instance.name: {tag.encoded for tag in (*active, *deleted)}}


def _last(state: State) -> int:
    """Return the greatest known job number; numbers of new jobs must be greater."""
    marked = (mark.job for mark in state.marks.values())
    return max((state.horizon, *marked, *(each.job or 0 for each in state.operations)))
