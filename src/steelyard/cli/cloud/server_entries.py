"""The commands ``server add`` and ``server delete``."""

import argparse
import uuid

from steelyard import errors
from steelyard.cli.commands import Command, Showing, Shown
from steelyard.cli.inputs import cloud_names, clouds
from steelyard.cli.inputs.clouds import OnCloudFile
from steelyard.cloud import Server
from steelyard.text.wording import counted


class ServerAdd(OnCloudFile, Showing):
    """Add a running server to a cloud file.

    The server is on the given host, whatever the filters say; 'schedule --commit' chooses a host.
    The file is rewritten, and the command reports lost comments and anchors.
    """

    examples = ("steelyard server add web-1 --flavor web --host node1 --cloud cloud.yaml",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="NAME", help="name of the server")
        parser.add_argument(
            "--flavor",
            metavar="NAME",
            type=cloud_names.FLAVOR,
            required=True,
            help="flavor of the server",
        )
        parser.add_argument(
            "--host",
            metavar="NAME",
            type=cloud_names.HOST,
            required=True,
            help="host of the server",
        )
        parser.add_argument(
            "--group",
            metavar="NAME",
            type=cloud_names.GROUP,
            help="server group of the server; default: no group",
        )
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Name", "Host", "Flavor", "Group", "UUID"

    def result(self, parsed_args: argparse.Namespace) -> Shown:
        saved = clouds.saved(parsed_args.cloud)
        name = parsed_args.name
        if any(server.name == name for server in saved.cloud.servers.values()):
            raise errors.Conflict(f"server {name!r} already exists; choose another name", name)
        flavor = saved.cloud.flavor(parsed_args.flavor)
        server = Server(str(uuid.uuid4()), name, flavor, parsed_args.host, parsed_args.group)
        clouds.save(saved, saved.cloud.with_servers([server]), self.app)
        return Shown(values=(name, server.host, flavor.name, server.group, server.uuid))


class ServerDelete(OnCloudFile, Command):
    """Remove servers from a cloud file.

    Recorded allocations stay. The file is rewritten, and the command reports lost comments and
    anchors.
    """

    examples = ("steelyard server delete web-1 web-2 --cloud cloud.yaml",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "server",
            metavar="SERVER",
            nargs="+",
            type=cloud_names.SERVER,
            help="name or UUID of a server; may be repeated",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        saved = clouds.saved(parsed_args.cloud)
        servers = {saved.cloud.server(each).uuid for each in parsed_args.server}
        clouds.save(saved, saved.cloud.without_servers(servers), self.app)
        self.confirm(f"{counted(len(servers), 'server')} deleted")
