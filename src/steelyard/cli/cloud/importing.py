"""The command ``cloud import``."""

import argparse
import os

from steelyard import errors
from steelyard.cli.commands import INTERRUPTED, Command
from steelyard.cli.inputs import os_clouds, parsing
from steelyard.cli.inputs.cloud_names import IMPORTED_FILE, USUAL_FILES, usual_files
from steelyard.cli.outputs.progress import watched
from steelyard.cloud import Cloud
from steelyard.cloud.files import saving
from steelyard.live import fetching, importing
from steelyard.text import escapes, whole_files
from steelyard.text.wording import counted


class CloudImport(Command):
    """Export a live cloud to a cloud file.

    The command reads from Nova and Placement and changes nothing there. It reports data that the
    credentials do not show, with the role or policy that would show it, and facts that a cloud file
    cannot express.
    """

    examples = (
        "steelyard cloud import --os-cloud mycloud",
        "steelyard cloud import --os-cloud mycloud --output today.yaml",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--os-cloud", required=True, metavar="NAME", help="cloud in clouds.yaml to export"
        )
        parser.add_argument(
            "--output",
            metavar="FILE",
            type=parsing.file_name,
            default=IMPORTED_FILE,
            help="cloud file to write, JSON if the name ends in .json, else YAML; - writes YAML to "
            f"standard output; default: {IMPORTED_FILE}",
        )
        parser.add_argument("--replace", action="store_true", help="replace the file if it exists")
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        try:
            return super().run(parsed_args)
        except KeyboardInterrupt:
            return self.end(errors.SteelyardError("interrupted: nothing was written"), INTERRUPTED)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        output = parsed_args.output
        if output != "-":
            _require_place(output, replace=parsed_args.replace)
        clients = os_clouds.connect(parsed_args.os_cloud).compute_and_placement()
        imported = importing.imported(fetching.look(*clients, watched))
        if output == "-":
            self.app.stdout.write(saving.as_text(imported.cloud, "standard output"))
        else:
            saving.create(output, imported.cloud, replace=parsed_args.replace)
        for remark in imported.remarks:
            self.app.stderr.write(f"steelyard: {escapes.escaped(remark)}\n")
        name = "standard output" if output == "-" else output
        self.tell(f"{name}: {_summary(imported.cloud)}")


def _require_place(output: str, *, replace: bool) -> None:
    """Raise an error if the file cannot be written, before a large cloud is read.

    Raises Conflict if the file exists and ``replace`` is false, or if commands would then find two
    files by default; otherwise BadRequest.
    """
    if os.path.abspath(output) in map(os.path.abspath, USUAL_FILES):
        for other in usual_files():
            if os.path.abspath(other) != os.path.abspath(output):
                raise errors.Conflict(
                    f"cannot write {output!r}: {other!r} exists too, and commands read one of them "
                    f"by default; delete {other!r}, or replace it with --output {other} --replace"
                )
    if os.path.exists(output) and not replace:
        raise errors.Conflict(
            f"{output!r} already exists: replace it with --replace, or name another file with "
            f"--output"
        )
    try:
        whole_files.require_writable(output)
    except OSError as error:
        raise errors.BadRequest(f"cannot write {output!r}: {error.strerror}") from error


def _summary(cloud: Cloud) -> str:
    sections = {
        "host": cloud.hosts,
        "aggregate": cloud.aggregates,
        "flavor": cloud.flavors,
        "server group": cloud.server_groups,
        "server": cloud.servers,
    }
    return ", ".join(counted(len(section), what) for what, section in sections.items())
