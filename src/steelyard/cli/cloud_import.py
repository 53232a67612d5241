"""steelyard cloud import"""

import argparse
import os

from steelyard import errors, whole_files
from steelyard.cli import os_clouds
from steelyard.cli.app import INTERRUPTED, Action
from steelyard.cli.clouds import USUAL_FILE
from steelyard.cli.progress import watched
from steelyard.desk import importing, looking
from steelyard.desk.wording import counted
from steelyard.scheduler import Cloud, saved_cloud


class CloudImport(Action):
    """Write a cloud that runs down in a cloud file.

    Its Nova and its Placement are asked, and nothing in them is changed. What they do not show to
    these credentials is named, with what would show it, and so is what a cloud file cannot say.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--os-cloud", required=True, metavar="NAME", help="the cloud of clouds.yaml to ask"
        )
        parser.add_argument(
            "--output",
            metavar="FILE",
            default=USUAL_FILE,
            help=f"where to write to: JSON if the name ends in .json, else YAML; - writes YAML to "
            f"standard output; {USUAL_FILE} unless given",
        )
        parser.add_argument(
            "--replace", action="store_true", help="replace the file if it is there already"
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        try:
            return super().run(parsed_args)
        except KeyboardInterrupt:
            return self.end(errors.SteelyardError("interrupted: nothing is written"), INTERRUPTED)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        output = parsed_args.output
        if output != "-":
            _require_place(output, replace=parsed_args.replace)
        clients = os_clouds.compute_and_placement(parsed_args.os_cloud)
        imported = importing.imported(looking.look(*clients, watched))
        if output == "-":
            self.app.stdout.write(saved_cloud.as_text(imported.cloud, "standard output"))
        else:
            saved_cloud.create(output, imported.cloud, replace=parsed_args.replace)
        for remark in imported.remarks:
            self.app.stderr.write(f"steelyard: {remark}\n")
        name = "standard output" if output == "-" else output
        self.app.stderr.write(f"{name}: {_summary(imported.cloud)}\n")


def _require_place(output: str, *, replace: bool) -> None:
    """What can be wrong with it is better said before a large cloud is asked than afterwards."""
    if not output:
        raise errors.BadRequest("--output '': name a file, or - for standard output")
    if os.path.exists(output) and not replace:
        raise errors.Conflict(
            f"{output} is there already: replace it with --replace, or name another file with "
            f"--output"
        )
    try:
        whole_files.require_writable(output)
    except OSError as error:
        raise errors.BadRequest(f"{output}: cannot be saved: {error.strerror}") from error


def _summary(cloud: Cloud) -> str:
    sections = {
        "host": cloud.hosts,
        "aggregate": cloud.aggregates,
        "flavor": cloud.flavors,
        "server group": cloud.server_groups,
        "server": cloud.servers,
    }
    return ", ".join(counted(len(section), what) for what, section in sections.items())
