"""The ``steelyard`` command."""

import sys
from collections.abc import Sequence

from steelyard import errors, extras


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; the exit status is 0, 1 where no host fits, 2 for a user's mistake."""
    try:
        with extras.required("cli", "the steelyard command"):
            # cliff silently leaves out subcommands that fail to import: those that show progress.
            import tqdm  # noqa: F401, PLC0415  (an extra)

            from steelyard.cli.app import App  # noqa: PLC0415  (an extra)
    except errors.MissingExtra as error:
        sys.stderr.write(f"steelyard: {error}\n")
        return 2
    return App().run(list(sys.argv[1:] if argv is None else argv))
