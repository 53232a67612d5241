"""The options of commands that record the allocations of servers they commit."""

import argparse
import contextlib

from steelyard.cli.inputs.consumer_models import OnConsumers
from steelyard.scheduler import FilterScheduler, Selection
from steelyard.scheduler.recording import Recorder

# The default project and user of recorded allocations.
DEFAULT_ID = "default"


class Recording(OnConsumers):
    """A command that can record the allocations of committed servers."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        model = parser.add_mutually_exclusive_group()
        model.add_argument(
            "--url", help="SQLAlchemy URL of the consumer store in which to record the allocations"
        )
        model.add_argument(
            "--os-cloud",
            metavar="NAME",
            help="cloud in clouds.yaml with the Placement in which to record the allocations",
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
        """Return a context that records the selection, if the command line asks for it.

        If the block raises, the records are undone.
        """
        if not records(parsed_args):
            return contextlib.nullcontext()
        owner = [DEFAULT_ID if given is None else given for given in (project, user)]
        return Recorder(scheduler, self.model(parsed_args), *owner).recorded(selection)


def records(parsed_args: argparse.Namespace) -> bool:
    return parsed_args.url is not None or parsed_args.os_cloud is not None
