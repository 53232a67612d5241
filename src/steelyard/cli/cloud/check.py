"""The command ``check``."""

import argparse

from steelyard.analysis.checks import check
from steelyard.analysis.checks.accepted import Accepted
from steelyard.cli.inputs import clouds, parsing
from steelyard.cli.outputs import filter_logs, progress
from steelyard.cli.outputs.findings import FindingsListing, Report
from steelyard.cloud import garbage
from steelyard.cloud.files import loading


class CheckCommand(FindingsListing):
    """Report misconfigured aggregates and flavors.

    Placed servers are checked, too: the policies of their groups, whether their hosts would reject
    them today, and whether more is allocated on a host than it has.

    To accept findings, save them to a file with -f json or -f yaml, and name the file with
    --accepted.

    Hosts that a filter on trial would reject count as rejected.

    The exit status is 0 if nothing is found, 1 if something is found, and 2 if the input is
    invalid. Notes do not affect the exit status.
    """

    examples = (
        "steelyard check --example",
        "steelyard check --cloud cloud.yaml --accepted accepted.json",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        clouds.add_source(parser)
        parser.add_argument(
            "--accepted",
            metavar="FILE",
            type=parsing.file_name,
            help="file of accepted findings, JSON if the name ends in .json, else YAML",
        )
        return parser

    @garbage.paused()
    def examine(self, parsed_args: argparse.Namespace) -> Report:
        accepted = None
        if parsed_args.accepted is not None:
            content = loading.load_content(parsed_args.accepted)
            accepted = Accepted.parse(parsed_args.accepted, content)
        cloud = clouds.described(parsed_args)
        with filter_logs.suppressed():
            findings = check(cloud, self.configuration(), progress.watched)
        return Report(
            findings if accepted is None else accepted.without(findings),
            {
                "aggregate": len(cloud.aggregates),
                "flavor": len(cloud.flavors),
                "host": len(cloud.hosts),
                "server": len(cloud.servers),
                "group": len(cloud.server_groups),
            },
        )
