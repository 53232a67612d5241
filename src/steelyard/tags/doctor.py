"""Errors and risks in the configuration of the tag service, and in the systems behind it.

Each check is a function that yields findings. A check that needs a system comes after the check of
the system itself.
"""

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from oslo_config import cfg

from steelyard import conf as options
from steelyard import errors, plugins
from steelyard.findings import Check, Finding, Severity, Subject, SubjectKind
from steelyard.sql.configured import has_password
from steelyard.tags import configured
from steelyard.tags.backends.base import TAG_BACKENDS, TagBackend
from steelyard.tags.database import backlog, watched
from steelyard.tags.database.ownership import Writer
from steelyard.tags.database.store import TagStore
from steelyard.tags.names import Clashes, Prefixes
from steelyard.text import spelling
from steelyard.text.wording import counted, duration
from steelyard.web.callers import Trust

if TYPE_CHECKING:
    from steelyard.tags.jobs.broker import Broker

_LOCKED_OUT = "correct it; the processes of the tag service do not start with it"
# An interval of reconciliation is missed after this multiple of it.
_MISSED = 2


def examine(conf: cfg.ConfigOpts) -> list[Finding]:
    """Return all findings about the configuration and the systems that it names.

    The most severe ones come first. Systems are examined only if the options are valid and no file
    with passwords is readable by others, because the service does not start before that.
    """
    found = list(_Doctor(conf).findings())
    return sorted(found, key=lambda finding: list(Severity).index(finding.severity))


