"""steelyard usage and consumer types, and what commands on a store of consumers have in common"""

import argparse
import os
import urllib.parse
from typing import TYPE_CHECKING, Any

# Its store and its client need extras, which the other commands do without: named where used.
from steelyard import consumers, errors
from steelyard.cli import os_clouds
from steelyard.cli.app import Action, Listing
from steelyard.cli.columns import Amounts, Names
from steelyard.consumers import names
from steelyard.consumers.usages import COUNT

if TYPE_CHECKING:
    from steelyard.consumers import ConsumerStore, PlacementConsumers

URL = "of SQLAlchemy's, such as sqlite:////var/lib/consumers.db or postgresql+psycopg://host/db"


def existing(url: str) -> str:
    """The URL, if it is not that of a file which SQLite would have to create first."""
    backend, _, path = url.partition("?")[0].partition(":///")
    if backend.partition("+")[0] != "sqlite" or not path or path.startswith((":memory:", "file:")):
        return url
    # Whether what is quoted is unquoted depends on the version of SQLAlchemy.
    if not any(map(os.path.exists, (path, urllib.parse.unquote(path)))):
        raise errors.NotFound(
            f"there is no file {path!r}; correct --url, or let steelyard db upgrade create it, "
            f"with --schema tags for tags"
        )
    return url


class _OnConsumers(Action):
    """A command on a store of consumers or on a Placement."""

    def model(self, parsed_args: argparse.Namespace) -> "ConsumerStore | PlacementConsumers":
        if parsed_args.url is None:
            return consumers.PlacementConsumers(os_clouds.placement(parsed_args.os_cloud))
        return self.store(parsed_args)

    def store(self, parsed_args: argparse.Namespace) -> "ConsumerStore":
        return self.opened.enter_context(consumers.ConsumerStore(existing(parsed_args.url)))


class Usage(_OnConsumers, Listing):
    """Show what a project uses, and by how many consumers, by type."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--project", required=True, metavar="P", help="the id of the project")
        parser.add_argument("--user", metavar="U", help="the id of one user of the project")
        parser.add_argument("--type", metavar="T", help="one type, or all for all together")
        _add_source(parser)
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return ("Type", "Consumers", "Resources")

    def content(self, parsed_args: argparse.Namespace) -> Any:
        asked = (parsed_args.project, parsed_args.user, parsed_args.type)
        return [
            (name, used[COUNT], Amounts({key: used[key] for key in sorted(used) if key != COUNT}))
            for name, used in sorted(self.model(parsed_args).usages(*asked)["usages"].items())
        ]


class ConsumerTypes(_OnConsumers, Listing):
    """List the types of consumers, how many there are, and which names may be slips."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--project",
            metavar="P",
            help="count the consumers of this project alone; a Placement has to be told",
        )
        parser.add_argument("--user", metavar="U", help="those of one user of the project")
        _add_source(parser)
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return ("Type", "Consumers", "Perhaps meant")

    def content(self, parsed_args: argparse.Namespace) -> Any:
        counts = self._counts(parsed_args)
        near = names.near_misses(counts)
        return [(name, counts[name], Names(near.get(name, []))) for name in sorted(counts)]

    def _counts(self, parsed_args: argparse.Namespace) -> dict[str, int]:
        """Return how many consumers of each type there are."""
        project, user = parsed_args.project, parsed_args.user
        if project is not None:
            usages = self.model(parsed_args).usages(project, user)["usages"]
            return {name: used[COUNT] for name, used in usages.items()}
        if user is not None:
            raise errors.BadRequest("--user is a user of a project: name that too, with --project")
        if parsed_args.url is None:
            raise errors.BadRequest("Placement counts the consumers of one project: name --project")
        return self.store(parsed_args).types()


def _add_source(parser: argparse.ArgumentParser) -> None:
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--url", help=f"a store of consumers, as a URL {URL}")
    source.add_argument(
        "--os-cloud", metavar="NAME", help="a cloud of clouds.yaml whose Placement to ask"
    )
