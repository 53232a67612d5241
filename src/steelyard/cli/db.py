"""steelyard db upgrade|current|history"""

import argparse
from typing import TYPE_CHECKING, Any

# The stores need extras, which the other commands do without: named where used.
from steelyard import consumers, errors, extras
from steelyard.cli.app import Action, Listing
from steelyard.cli.consumers import URL, existing

if TYPE_CHECKING:
    from steelyard.stores import Store
    from steelyard.tags import TagStore

_load = extras.lazily("steelyard.tags", {"store": ("configured", "sql")})

_CONSUMERS, _TAGS = "consumers", "tags"


class _AtUrl(Action):
    """A command on the tables of a store in the database at a URL."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--url",
            help=f"the database, as a URL {URL}; for tags, the configured one unless given",
        )
        parser.add_argument(
            "--schema",
            choices=[_CONSUMERS, _TAGS],
            default=_CONSUMERS,
            help="whose tables; %(default)s unless given",
        )
        return parser

    def store(self, parsed_args: argparse.Namespace) -> "Store":
        url = None if parsed_args.url is None else self.url(parsed_args)
        if parsed_args.schema == _TAGS:
            configured: TagStore = _load("store")(self.configuration(), url)
            return self.opened.enter_context(configured)
        if url is None:
            raise errors.BadRequest("the database of consumers is missing: name it with --url")
        return self.opened.enter_context(consumers.ConsumerStore(url))

    def url(self, parsed_args: argparse.Namespace) -> str:
        return existing(parsed_args.url)


class DbUpgrade(_AtUrl, Action):
    """Create the tables of consumers or of tags, or bring them up to date.

    A database that a Placement lives in is refused for consumers. What has been done is kept when a
    later step fails; the command can be repeated.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        store = self.store(parsed_args)
        before = store.current()
        store.upgrade()
        self.app.stdout.write(f"{before or 'nothing'} -> {store.current()}\n")

    def url(self, parsed_args: argparse.Namespace) -> str:
        """Any: this is the command that creates a file."""
        return str(parsed_args.url)


class DbCurrent(_AtUrl, Action):
    """Show the revision of the tables of consumers or of tags."""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.app.stdout.write(f"{self.store(parsed_args).current() or 'nothing'}\n")


class DbHistory(_AtUrl, Listing):
    """List the revisions of the tables of consumers or of tags, and which are there."""

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return ("Revision", "There", "What it does")

    def content(self, parsed_args: argparse.Namespace) -> Any:
        store = self.store(parsed_args)
        current = store.current() or ""
        return [
            (revision, "yes" if revision <= current else "no", what)
            for revision, what in store.history()
        ]
