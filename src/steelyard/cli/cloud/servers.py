"""The commands ``server list``, ``server move``, ``server evacuate`` and ``server rebuild``."""

import abc
import argparse
import contextlib
from typing import Any

from steelyard import errors
from steelyard.cli.commands import NO_VALID_HOST, Listed, Listing, Showing, Shown
from steelyard.cli.inputs import cloud_names, clouds
from steelyard.cli.inputs.clouds import OnCloudFile
from steelyard.cli.inputs.recording import Recording
from steelyard.cli.outputs import formats
from steelyard.cli.outputs.columns import NO_CAUSES, Causes, Number
from steelyard.cli.outputs.rejections import RejectionCells
from steelyard.cloud import Cloud, garbage
from steelyard.scheduler import FilterScheduler, NoValidHost, Selection, several
from steelyard.text.wording import counted


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
        return _columns(parsed_args)

    def result(self, parsed_args: argparse.Namespace) -> Shown:
        saved = clouds.saved(parsed_args.cloud)
        scheduler = FilterScheduler(saved.cloud, self.configuration(clouds.overrides(parsed_args)))
        server = scheduler.cloud.server(parsed_args.server)
        try:
            selection = self.select(scheduler, server.uuid)
        except NoValidHost as error:
            nowhere = (server.name, server.host, None, None, 0)
            rejections = RejectionCells(scheduler)
            rejections.note_typos(error)
            values = _values(parsed_args, nowhere, rejections.causes(error.decision))
            return Shown(values=values, status=NO_VALID_HOST, error=error)
        (decision,) = selection.decisions
        (chosen,) = selection.servers
        if chosen.host != server.host:
            with self.meanwhile(parsed_args, scheduler, selection):
                scheduler.commit(selection)
                saved.save(scheduler.cloud)
            # Only after the block: an error inside it would undo the records, but not the file.
            clouds.tell_unkept(saved, self.app)
        where = (server.name, server.host, chosen.host)
        weight = Number(decision.chosen and decision.chosen.weight)
        values = (*where, weight, decision.fitting)
        return Shown(values=_values(parsed_args, values, NO_CAUSES))

    @abc.abstractmethod
    def select(self, scheduler: FilterScheduler, uuid: str) -> Selection:
        """Return the scheduler's selection for the server."""

    def meanwhile(
        self, parsed_args: argparse.Namespace, scheduler: FilterScheduler, selection: Selection
    ) -> contextlib.AbstractContextManager[None]:
        """Return the context in which the cloud file is changed, by default an empty one."""
        return contextlib.nullcontext()


def _columns(parsed_args: argparse.Namespace) -> tuple[str, ...]:
    columns = "Server", "From", "To", "Weight", "Hosts that fit"
    return (*columns, "Causes") if parsed_args.formatter in formats.DOCUMENTS else columns


def _values(
    parsed_args: argparse.Namespace, values: tuple[Any, ...], causes: Causes
) -> tuple[Any, ...]:
    """Return the values of the columns, for programs with the causes of rejections."""
    structured = parsed_args.formatter in formats.DOCUMENTS
    return (*values, causes) if structured else values


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


