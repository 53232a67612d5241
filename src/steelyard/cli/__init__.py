"""The ``steelyard`` command."""

import sys
from collections.abc import Sequence


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command; the exit status is 0, 1 where no host fits, 2 for a user's mistake."""
    try:
        from steelyard.cli.app import App  # noqa: PLC0415  (needs the extra "cli")
    except ModuleNotFoundError as error:
        if error.name not in ("cliff", "yaml", "tqdm"):
            raise
        sys.stderr.write(
            "steelyard: the command needs its extra: python3 -m pip install 'steelyard[cli]'\n"
        )
        return 2
    return App().run(list(sys.argv[1:] if argv is None else argv))
