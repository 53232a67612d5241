"""The ``steelyard`` command."""

import sys
from collections.abc import Sequence

from steelyard import errors, extras
from steelyard.cli import complete_names
from steelyard.cli.outputs import streams

# The call of the completion script. It does not import the commands, which takes longer than
# reading a cloud file.
_COMPLETE_NAMES, _FEWEST_ARGUMENTS = "--complete-names", 3


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit status.

    0 is success, 1 a negative result such as no valid host, and 2 a mistake in the arguments or the
    input. :mod:`steelyard.cli.app` defines the statuses of other failures.
    """
    streams.prepare()
    arguments = list(sys.argv[1:] if argv is None else argv)
    try:
        if arguments[:1] == [_COMPLETE_NAMES] and len(arguments) > _FEWEST_ARGUMENTS:
            return complete_names.main(arguments[1:])
        with extras.required("cli", "the steelyard command"):
            from steelyard.cli.app import App  # noqa: PLC0415  (an extra)
        return App().run(arguments)
    except errors.MissingExtra as error:
        sys.stderr.write(f"steelyard: {error}\n")
        return 2