class ServerEvacuate(Recording, OnCloudFile, Listing):
    """Move the servers of a cloud file away from failed hosts.

    The scheduler chooses the hosts as for a migration. With --host, all servers of these hosts
    move, the largest first, and to none of these hosts. Servers of a group with the policy
    affinity move together. With --url or --os-cloud, the recorded allocations of the servers on
    their hosts move too; their other allocations stay.

    The file is rewritten once, and the command reports lost comments and anchors. A server that
    no other host fits stays, and then the exit status is 1.
    """

    examples = (
        "steelyard server evacuate web-1 --cloud cloud.yaml",
        "steelyard server evacuate --host node1 --host node2 --cloud cloud.yaml",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "server",
            metavar="SERVER",
            nargs="?",
            type=cloud_names.SERVER,
            help="name or UUID of the server; default: all servers of the failed hosts",
        )
        parser.add_argument(
            "--host",
            action="append",
            metavar="HOST",
            type=cloud_names.HOST,
            help="failed host, instead of SERVER; may be repeated",
        )
        parser.add_argument(
            "--seed", type=int, help="seed of random choices; default: seed in [steelyard]"
        )
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return _columns(parsed_args)

    @garbage.paused()
    def result(self, parsed_args: argparse.Namespace) -> Listed:
        if (parsed_args.server is None) == (parsed_args.host is None):
            raise errors.BadRequest(
                "expected the name of a server, or failed hosts with --host, but not both"
            )
        saved = clouds.saved(parsed_args.cloud)
        scheduler = FilterScheduler(saved.cloud, self.configuration(clouds.overrides(parsed_args)))
        found = self._select(parsed_args, scheduler)
        if found.selection.decisions:
            with self.recorded(parsed_args, scheduler, found.selection):
                scheduler.commit(found.selection)
                saved.save(scheduler.cloud)
            # Only after the block: an error inside it would undo the records, but not the file.
            clouds.tell_unkept(saved, self.app)
        return _evacuated(parsed_args, saved.cloud, found, RejectionCells(scheduler))

    def _select(
        self, parsed_args: argparse.Namespace, scheduler: FilterScheduler
    ) -> several.Evacuation:
        if parsed_args.server is None:
            return several.select_evacuation(scheduler, set(parsed_args.host))
        server = scheduler.cloud.server(parsed_args.server)
        try:
            return several.Evacuation(scheduler.select_move(server.uuid), {})
        except NoValidHost as error:
            return several.Evacuation(Selection(scheduler.version, ()), {server.uuid: error})


def _evacuated(
    parsed_args: argparse.Namespace,
    cloud: Cloud,
    found: several.Evacuation,
    rejections: RejectionCells,
) -> Listed:
    """Return a row for each server that moved and each that has no other host."""
    rows = []
    for decision, chosen in zip(found.selection.decisions, found.selection.servers, strict=True):
        values = (chosen.name, cloud.servers[chosen.uuid].host, chosen.host)
        weight = Number(decision.chosen and decision.chosen.weight)
        rows.append(_values(parsed_args, (*values, weight, decision.fitting), NO_CAUSES))
    moved = len(rows)
    stranded = [cloud.servers[uuid] for uuid in found.stranded]
    if moved or parsed_args.formatter in formats.DOCUMENTS:
        for server in stranded:
            nowhere = (server.name, server.host, None, None, 0)
            causes = rejections.causes(found.stranded[server.uuid].decision)
            rows.append(_values(parsed_args, nowhere, causes))
    error = next(iter(found.stranded.values()), None)
    if error is not None:
        rejections.note_typos(error)
    total = moved + len(stranded)
    if error is not None and total > 1:
        error.add_note(
            f"no valid host for {len(stranded)} of {counted(total, 'server')}, which stay where "
            f"they are: {', '.join(repr(server.name) for server in stranded)}"
        )
    return Listed(
        kind="servers",
        rows=rows,
        summary={"servers": total, "moved": moved},
        told=[] if parsed_args.host is None else [f"{counted(moved, 'server')} moved"],
        status=0 if error is None else NO_VALID_HOST,
        error=error,
    )


class ServerRebuild(_OneServer):
    """Check whether a server of a cloud file can be rebuilt.

    The server is rebuilt on its host, so nothing moves, and the command changes nothing. Only
    filters that apply to rebuilds are run. The exit status is 1 if one of them rejects the host.
    """

    purpose = "cloud file with the server"
    examples = ("steelyard server rebuild web-1 --cloud cloud.yaml",)

    def select(self, scheduler: FilterScheduler, uuid: str) -> Selection:
        return scheduler.select_rebuild(uuid)
