"""The options that make up a request to the scheduler: cloud, flavor, group."""

import argparse
from typing import Any

from steelyard import errors
from steelyard.cli.commands import Listing
from steelyard.cli.inputs import cloud_names, clouds
from steelyard.cloud import Cloud
from steelyard.scheduler import FilterScheduler, Request

# The default request to the example cloud, chosen to show as much as possible.
_EXAMPLE_FLAVOR = "web.small"
_EXAMPLE_GROUP = "web"


class RequestListing(Listing):
    """A command that sends a request to the scheduler."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        clouds.add_source(parser)
        parser.add_argument(
            "--flavor",
            metavar="NAME",
            type=cloud_names.FLAVOR,
            help="flavor of the servers; default with --example: web.small in group web",
        )
        parser.add_argument(
            "--group", metavar="NAME", type=cloud_names.GROUP, help="server group of the servers"
        )
        parser.add_argument(
            "--seed", type=int, help="seed of random choices; default: seed in [steelyard]"
        )
        return parser

    def scheduler(self, parsed_args: argparse.Namespace, cloud: Cloud) -> FilterScheduler:
        return FilterScheduler(cloud, self.configuration(clouds.overrides(parsed_args)))

    def request(self, parsed_args: argparse.Namespace, scheduler: FilterScheduler) -> Request:
        if parsed_args.flavor is not None:
            return scheduler.request(parsed_args.flavor, parsed_args.group)
        if not parsed_args.example:
            raise missing_flavor(scheduler.cloud)
        group = _EXAMPLE_GROUP if parsed_args.group is None else parsed_args.group
        return scheduler.request(_EXAMPLE_FLAVOR, group)


def asked(request: Request) -> dict[str, Any]:
    """Return the flavor and group of the request, for the summary."""
    group = request.instance_group
    return {"flavor": request.flavor.name, "group": None if group is None else group.name}


def missing_flavor(cloud: Cloud) -> errors.BadRequest:
    """Return the error of a command without ``--flavor``, which lists the flavors of the cloud."""
    names = ", ".join(map(repr, cloud.flavors))
    available = f"available: {names}" if names else "the cloud has no flavors"
    return errors.BadRequest(f"missing --flavor; {available}")
