"""The commands ``tags servers`` and ``tags unregister``."""

import argparse

from steelyard import errors
from steelyard.cli.commands import Listed, Listing
from steelyard.cli.outputs.columns import TagStatuses
from steelyard.cli.tags.operations import tags_of
from steelyard.cli.tags.sources import AskingService, AskingTags, Operating
from steelyard.tags.names import TAG_FILTERS, Owner, TagFilter, check_server_id

_FILTER_HELP = {
    "tags": "list only servers with all of these tags, separated by commas",
    "tags-any": "list only servers with at least one of these tags",
    "not-tags": "leave out servers with all of these tags",
    "not-tags-any": "leave out servers with one of these tags",
}


class ListingServers(AskingService, Listing):
    """A command that lists servers, which options choose."""

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

    def chosen(self, parsed_args: argparse.Namespace) -> tuple[TagFilter, int | None, str | None]:
        """Return the filter, the greatest number of servers, and the ID that they begin after."""
        limit, marker = parsed_args.limit, parsed_args.marker
        if limit is not None and limit < 1:
            raise errors.BadRequest(f"invalid --limit {limit}: expected at least 1")
        after = None if marker is None else check_server_id(marker)
        return TagFilter.parse(self.filters(parsed_args)), limit, after

    def filters(self, parsed_args: argparse.Namespace) -> dict[str, str]:
        """Return the parts of the filter that were given, by their names."""
        given = {name: vars(parsed_args)[name.replace("-", "_")] for name in TAG_FILTERS}
        return {name: text for name, text in given.items() if text is not None}


class TagsList(ListingServers):
    """List the tags of one server, or of all servers.

    Without SERVER, the command lists the tags of all servers: over HTTP those of the user's
    project, otherwise those of all projects. Options choose servers by their tags.
    """

    examples = (
        "steelyard tags list 3d4c9b1e --os-cloud mycloud",
        "steelyard tags list --tags smtp --url sqlite:////var/lib/tags.db",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "server", metavar="SERVER", nargs="?", help="ID of the server; default: all servers"
        )
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        if parsed_args.server is None:
            return "Server", "Project", "Owner", "Tag", "Status"
        return "Tag", "Status"

    def result(self, parsed_args: argparse.Namespace) -> Listed:
        if parsed_args.server is None:
            return self._all(parsed_args)
        given = [self.filters(parsed_args) or None, parsed_args.limit, parsed_args.marker]
        if any(each is not None for each in given):
            raise errors.BadRequest(
                "options that choose servers exclude SERVER: leave out SERVER, or the filters, "
                "--limit and --marker"
            )
        return tags_of(parsed_args.server, self.tags(parsed_args).list(parsed_args.server))

    def _all(self, parsed_args: argparse.Namespace) -> Listed:
        chosen, source = self.chosen(parsed_args), self.tags(parsed_args)
        rows: list[tuple[str, ...]] = []
        count = 0
        if isinstance(source, Operating):
            prefixes = source.service.prefixes
            owners = tuple(Owner) if parsed_args.owner is None else (Owner(parsed_args.owner),)
            names = {prefixes.of(owner): owner.value for owner in owners}
            for each in source.tagged(owners, *chosen):
                count += 1
                whose = (each.instance.id, each.instance.project)
                rows += [
                    (*whose, names[tag.prefix], tag.name, status.value)
                    for tag, status in sorted(each.tags.items())
                ]
        else:
            for server in source.servers(*chosen):
                count += 1
                whose = (server["id"], server["project"])
                statuses = server["statuses"]
                rows += [(*whose, Owner.USER.value, tag, statuses[tag]) for tag in server["tags"]]
        return Listed(kind="tags", rows=rows, summary={"servers": count, "tags": len(rows)})


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
        chosen = self.chosen(parsed_args)
        found = self.tags(parsed_args).servers(*chosen)
        rows = [
            (
                each["id"],
                each["name"],
                each["project"],
                each["user"],
                TagStatuses(each["statuses"]),
            )
            for each in found
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
