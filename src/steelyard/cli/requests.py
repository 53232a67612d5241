"""What a command needs to know of a request: the cloud, the flavor, the group."""

import argparse

from steelyard import errors
from steelyard.cli import clouds
from steelyard.cli.app import Listing
from steelyard.scheduler import Cloud, FilterScheduler, Request

# What the example is asked for when nothing else is said: it shows most at once.
_EXAMPLE_FLAVOR = "web.small"
_EXAMPLE_GROUP = "web"


class RequestListing(Listing):
    """A command that asks the scheduler for hosts."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        clouds.add_source(parser)
        parser.add_argument(
            "--flavor", metavar="NAME", help="what each server gets; needed with --cloud"
        )
        parser.add_argument("--group", metavar="NAME", help="the server group to place it in")
        parser.add_argument("--seed", type=int, help="where random numbers start from")
        return parser

    def scheduler(self, parsed_args: argparse.Namespace) -> FilterScheduler:
        overrides = clouds.overrides(parsed_args)
        return FilterScheduler(self.cloud(parsed_args), self.configuration(overrides))

    def request(self, parsed_args: argparse.Namespace, scheduler: FilterScheduler) -> Request:
        if parsed_args.flavor is not None:
            return scheduler.request(parsed_args.flavor, parsed_args.group)
        if not parsed_args.example:
            names = ", ".join(map(repr, scheduler.cloud.flavors)) or "none at all"
            raise errors.BadRequest(f"--flavor is missing; the cloud has {names}")
        group = _EXAMPLE_GROUP if parsed_args.group is None else parsed_args.group
        return scheduler.request(_EXAMPLE_FLAVOR, group)

    def cloud(self, parsed_args: argparse.Namespace) -> Cloud:
        return clouds.described(parsed_args)
