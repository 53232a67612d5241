"""The commands ``tags backend show`` and ``tags backend set``."""

import argparse
from typing import TYPE_CHECKING

# The store needs an extra that other commands do not, so it is imported on use.
from steelyard import conf as options
from steelyard import errors, extras
from steelyard.cli.commands import Showing, Shown
from steelyard.cli.tags.sources import OnTheDatabase

if TYPE_CHECKING:
    from steelyard.tags.database.store import TagStore


class _ShowingBackend(OnTheDatabase, Showing):
    """A command that shows the recorded backend."""

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Driver", "Name", "Instances", "Unfinished operations"

    def shown(self, store: "TagStore") -> Shown:
        """Return the fields. Raises NotFound if no backend is recorded."""
        owner = store.backend()
        if owner is None:
            raise errors.NotFound(
                "the database records no backend; run 'steelyard tags backend set DRIVER' with "
                "the configuration of the backend that has the instances"
            )
        return Shown(values=(owner.driver, owner.name, store.count(), store.unfinished()))


class TagsBackendShow(_ShowingBackend):
    """Show the backend that the database of tags belongs to."""

    examples = ("steelyard --config-file tags.conf tags backend show",)

    def result(self, parsed_args: argparse.Namespace) -> Shown:
        return self.shown(self.store(parsed_args))


class TagsBackendSet(_ShowingBackend):
    """Record the backend that the database of tags belongs to.

    The command asks the backend for its name, with the options of the --config-file. Commands and
    services that are configured with another backend then refuse to change the database.

    A database keeps its backend. If the backend has a new name, or the instances were moved to
    another backend, stop all tag services first, and add --renamed or --moved. After --moved, purge
    the queue of the dispatchers and run tags reconcile before you start the services again.
    """

    examples = (
        "steelyard --config-file tags.conf tags backend set ganeti",
        "steelyard --config-file tags.conf tags backend set ganeti --renamed",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "driver", metavar="DRIVER", help="driver of the backend, for example ganeti"
        )
        change = parser.add_mutually_exclusive_group()
        change.add_argument(
            "--renamed",
            action="store_true",
            help="record the backend's new name and keep its jobs",
        )
        change.add_argument(
            "--moved",
            action="store_true",
            help="record another backend, which has the instances now, and forget all jobs",
        )
        parser.add_argument(
            "--drop-unfinished",
            action="store_true",
            help="with --moved: drop the operations that the former backend has not finished",
        )
        return parser

    def result(self, parsed_args: argparse.Namespace) -> Shown:
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
            service.administration.rename_backend()
        elif parsed_args.moved:
            service.administration.move_to_backend(drop_unfinished=parsed_args.drop_unfinished)
            self.app.stderr.write(
                "steelyard: purge the queue of the dispatchers and run 'steelyard tags reconcile' "
                "before the services start again\n"
            )
        else:
            service.administration.record_backend()
        return self.shown(service.store)
