"""steelyard server list|move|evacuate|rebuild"""

import abc
import argparse
import contextlib
from typing import Any

from steelyard.cli import clouds
from steelyard.cli.app import Listing, Showing
from steelyard.cli.clouds import OnCloudFile
from steelyard.cli.columns import Number
from steelyard.cli.recording import Recording
from steelyard.scheduler import FilterScheduler, Selection


class ServerList(OnCloudFile, Listing):
    """List the servers of a cloud file, and where they are."""

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Name", "Host", "Flavor", "Group", "UUID"

    def content(self, parsed_args: argparse.Namespace) -> Any:
        servers = clouds.read(parsed_args.cloud).servers.values()
        return [
            (server.name, server.host, server.flavor.name, server.group or "", server.uuid)
            for server in servers
        ]


class _OneServer(OnCloudFile, Showing):
    """Asks the scheduler about one server, and puts it where it says."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("server", metavar="SERVER", help="its name or its UUID")
        parser.add_argument("--seed", type=int, help="where random numbers start from")
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Server", "From", "To", "Weight", "Hosts that fit"

    def content(self, parsed_args: argparse.Namespace) -> Any:
        saved = clouds.saved(parsed_args.cloud)
        scheduler = FilterScheduler(saved.cloud, self.configuration(clouds.overrides(parsed_args)))
        server = scheduler.cloud.server(parsed_args.server)
        selection = self.select(scheduler, server.uuid)
        (decision,) = selection.decisions
        (chosen,) = selection.servers
        if chosen.host != server.host:
            with self.meanwhile(parsed_args, scheduler, selection):
                scheduler.commit(selection)
                saved.save(scheduler.cloud)
            # Afterwards: what fails in there is taken back, and the file would not be.
            clouds.tell_unkept(saved, self.app)
        return (
            server.name,
            server.host,
            chosen.host,
            Number(decision.hosts[0].weight),
            len(decision.weighed),
        )

    @abc.abstractmethod
    def select(self, scheduler: FilterScheduler, uuid: str) -> Selection:
        """What the scheduler says."""

    def meanwhile(
        self, parsed_args: argparse.Namespace, scheduler: FilterScheduler, selection: Selection
    ) -> contextlib.AbstractContextManager[None]:
        """What else is done while the file is changed."""
        return contextlib.nullcontext()


class ServerMove(Recording, _OneServer):
    """Move a server of a cloud file to another host, as a migration would.

    With --url or --os-cloud, what is recorded there as allocated to it from its host moves too;
    what it has from elsewhere stays as it is.

    The file is replaced as a whole; its comments and anchors are not kept, which is said. The exit
    status is 1 when no other host fits.
    """

    def select(self, scheduler: FilterScheduler, uuid: str) -> Selection:
        return scheduler.select_move(uuid)

    def meanwhile(
        self, parsed_args: argparse.Namespace, scheduler: FilterScheduler, selection: Selection
    ) -> contextlib.AbstractContextManager[None]:
        return self.recorded(parsed_args, scheduler, selection)


class ServerEvacuate(ServerMove):
    """Move a server of a cloud file from a host that is lost to another one.

    The scheduler decides as for a migration. The file is replaced as a whole; its comments
    and anchors are not kept, which is said. The exit status is 1 when no other host fits.
    """


class ServerRebuild(_OneServer):
    """Rebuild a server of a cloud file where it is.

    Nothing moves and nothing is changed: it says whether the scheduler lets the server stay. Only
    filters that judge rebuilds are asked. The exit status is 1 when one of them rejects the host.
    """

    def select(self, scheduler: FilterScheduler, uuid: str) -> Selection:
        return scheduler.select_rebuild(uuid)
