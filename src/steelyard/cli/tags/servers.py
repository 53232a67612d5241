"""The commands ``tags servers`` and ``tags unregister``."""

import argparse
from collections.abc import Iterator
from typing import Any

from steelyard import errors
from steelyard.cli.commands import Listed, Listing
from steelyard.cli.outputs.columns import TagStatuses
from steelyard.cli.tags.sources import AskingService, AskingTags
from steelyard.tags.names import TAG_FILTERS, TagFilter, check_server_id

_FILTER_HELP = {
    "tags": "list only servers with all of these tags, separated by commas",
    "tags-any": "list only servers with at least one of these tags",
    "not-tags": "leave out servers with all of these tags",
    "not-tags-any": "leave out servers with one of these tags",
}


class ListingServers(AskingService, Listing):
    """A command that lists servers, chosen by their tags, in pages."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        for name, about in _FILTER_HELP.items():
            parser.add_argument(f"--{name}", metavar="TAGS", help=about)
        parser.add_argument(
            "--limit", metavar="N", type=int, help="number of servers to list; default: all"
        )
        parser.add_argument(
            "--marker", metavar="SERVER", help="ID of the server that the list begins after"
        )
        return parser

    def servers(self, parsed_args: argparse.Namespace) -> Iterator[dict[str, Any]]:
        """Return the servers that the arguments choose, each as the tags client returns it."""
        given = {name: vars(parsed_args)[name.replace("-", "_")] for name in TAG_FILTERS}
        wanted = TagFilter.parse({name: text for name, text in given.items() if text is not None})
        limit, marker = parsed_args.limit, parsed_args.marker
        if limit is not None and limit < 1:
            raise errors.BadRequest(f"invalid --limit {limit}: expected at least 1")
        after = None if marker is None else check_server_id(marker)
        return self.tags(parsed_args).servers(wanted, limit, after)


class TagsServers(ListingServers):
    """List registered servers and their tags, sorted by ID.

    Over HTTP, these are the servers of the user's project, and otherwise of all projects. Options
    choose servers by their tags, ACTIVE and PENDADD ones alike.
    """

    examples = (
        "steelyard tags servers --os-cloud mycloud --tags smtp,web --not-tags-any old",
        "steelyard tags servers --url sqlite:////var/lib/tags.db --owner user --limit 100",
    )

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Server", "Name", "Project", "User", "Tags"

    def result(self, parsed_args: argparse.Namespace) -> Listed:
        rows = [
            (
                each["id"],
                each["name"],
                each["project"],
                each["user"],
                TagStatuses(each["statuses"]),
            )
            for each in self.servers(parsed_args)
        ]
        return Listed(kind="servers", rows=rows, summary={"servers": len(rows)})


class TagsUnregister(AskingTags):
    """Unregister a server that the backend no longer has.

    The server's tags and unfinished operations are forgotten. The command fails while the backend
    has the server.
    """

    examples = (
        "steelyard tags unregister 3d4c9b1e --os-cloud mycloud",
        "steelyard tags unregister 3d4c9b1e --url sqlite:////var/lib/tags.db",
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.tags(parsed_args).unregister(parsed_args.server)
