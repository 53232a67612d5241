"""steelyard tags backend show|set"""

import argparse
from typing import TYPE_CHECKING, Any

# The store needs an extra, which the other commands do without: named where used.
from steelyard import conf as options
from steelyard import errors, extras
from steelyard.cli.app import Showing
from steelyard.cli.tags import OnTheDatabase

if TYPE_CHECKING:
    from steelyard.tags.backends.base import BackendIdentity
    from steelyard.tags.store import TagStore


class _ShowingBackend(OnTheDatabase, Showing):
    """A command that shows the recorded backend."""

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Driver", "Name", "Instances", "Unfinished operations"

    def row(self, store: "TagStore") -> tuple[Any, ...]:
        """Return the values of the columns; NotFound if no backend is recorded."""
        owner = store.backend()
        if owner is None:
            raise errors.NotFound(
                "the database records no backend; run 'steelyard tags backend set DRIVER'"
            )
        return owner.driver, owner.name, store.count(), len(store.pending())


class TagsBackendShow(_ShowingBackend):
    """Show the backend that the database of tags belongs to."""

    def content(self, parsed_args: argparse.Namespace) -> Any:
        return self.row(self.store(parsed_args))


class TagsBackendSet(_ShowingBackend):
    """Record the backend that the database of tags belongs to.

    The backend is asked for its name, with the options of the --config-file. Every command and
    service whose configuration has another backend then refuses to change anything in the database.

    A database keeps its backend. If the backend has a new name, or the instances have moved to
    another one, stop all services of tags and say so with --renamed or --moved.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("driver", metavar="DRIVER", help="its driver, for example ganeti")
        change = parser.add_mutually_exclusive_group()
        change.add_argument(
            "--renamed",
            action="store_true",
            help="the recorded backend has a new name: keep its jobs",
        )
        change.add_argument(
            "--moved",
            action="store_true",
            help="the instances have moved to this backend: forget the jobs of the recorded one; "
            "run tags reconcile next",
        )
        parser.add_argument(
            "--drop-unfinished",
            action="store_true",
            help="with --moved: drop the operations that the recorded backend has not finished",
        )
        return parser

    def content(self, parsed_args: argparse.Namespace) -> Any:
        if parsed_args.drop_unfinished and not parsed_args.moved:
            raise errors.BadRequest("--drop-unfinished needs --moved; add it")
        store = self.store(parsed_args)
        identity = self._identity(parsed_args.driver)
        if parsed_args.renamed:
            store.rename_backend(identity)
        elif parsed_args.moved:
            store.move_to_backend(identity, drop_unfinished=parsed_args.drop_unfinished)
        else:
            store.record_backend(identity)
        return self.row(store)

    def _identity(self, driver: str) -> "BackendIdentity":
        with extras.required("sql", "the tag store"):
            from steelyard.tags import configured  # noqa: PLC0415  (an extra)
        conf = self.configuration()
        named = options.register_tags(conf).backend
        if configured.names_backend(conf) and named != driver:
            raise errors.BadRequest(
                f"cannot record backend {driver!r}: [{options.TAGS_GROUP}] has backend = {named}; "
                f"name {named!r}, or use another --config-file"
            )
        conf.set_override("backend", driver, group=options.TAGS_GROUP)
        return configured.backend(conf).identity()
