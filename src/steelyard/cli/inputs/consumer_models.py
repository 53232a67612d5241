"""The options of commands on consumers: a consumer model at a URL, or the Placement of a cloud."""

import argparse
from typing import Any

from steelyard import conf as options
from steelyard import errors
from steelyard.cli.commands import Command
from steelyard.cli.inputs import os_clouds
from steelyard.consumers import base

URL_EXAMPLES = "such as sqlite:////var/lib/consumers.db or postgresql+psycopg://host/db"


def add_source(parser: argparse.ArgumentParser) -> None:
    """Add the options --url and --os-cloud, one of which is required."""
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--url", help=f"SQLAlchemy URL of the consumer store, {URL_EXAMPLES}")
    source.add_argument(
        "--os-cloud", metavar="NAME", help="cloud in clouds.yaml with the Placement to use"
    )


class OnConsumers(Command):
    """A command on the configured consumer model at --url, or on the Placement of --os-cloud."""

    def model(self, parsed_args: argparse.Namespace, *more: str) -> Any:
        """Return the consumer model, whose connections are closed at the end of the command.

        ``more`` are methods that the command needs and the contract does not require. Raises
        BadRequest if the model lacks one.
        """
        name = self.model_name(parsed_args)
        model = base.load_model(name, self.where(parsed_args, name))
        # Third-party models may lack the method.
        if hasattr(model, "close"):
            self.opened.callback(model.close)
        for method in more:
            if not hasattr(model, method):
                raise errors.BadRequest(
                    f"the consumer model {name!r} has no method {method!r}, which this command "
                    f"needs; see 'Consumer models' in the reference of plugins"
                )
        return model

    def model_name(self, parsed_args: argparse.Namespace) -> str:
        if vars(parsed_args).get("os_cloud") is not None:
            return os_clouds.MODEL
        conf = self.configuration()
        if self.app.options.config_file:
            self.warn_of_unknown_options(conf)
        name: str = options.register(conf).consumer_model
        return name

    def where(self, parsed_args: argparse.Namespace, name: str) -> Any:
        """Return the argument of the constructor of the model with this name."""
        if vars(parsed_args).get("os_cloud") is not None:
            return os_clouds.connect(parsed_args.os_cloud).placement()
        if name == os_clouds.MODEL:
            raise errors.BadRequest(
                f"--url and the option consumer_model = {os_clouds.MODEL} contradict each other: "
                f"name a cloud with --os-cloud instead, or set the option to sql"
            )
        return parsed_args.url
