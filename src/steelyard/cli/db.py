"""The commands ``db upgrade``, ``db downgrade``, ``db current`` and ``db history``."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING

from steelyard import conf as options
from steelyard import consumers, errors, extras
from steelyard.cli.commands import Command, Listed, Listing
from steelyard.cli.consumers import require_tag_database
from steelyard.cli.inputs.consumer_models import URL_EXAMPLES
from steelyard.text.wording import counted

if TYPE_CHECKING:
    from steelyard.sql.stores import Store
    from steelyard.tags import TagStore

_CONSUMERS, _TAGS = "consumers", "tags"
_BASE = "base"


class _AtUrl(Command):
    """A command on the tables of one schema in the database at a URL."""

    has_defaults = True

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        source, schema = (
            (
                f"; default for tags: connection in [{options.TAGS_GROUP}] of a --config-file",
                f"; default: {_CONSUMERS}",
            )
            if self.has_defaults
            else ("", "")
        )
        parser.add_argument(
            "--url",
            required=not self.has_defaults,
            help=f"SQLAlchemy URL of the database, {URL_EXAMPLES}{source}",
        )
        parser.add_argument(
            "--schema",
            choices=[_CONSUMERS, _TAGS],
            required=not self.has_defaults,
            default=_CONSUMERS if self.has_defaults else None,
            help=f"tables to use, for consumers or for tags{schema}",
        )
        return parser

    def store(self, parsed_args: argparse.Namespace) -> "Store":
        if parsed_args.schema == _TAGS:
            return self.tag_store(parsed_args)
        if parsed_args.url is None:
            raise errors.BadRequest("missing --url: name the consumer database")
        return self.opened.enter_context(consumers.ConsumerStore(parsed_args.url))

    def tag_store(self, parsed_args: argparse.Namespace) -> "TagStore":
        with extras.required("sql", "the tag store"):
            from steelyard.tags import configured  # noqa: PLC0415  (an extra)
        conf, url = self.configuration(), parsed_args.url
        options.register_tags(conf)
        self.warn_of_unknown_options(conf)
        require_tag_database(conf, url)
        return self.opened.enter_context(configured.store(conf, url))


class DbUpgrade(_AtUrl, Command):
    """Create or upgrade the consumer tables or the tag tables.

    For consumers, the database of a Placement is rejected. If a step fails, the steps before it are
    kept, and the command can be repeated.

    For tags, the command also records the backend, if the configuration names one. From then on,
    the database belongs to this backend. A database that belongs to another backend is not changed.
    """

    examples = (
        "steelyard db upgrade --url sqlite:////var/lib/consumers.db",
        "steelyard db upgrade --schema tags --url sqlite:////var/lib/tags.db",
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        if parsed_args.schema == _TAGS:
            self._upgrade_tags(parsed_args)
        else:
            store = self.store(parsed_args)
            store.create_file()
            before = store.current()
            store.upgrade()
            self._report(before, store)

    def _upgrade_tags(self, parsed_args: argparse.Namespace) -> None:
        with extras.required("sql", "the tag store"):
            from steelyard.tags import configured  # noqa: PLC0415  (an extra)
        conf, store = self.configuration(), self.tag_store(parsed_args)
        store.create_file()
        before, owner = store.current(), store.backend()
        driver = options.register_tags(conf).backend
        # A recorded backend needs no check here: its name is checked before each change of tags.
        if not configured.names_backend(conf) or (owner is not None and owner.driver == driver):
            store.upgrade()
        else:
            service = configured.service(conf, parsed_args.url)
            self.opened.enter_context(service.store)
            service.administration.upgrade()
        self._report(before, store)
        owner = store.backend()
        if owner is None:
            self.app.stdout.write(
                "no backend is recorded; run 'steelyard tags backend set DRIVER' with the "
                "configuration of the backend that has the instances\n"
            )
        else:
            self.confirm(f"the database belongs to backend {owner}")

    def _report(self, before: str | None, store: "Store") -> None:
        current = store.current()
        if before is None:
            self.confirm(f"created the tables at revision {current}")
        elif before == current:
            self.confirm(f"the tables are up to date, at revision {current}")
        else:
            self.confirm(f"upgraded the tables from revision {before} to {current}")


class DbDowngrade(_AtUrl, Command):
    """Revert revisions of the tables, and lose the data in them.

    The command changes nothing until --from confirms the current revision. Without it, the command
    lists the revisions that it would revert, and the rows of the tables that it would drop. There
    are no defaults: --schema and --url must be given.
    """

    examples = (
        "steelyard db downgrade 0009 --schema consumers --url sqlite:////var/lib/consumers.db",
        "steelyard db downgrade 0009 --schema consumers --url sqlite:////var/lib/consumers.db "
        "--from 0010",
    )
    # A forgotten option must not lead to another database.
    has_defaults = False

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "revision", metavar="REVISION", help=f"revision to return to; {_BASE} drops all tables"
        )
        parser.add_argument(
            "--from",
            dest="confirmed",
            metavar="CURRENT",
            help="current revision of the tables, as 'db current' shows it; confirms the downgrade",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        store, wanted = self.store(parsed_args), parsed_args.revision
        current = store.current()
        reverted = _reverted(store, current, wanted)
        if parsed_args.confirmed is None:
            raise _unconfirmed(store, current, wanted, reverted)
        store.downgrade(wanted, parsed_args.confirmed)
        if wanted == _BASE:
            self.confirm(f"dropped the tables, which were at revision {parsed_args.confirmed}")
        else:
            self.confirm(f"downgraded the tables from revision {parsed_args.confirmed} to {wanted}")


def _reverted(store: "Store", current: str | None, wanted: str) -> list[tuple[str, str]]:
    """Return the revisions that a downgrade reverts, newest first, with their descriptions.

    Raises BadRequest if the wanted revision is not below the current one.
    """
    history = store.history()
    known = [revision for revision, _ in history]
    if current is None:
        raise errors.BadRequest("no tables to downgrade: check --url and --schema")
    if current not in known:
        raise errors.Conflict(
            f"the database has revision {current!r}, which this version of steelyard lacks; "
            f"downgrade with the version that upgraded it"
        )
    if wanted != _BASE and wanted not in known:
        raise errors.BadRequest(
            f"no revision {wanted!r}: expected {_BASE} or one of {', '.join(known)}", wanted
        )
    if wanted in known[known.index(current) :]:
        raise errors.BadRequest(
            f"cannot downgrade to revision {wanted}: the tables are at revision {current}; name an "
            f"earlier revision"
        )
    kept = 0 if wanted == _BASE else known.index(wanted) + 1
    return history[kept : known.index(current) + 1][::-1]


def _unconfirmed(
    store: "Store", current: str | None, wanted: str, reverted: Sequence[tuple[str, str]]
) -> errors.BadRequest:
    """Return the error that says what a downgrade would revert and how to confirm it."""
    dropped = store.rows_of_tables_after("" if wanted == _BASE else wanted)
    tables = ", ".join(f"{name} ({counted(rows, 'row')})" for name, rows in dropped.items())
    error = errors.BadRequest(
        f"nothing changed: the downgrade would revert {counted(len(reverted), 'revision')}"
        f"{f' and drop {tables}' if dropped else ''}; to confirm, add --from {current}"
    )
    for revision, description in reverted:
        error.add_note(f"would revert {revision}: {description.rstrip('.')}")
    return error


class DbCurrent(_AtUrl, Command):
    """Show the revision of the consumer tables or the tag tables."""

    examples = (
        "steelyard db current --url sqlite:////var/lib/consumers.db",
        "steelyard db current --schema tags --url sqlite:////var/lib/tags.db",
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.app.stdout.write(f"{self.store(parsed_args).current() or 'no tables'}\n")


class DbHistory(_AtUrl, Listing):
    """List the revisions of the tables and which are applied.

    The tables are the consumer tables, or with --schema tags the tag tables.
    """

    examples = (
        "steelyard db history --url sqlite:////var/lib/consumers.db",
        "steelyard db history --schema tags --url sqlite:////var/lib/tags.db",
    )

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return ("Revision", "Applied", "Description")

    def result(self, parsed_args: argparse.Namespace) -> Listed:
        store = self.store(parsed_args)
        current = store.current()
        return Listed(
            kind="revisions",
            rows=[
                (revision, revision <= (current or ""), what) for revision, what in store.history()
            ],
            summary={"schema": parsed_args.schema, "current": current},
        )