class _Doctor:
    """The checks of one configuration."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf
        self._group = options.register_tags(conf)
        self._settings = list(options.settings(options.files(conf)))

    def findings(self) -> Iterator[Finding]:
        faults = [*self._invalid_values(), *self._insecure_files()]
        yield from faults
        backend = None
        if not faults:
            faults = list(self._contradictions())
            yield from faults
            try:
                backend = self._backend()
            except (errors.SteelyardError, cfg.Error) as error:
                yield self._of_option(Check.INVALID_OPTION, "backend", error)
            else:
                yield from self._unknown_options()
        yield from self._without_effect()
        if backend is not None:
            yield from self._systems(backend)

    def _invalid_values(self) -> Iterator[Finding]:
        for opt in dict(options.list_opts())[options.TAGS_GROUP]:
            try:
                getattr(self._group, opt.dest)
            except options.InvalidOption as error:
                yield self._of_option(Check.INVALID_OPTION, opt.dest, error.what)

    def _insecure_files(self) -> Iterator[Finding]:
        conf, secret = self._conf, ["ganeti_password"]
        if self._read(lambda: has_password(self._group.connection)):
            secret.append("connection")
        if self._read(lambda: "@" in (self._group.transport_url or "")):
            secret.append("transport_url")
        for path in options.insecure_files_with(conf, options.TAGS_GROUP, secret):
            yield Finding(
                Severity.ERROR,
                Check.INSECURE_FILE,
                Subject(SubjectKind.FILE, path),
                "it contains credentials, and all users can read or change it",
                f"run 'chmod o-rw {path}', and change the passwords if others may have read them",
                path,
            )

    def _read(self, value: Callable[[], bool]) -> bool:
        try:
            return value()
        except options.InvalidOption:  # another check reports it
            return False

    def _contradictions(self) -> Iterator[Finding]:
        """Yield the values that are valid by themselves, but not together or as a whole."""
        group = self._group
        proxies = ("trusted_proxies", "system_proxies")
        checks: tuple[tuple[str, Callable[[], object]], ...] = (
            ("user_prefix", lambda: Prefixes(group.user_prefix, group.system_prefix)),
            ("incompatible", lambda: Clashes.parse(group.incompatible)),
            (
                "trusted_proxies",
                lambda: Trust.parse(group.trusted_proxies, group.system_proxies, names=proxies),
            ),
            ("transport_url", lambda: configured.transport_url(self._conf)),
        )
        for name, check in checks:
            try:
                check()
            except errors.BadRequest as error:
                yield self._of_option(Check.INVALID_OPTION, name, error)

    def _backend(self) -> TagBackend:
        name = self._group.backend
        backend: TagBackend = plugins.load(TAG_BACKENDS, [name], self._conf)[name]
        return backend

    def _unknown_options(self) -> Iterator[Finding]:
        # Backends have registered their options.
        group = options.TAGS_GROUP
        for setting in options.unknown(self._conf, group, options.files(self._conf)):
            yield Finding(
                Severity.WARNING,
                Check.UNKNOWN_OPTION,
                _option(setting.option),
                f"unknown option{spelling.near(setting.option, list(self._conf[group]))}",
                "correct the name or remove the line; it has no effect",
                setting.file,
                setting.line,
            )

    def _without_effect(self) -> Iterator[Finding]:
        names = {each.option for each in self._settings if each.group.lower() == options.TAGS_GROUP}
        if self._read(lambda: self._group.transport_url is None):
            for name in sorted({"exchange", "routing_key", "queue", "prefetch"} & names):
                yield self._of_option(
                    Check.INEFFECTIVE_OPTION,
                    name,
                    "it has no effect without transport_url",
                    Severity.WARNING,
                    "set transport_url, or remove the line",
                )
        if self._read(lambda: not self._group.trusted_proxies):
            yield self._of_option(
                Check.NO_TRUSTED_PROXIES,
                "trusted_proxies",
                "no proxy is trusted: the API accepts only callers that keystonemiddleware "
                "authenticates",
                Severity.NOTE,
                "name the proxies, unless keystonemiddleware is in front of the API",
            )

    def _systems(self, backend: TagBackend) -> Iterator[Finding]:
        yield from self._broker()
        try:
            store = configured.store(self._conf)
        except errors.SteelyardError as error:
            yield self._of_option(Check.INVALID_OPTION, "connection", error)
        else:
            with store:
                yield from self._database(store, backend)

    def _database(self, store: TagStore, backend: TagBackend) -> Iterator[Finding]:
        try:
            store.require_tables()
        except (errors.UpgradeNeeded, errors.Conflict) as error:
            remedy = "run 'steelyard db upgrade --schema tags' with the newest installed steelyard"
            yield _of_system(Check.WRONG_SCHEMA, "database", error, remedy)
        except errors.SteelyardError as error:
            remedy = "start the database, or correct connection"
            yield _of_system(Check.DATABASE_FAILED, "database", error, remedy)
        else:
            yield from self._ownership(store, backend)
            yield from self._progress(store)

    def _ownership(self, store: TagStore, backend: TagBackend) -> Iterator[Finding]:
        if backend.in_process:
            yield self._of_option(
                Check.TRIAL_BACKEND,
                "backend",
                f"backend {self._group.backend!r} is for trials: its tags end with the process",
                Severity.WARNING,
                "name the backend that has the instances",
            )
        try:
            identity = Writer(backend).ask()
        except errors.SteelyardError as error:
            remedy = "start the backend, or correct its options"
            yield _of_system(Check.BACKEND_FAILED, "backend", error, remedy)
            return
        owner = store.backend()
        if owner != identity:
            recorded = "records no backend" if owner is None else f"belongs to backend {owner}"
            yield _of_system(
                Check.WRONG_BACKEND,
                "database",
                f"it {recorded}, but backend {identity} is configured: no process can change tags",
                "correct the options of the backend, or see 'steelyard tags backend set --help'",
            )

    def _progress(self, store: TagStore) -> Iterator[Finding]:
        now, every = time.time(), self._group.reconcile_every
        pending, progress = store.reading(backlog.read), store.reading(watched.read)
        if pending.since is not None and now - pending.since > self._group.give_up_after:
            yield _of_system(
                Check.OLD_OPERATION,
                "watch",
                f"{counted(pending.operations, 'pending operation')}, the oldest for "
                f"{duration(now - pending.since)}",
                "check that 'steelyard tags watch' and the dispatchers run, and read their logs",
                Severity.WARNING,
            )
        last = progress.reconciled or 0.0
        if every and now - last > _MISSED * every and store.count():
            since = f"for {duration(now - last)}" if last else "yet"
            yield _of_system(
                Check.NOT_RECONCILED,
                "watch",
                f"the watch has not reconciled all instances {since}",
                "check that 'steelyard tags watch' runs, and read its log",
                Severity.WARNING,
            )

    def _broker(self) -> Iterator[Finding]:
        try:
            broker: Broker | None = configured.broker(self._conf)
            if broker is None:
                return
            state = broker.queue_state()
        except errors.SteelyardError as error:
            remedy = "start the broker, or correct transport_url and the permissions"
            yield _of_system(Check.BROKER_FAILED, "broker", error, remedy)
            return
        if not state.dispatchers:
            yield _of_system(
                Check.NO_DISPATCHER,
                "broker",
                f"no dispatcher receives from the queue {broker.queue.name!r}, which has "
                f"{counted(state.outcomes, 'outcome')}",
                "start 'steelyard tags dispatch', or remove transport_url",
                Severity.WARNING,
            )
        if state.dead_letters:
            yield _of_system(
                Check.DEAD_LETTERS,
                "broker",
                f"{counted(state.dead_letters, 'message')} in the queue {broker.dead.name!r}",
                "run 'steelyard tags dead-letters list', then replay or drop them",
                Severity.WARNING,
            )

    def _of_option(
        self,
        check: Check,
        name: str,
        message: object,
        severity: Severity = Severity.ERROR,
        remedy: str = _LOCKED_OUT,
    ) -> Finding:
        """Return a finding about an option, with the last line that sets it."""
        place = (options.TAGS_GROUP, name)
        lines = [each for each in self._settings if each.place == place]
        file, line = (lines[-1].file, lines[-1].line) if lines else (None, None)
        return Finding(severity, check, _option(name), str(message), remedy, file, line)


def _option(name: str) -> Subject:
    return Subject(SubjectKind.OPTION, f"[{options.TAGS_GROUP}] {name}")


def _of_system(
    check: Check,
    name: str,
    message: object,
    remedy: str,
    severity: Severity = Severity.ERROR,
) -> Finding:
    return Finding(severity, check, Subject(SubjectKind.SERVICE, name), str(message), remedy)
