"""The names that the script of ``steelyard complete`` asks for."""

import sys
from collections.abc import Sequence

from steelyard.cli.inputs import cloud_names, shell_words


def main(arguments: Sequence[str]) -> int:
    """Write the completions of one word, a line each, and return the exit status.

    The arguments are the section of the cloud file or another kind of name, the two parts of the
    word as in :func:`shell_words.completions`, and the words of the command line before it. Names
    that the encoding of standard output lacks are left out.
    """
    section, kept, typed, *words = arguments
    names = cloud_names.names(section, list(map(shell_words.expanded, words)))
    for each in shell_words.completions(names, kept, typed):
        if _is_encodable(each):
            sys.stdout.write(f"{each}\n")
    return 0


def _is_encodable(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        return False
    return True
