"""The command ``tags doctor``."""

import argparse

from steelyard import errors, extras
from steelyard.cli.outputs.findings import FindingsListing, Report


class TagsDoctor(FindingsListing):
    """Report errors and risks in the setup of the tag service.

    The command checks the options and the permissions of the files, then the database, the backend
    and the broker that they name. It creates the queues if they are missing, as the processes do,
    and changes nothing else.

    The exit status is 0 if nothing is found, 1 if something is found, and 2 if the configuration
    cannot be read. Notes do not affect the exit status.
    """

    examples = ("steelyard --config-file /etc/steelyard/steelyard.conf tags doctor",)

    def examine(self, parsed_args: argparse.Namespace) -> Report:
        with extras.required("sql", "the tag service"):
            from steelyard.tags.doctor import examine  # noqa: PLC0415  (an extra)
        files = self.app.options.config_file
        if not files:
            raise errors.BadRequest(
                "missing --config-file: name each file of the configuration of the tag service"
            )
        return Report(examine(self.configuration()), {"file": len(files)})
