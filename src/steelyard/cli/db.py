"""steelyard db upgrade|current|history"""

import argparse
from typing import TYPE_CHECKING, Any

from steelyard import conf as options
from steelyard import consumers, errors, extras
from steelyard.cli.app import Action, Listing
from steelyard.cli.consumers import URL, existing

if TYPE_CHECKING:
    from steelyard.stores import Store
    from steelyard.tags import TagStore

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
        if parsed_args.schema == _TAGS:
            return self.tag_store(parsed_args)
        if parsed_args.url is None:
            raise errors.BadRequest("the database of consumers is missing: name it with --url")
        return self.opened.enter_context(consumers.ConsumerStore(self.url(parsed_args)))

    def tag_store(self, parsed_args: argparse.Namespace) -> "TagStore":
        with extras.required("sql", "the tag store"):
            from steelyard.tags import configured  # noqa: PLC0415  (an extra)
        url = self.named_url(parsed_args)
        return self.opened.enter_context(configured.store(self.configuration(), url))

    def named_url(self, parsed_args: argparse.Namespace) -> str | None:
        return None if parsed_args.url is None else self.url(parsed_args)

    def url(self, parsed_args: argparse.Namespace) -> str:
        return existing(parsed_args.url)


class DbUpgrade(_AtUrl, Action):
    """Create the tables of consumers or of tags, or bring them up to date.

    A database that a Placement lives in is refused for consumers. What has been done is kept when a
    later step fails; the command can be repeated.

    For tags, record the backend that the configuration names: the database belongs to it from then
    on. A database that belongs to another backend is left as it is.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        if parsed_args.schema == _TAGS:
            self._upgrade_tags(parsed_args)
        else:
            store = self.store(parsed_args)
            before = store.current()
            store.upgrade()
            self._report(before, store)

    def _upgrade_tags(self, parsed_args: argparse.Namespace) -> None:
        with extras.required("sql", "the tag store"):
            from steelyard.tags import configured  # noqa: PLC0415  (an extra)
        conf, store = self.configuration(), self.tag_store(parsed_args)
        before, owner = store.current(), store.backend()
        driver = options.register_tags(conf).backend
        # The name of a backend that is recorded already is checked before each change of tags.
        if not configured.names_backend(conf) or (owner is not None and owner.driver == driver):
            store.upgrade()
        else:
            service = configured.service(conf, self.named_url(parsed_args))
            self.opened.enter_context(service.store)
            service.upgrade()
        self._report(before, store)
        owner = store.backend()
        self.app.stdout.write(
            "no backend is recorded; run 'steelyard tags backend set DRIVER' with the "
            "configuration of the backend that has the instances\n"
            if owner is None
            else f"the database belongs to backend {owner}\n"
        )

    def _report(self, before: str | None, store: "Store") -> None:
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
