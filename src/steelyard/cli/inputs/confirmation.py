"""Questions to the operator before a command deletes something."""

import sys

from steelyard import errors

_YES = ("y", "yes")


def confirmed(question: str) -> bool:
    """Return whether the operator answers the question with yes.

    Raises BadRequest if standard input is not a terminal.
    """
    if not sys.stdin.isatty():
        raise errors.BadRequest(
            "cannot ask for a confirmation: standard input is not a terminal; add --yes"
        )
    # Standard output has only results.
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in _YES
