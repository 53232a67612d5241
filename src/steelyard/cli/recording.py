"""Where commands record what is allocated to the servers that they commit."""

import argparse
import contextlib
from typing import Any

from steelyard import conf as options
from steelyard import errors
from steelyard.cli import os_clouds
from steelyard.cli.app import Action
from steelyard.cli.consumers import existing
from steelyard.scheduler import FilterScheduler, Selection
from steelyard.scheduler.recording import Recorder

# Whose servers are, where nothing else is said.
NOBODY = "default"


class Recording(Action):
    """A command that can record what it commits."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        model = parser.add_mutually_exclusive_group()
        model.add_argument(
            "--url", help="a store of consumers, in which to record the allocations too"
        )
        model.add_argument(
            "--os-cloud",
            metavar="NAME",
            help="a cloud of clouds.yaml, in whose Placement to record the allocations too",
        )
        return parser

    def recorded(
        self,
        parsed_args: argparse.Namespace,
        scheduler: FilterScheduler,
        selection: Selection,
        project: str | None = None,
        user: str | None = None,
    ) -> contextlib.AbstractContextManager[None]:
        """Records the selection, if the command line says where, and keeps it if all goes well."""
        if not records(parsed_args):
            return contextlib.nullcontext()
        model = scheduler.consumers(self._where(parsed_args))
        # Models of other distributions may lack the method.
        if hasattr(model, "close"):
            self.opened.callback(model.close)
        whose = [NOBODY if given is None else given for given in (project, user)]
        return Recorder(scheduler, model, *whose).recorded(selection)

    def _where(self, parsed_args: argparse.Namespace) -> Any:
        """What the model is made of."""
        if parsed_args.os_cloud is not None:
            return os_clouds.placement(parsed_args.os_cloud)
        if self.configuration()[options.GROUP].consumer_model == os_clouds.MODEL:
            raise errors.BadRequest(
                f"--url and the option consumer_model = {os_clouds.MODEL} contradict each other: "
                f"name a cloud with --os-cloud instead, or set the option to sql"
            )
        return existing(parsed_args.url)


def records(parsed_args: argparse.Namespace) -> bool:
    return parsed_args.url is not None or parsed_args.os_cloud is not None
