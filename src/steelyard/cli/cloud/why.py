"""The command ``why``."""

import argparse
import dataclasses
import datetime
from typing import NamedTuple

from steelyard import errors
from steelyard.analysis.why import answer as answers
from steelyard.analysis.why import cloud_facts
from steelyard.analysis.why.answer import Answer
from steelyard.analysis.why.comparing import InstalledNova
from steelyard.analysis.why.facts import GivenRequest
from steelyard.analysis.why.inquiry import Inquiry
from steelyard.analysis.why.local import LocalPlacement
from steelyard.analysis.why.placement_view import PlacementView
from steelyard.analysis.why.switches import Switches
from steelyard.cli.commands import Narrating, Shown
from steelyard.cli.inputs import cloud_names, clouds, installed_nova, os_clouds
from steelyard.cli.outputs import answers as texts
from steelyard.cli.outputs import filter_logs, formats, progress
from steelyard.cloud.wanted import Source
from steelyard.live import at_once
from steelyard.live.why.looking import look
from steelyard.live.why.placement import LivePlacement
from steelyard.scheduler.rules import NovaRules

_FITS_NOW = 1
_NOTHING_READ = 2


class WhyCommand(Narrating):
    """Show why a server was not placed.

    The command rebuilds the request that Nova sent to Placement for the server, or would send for a
    flavor. If Placement has no candidates, it finds a minimal set of demands without which
    candidates remain. It then applies Nova's filters, as far as their answers can be computed from
    readable data, and shows what Nova recorded about the build.

    The command only reads. With --os-cloud, it reads a live cloud, which needs the role admin; the
    answer names all data that the credentials do not show. With a cloud file, SERVER is a server of
    the file, whose request is made again.

    Name the files of Nova's configuration with --config-file, so that the answer need not assume
    Nova's defaults.

    The exit status is 0 if a cause or a later failure is named, 1 if a host fits now and no record
    explains the failure, and 2 if the input is invalid or nothing can be read.
    """

    fields = (
        "Summary",
        "Repair",
        "Not judged",
        "Causes",
        "Nearest",
        "Events",
        "Assumptions",
        "Not known",
        "Ignored",
        "Differences",
        "Filters not applied",
    )
    examples = (
        "steelyard --config-file /etc/nova/nova.conf why web-7 --os-cloud mycloud",
        "steelyard why --example --flavor gpu.large",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "server",
            metavar="SERVER",
            nargs="?",
            type=cloud_names.SERVER,
            help="name or UUID of a server in the status ERROR or BUILD; default: a request with "
            "the options below, which no server needs to exist for",
        )
        clouds.add_source(parser).add_argument(
            "--os-cloud", metavar="NAME", help="cloud in clouds.yaml to read"
        )
        for option, metavar, text in (
            ("--flavor", "NAME", "flavor of the server"),
            ("--image", "NAME", "name or UUID of the image of the server"),
            ("--availability-zone", "ZONE", "availability zone that the user requested"),
            ("--host", "HOST", "host that the user requested"),
            ("--group", "GROUP", "name or UUID of the server group"),
            ("--project", "ID", "project of the server"),
        ):
            parser.add_argument(
                option, metavar=metavar, help=f"{text}; default: that of SERVER, if it is known"
            )
        parser.add_argument(
            "--boot-from-volume",
            action="store_true",
            help="request the flavor with its root disk on a volume; needs --os-cloud",
        )
        return parser

    def result(self, parsed_args: argparse.Namespace) -> Shown:
        with filter_logs.suppressed():
            found = self._answer(parsed_args)
        values: tuple[object, ...] = (list(texts.lines(found)),)
        if parsed_args.formatter != formats.TEXT:
            values = tuple(answers.as_dict(found).values())
        unexplained = _NOTHING_READ if found.stage is None else _FITS_NOW
        return Shown(values=values, status=0 if found.explains else unexplained)

    def _answer(self, parsed_args: argparse.Namespace) -> Answer:
        given = GivenRequest(
            flavor=parsed_args.flavor or "",
            image=parsed_args.image or "",
            availability_zone=parsed_args.availability_zone or "",
            host=parsed_args.host or "",
            group=parsed_args.group or "",
            project=parsed_args.project or "",
            boot_from_volume=parsed_args.boot_from_volume,
        )
        switches = self._switches()
        conf = self.configuration()
        if parsed_args.os_cloud is None:
            cloud = clouds.described(parsed_args)
            facts = cloud_facts.facts_of(cloud, parsed_args.server, given)
            rest = cloud_facts.without(cloud, parsed_args.server)
            placement: PlacementView | None = LocalPlacement(rest, conf)
            observed = Source.FILE
            loaded = at_once.started(_installed_nova)
        else:
            clients = os_clouds.connect(parsed_args.os_cloud).clients()
            loaded = at_once.started(_installed_nova)
            facts = look(clients, parsed_args.server, given, progress.watched)
            placement = None if clients.placement is None else LivePlacement(clients.placement)
            observed = Source.NOW
        nova = loaded.result()
        if nova.fault:
            facts = dataclasses.replace(facts, assumptions=[*facts.assumptions, nova.fault])
        inquiry = Inquiry(
            switches=switches,
            placement=placement,
            observed=observed,
            nova=nova.requests,
            rules=nova.rules,
            conf=conf,
            watch=progress.watched,
        )
        return inquiry.answer(facts, datetime.datetime.now(datetime.UTC))

    def _switches(self) -> Switches:
        files = self.app.options.config_file
        if not files:
            return Switches()
        with self.reading(files):
            return Switches.of_files(files)


class _Nova(NamedTuple):
    """The code of an installed Nova; None without a usable one."""

    requests: InstalledNova | None = None
    rules: NovaRules | None = None
    fault: str = ""
    """The reason why an installed Nova cannot be used."""


def _installed_nova() -> _Nova:
    """Return the code of the Nova in this environment."""
    try:
        return _Nova(installed_nova.requests(), installed_nova.rules())
    except errors.BadRequest as error:
        return _Nova(fault=str(error))
