"""steelyard tags backend show|set"""

import argparse
from typing import TYPE_CHECKING, Any

# The store needs an extra, which the other commands do without: named where used.
from steelyard import conf as options
from steelyard import errors, extras
from steelyard.cli.app import Showing
from steelyard.cli.tags import OnTheDatabase

if TYPE_CHECKING:
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
                "the database records no backend; run 'steelyard tags backend set DRIVER' with "
                "the configuration of the backend that has the instances"
            )
        return owner.driver, owner.name, store.count(), store.unfinished()


class TagsBackendShow(_ShowingBackend):
    """Show the backend that the database of tags belongs to."""

    def content(self, parsed_args: argparse.Namespace) -> Any:
        return self.row(self.store(parsed_args))


class TagsBackendSet(_ShowingBackend):
    """Record the backend that the database of tags belongs to.

    The backend is asked for its name, with the options of the --config-file. Every command and
    service that is configured with another backend then refuses to change the database.

    A database keeps its backend. If the backend has a new name, or the instances were moved to
    another one, stop all services of tags first, and add --renamed or --moved. After --moved, purge
    the queue of the dispatchers and run tags reconcile before the services start again.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "driver", metavar="DRIVER", help="driver of the backend, for example ganeti"
        )
        change = parser.add_mutually_exclusive_group()
        change.add_argument(
            "--renamed",
            action="store_true",
            help="record a new name of the recorded backend, and keep its jobs",
        )
        change.add_argument(
            "--moved",
            action="store_true",
            help="record another backend that has the instances now, and forget all jobs",
        )
        parser.add_argument(
            "--drop-unfinished",
            action="store_true",
            help="with --moved: drop the operations that the former backend has not finished",
        )
        return parser

    def content(self, parsed_args: argparse.Namespace) -> Any:
        if parsed_args.drop_unfinished and not parsed_args.moved:
            raise errors.BadRequest("--drop-unfinished needs --moved; add it")
        with extras.required("sql", "the tag service"):
            from steelyard.tags import configured  # noqa: PLC0415  (an extra)
        conf, driver = self.configuration(), parsed_args.driver
        named = options.register_tags(conf).backend
        if configured.names_backend(conf) and named != driver:
            raise errors.BadRequest(
                f"cannot record backend {driver!r}: [{options.TAGS_GROUP}] has backend = {named}; "
                f"name {named!r}, or use another --config-file"
            )
        conf.set_override("backend", driver, group=options.TAGS_GROUP)
        service = self.service(parsed_args, conf)
        if parsed_args.renamed:
            service.store.rename_backend(service.identity())
        elif parsed_args.moved:
            service.store.move_to_backend(
                service.identity(), drop_unfinished=parsed_args.drop_unfinished
            )
            self.app.stderr.write(
                "steelyard: purge the queue of the dispatchers and run 'steelyard tags reconcile' "
                "before the services start again\n"
            )
        else:
            service.record_backend()
        return self.row(service.store)
