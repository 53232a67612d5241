"""steelyard usage, and what commands on a store of consumers have in common"""

import argparse
from typing import TYPE_CHECKING, Any

# Its store and its client need extras, which the other commands do without: named where used.
from steelyard import consumers, errors
from steelyard.cli import os_clouds
from steelyard.cli.app import Action, Listing
from steelyard.cli.columns import Amounts
from steelyard.consumers.usages import COUNT

if TYPE_CHECKING:
    from steelyard.consumers import ConsumerStore, PlacementConsumers

_URL = "of SQLAlchemy's, such as sqlite:////var/lib/consumers.db or postgresql+psycopg://host/db"


class AtUrl(Action):
    """A command on the store of consumers at a URL."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--url", required=True, help=f"the database, as a URL {_URL}")
        return parser

    def store(self, parsed_args: argparse.Namespace) -> "ConsumerStore":
        return consumers.ConsumerStore(parsed_args.url)


class Usage(Listing):
    """Show what a project uses, and by how many consumers, by type."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--project", required=True, metavar="P", help="the id of the project")
        parser.add_argument("--user", metavar="U", help="the id of one user of the project")
        parser.add_argument("--type", metavar="T", help="one type, or all for all together")
        source = parser.add_mutually_exclusive_group(required=True)
        source.add_argument("--url", help=f"a store of consumers, as a URL {_URL}")
        source.add_argument(
            "--os-cloud", metavar="NAME", help="a cloud of clouds.yaml whose Placement to ask"
        )
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return ("Type", "Consumers", "Resources")

    def content(self, parsed_args: argparse.Namespace) -> Any:
        asked = (parsed_args.project, parsed_args.user, parsed_args.type)
        return [
            (name, used[COUNT], Amounts({key: used[key] for key in sorted(used) if key != COUNT}))
            for name, used in sorted(_model(parsed_args).usages(*asked)["usages"].items())
        ]


def _model(parsed_args: argparse.Namespace) -> "ConsumerStore | PlacementConsumers":
    if parsed_args.url is None:
        return consumers.PlacementConsumers(os_clouds.placement(parsed_args.os_cloud))
    store = consumers.ConsumerStore(parsed_args.url)
    if store.current() is None:
        raise errors.NotFound(
            "there is no store of consumers; create one with steelyard db upgrade"
        )
    return store
