"""The commands ``server list``, ``server move``, ``server evacuate`` and ``server rebuild``."""

import abc
import argparse
import contextlib
import dataclasses
from collections.abc import Sequence
from typing import Any

from steelyard.cli.commands import NO_VALID_HOST, Listed, Listing, Showing, Shown
from steelyard.cli.inputs import cloud_names, clouds
from steelyard.cli.inputs.clouds import OnCloudFile
from steelyard.cli.inputs.recording import Recording
from steelyard.cli.outputs import formats
from steelyard.cli.outputs.columns import Causes, Number
from steelyard.scheduler import FilterScheduler, NoValidHost, Selection
from steelyard.scheduler.decision import Cause


class ServerList(Listing):
    """List the servers of a cloud and their hosts."""

    examples = (
        "steelyard server list --example",
        "steelyard server list --cloud cloud.yaml -f json",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        clouds.add_source(parser)
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Name", "Host", "Flavor", "Group", "UUID"

    def result(self, parsed_args: argparse.Namespace) -> Listed:
        servers = clouds.described(parsed_args).servers.values()
        return Listed(
            kind="servers",
            rows=[
                (server.name, server.host, server.flavor.name, server.group, server.uuid)
                for server in servers
            ],
            summary={"servers": len(servers)},
        )


class _OneServer(OnCloudFile, Showing):
    """A command that selects a host for an existing server, and moves the server there."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "server", metavar="SERVER", type=cloud_names.SERVER, help="name or UUID of the server"
        )
        parser.add_argument(
            "--seed", type=int, help="seed of random choices; default: seed in [steelyard]"
        )
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        columns = "Server", "From", "To", "Weight", "Hosts that fit"
        return (*columns, "Causes") if parsed_args.formatter in formats.DOCUMENTS else columns

    def result(self, parsed_args: argparse.Namespace) -> Shown:
        saved = clouds.saved(parsed_args.cloud)
        scheduler = FilterScheduler(saved.cloud, self.configuration(clouds.overrides(parsed_args)))
        server = scheduler.cloud.server(parsed_args.server)
        try:
            selection = self.select(scheduler, server.uuid)
        except NoValidHost as error:
            nowhere = (server.name, server.host, None, None, 0)
            shown = _shown(parsed_args, nowhere, causes=error.decision.causes)
            return dataclasses.replace(shown, status=NO_VALID_HOST, error=error)
        (decision,) = selection.decisions
        (chosen,) = selection.servers
        if chosen.host != server.host:
            with self.meanwhile(parsed_args, scheduler, selection):
                scheduler.commit(selection)
                saved.save(scheduler.cloud)
            # Only after the block: an error inside it would undo the records, but not the file.
            clouds.tell_unkept(saved, self.app)
        where = (server.name, server.host, chosen.host)
        weight = Number(decision.hosts[0].weight)
        return _shown(parsed_args, (*where, weight, len(decision.weighed)), causes=[])

    @abc.abstractmethod
    def select(self, scheduler: FilterScheduler, uuid: str) -> Selection:
        """Return the scheduler's selection for the server."""

    def meanwhile(
        self, parsed_args: argparse.Namespace, scheduler: FilterScheduler, selection: Selection
    ) -> contextlib.AbstractContextManager[None]:
        """Return the context in which the cloud file is changed, by default an empty one."""
        return contextlib.nullcontext()


def _shown(
    parsed_args: argparse.Namespace, values: tuple[Any, ...], causes: Sequence[Cause]
) -> Shown:
    """Return the fields, for programs with the causes of rejections."""
    structured = parsed_args.formatter in formats.DOCUMENTS
    return Shown(values=(*values, Causes(causes)) if structured else values)


class ServerMove(Recording, _OneServer):
    """Move a server of a cloud file to another host.

    The scheduler chooses the host as for a migration. With --url or --os-cloud, the server's
    recorded allocations on its host move too; its other allocations stay.

    The file is rewritten, and the command reports lost comments and anchors. The exit status is 1
    if no other host fits.
    """

    examples = ("steelyard server move web-1 --cloud cloud.yaml",)

    def select(self, scheduler: FilterScheduler, uuid: str) -> Selection:
        return scheduler.select_move(uuid)

    def meanwhile(
        self, parsed_args: argparse.Namespace, scheduler: FilterScheduler, selection: Selection
    ) -> contextlib.AbstractContextManager[None]:
        return self.recorded(parsed_args, scheduler, selection)


class ServerEvacuate(ServerMove):
    """Move a server of a cloud file away from a failed host.

    The scheduler chooses the host as for a migration. The file is rewritten, and the command
    reports lost comments and anchors. The exit status is 1 if no other host fits.
    """

    examples = ("steelyard server evacuate web-1 --cloud cloud.yaml",)


class ServerRebuild(_OneServer):
    """Check whether a server of a cloud file can be rebuilt.

    The server is rebuilt on its host, so nothing moves, and the command changes nothing. Only
    filters that apply to rebuilds are run. The exit status is 1 if one of them rejects the host.
    """

    purpose = "cloud file with the server"
    examples = ("steelyard server rebuild web-1 --cloud cloud.yaml",)

    def select(self, scheduler: FilterScheduler, uuid: str) -> Selection:
        return scheduler.select_rebuild(uuid)
