"""Command lines that pages show, to be pasted into a shell."""

import dataclasses
import os
import shlex
from collections.abc import Iterable, Iterator, Sequence


@dataclasses.dataclass(frozen=True)
class Invocation:
    """A call of steelyard without the arguments that a page adds."""

    config_files: Sequence[str] = ()
    options: Sequence[tuple[str, str | None]] = ()
    """The options of the command, each with its value; None for a flag."""

    def command_line(self, command: str, more: Iterable[tuple[str, str | None]] = ()) -> str:
        """Return the command line of a command, with more options at its end."""
        files = [("--config-file", file) for file in self.config_files]
        words = ["steelyard", *_words(files), command, *_words((*self.options, *more))]
        return " ".join(map(_quoted, words))


def _words(options: Iterable[tuple[str, str | None]]) -> Iterator[str]:
    for option, value in options:
        if value is not None and value.startswith("-") and value != "-":
            yield f"{option}={value}"  # argparse takes a word that begins with a dash as an option
            continue
        yield option
        if value is not None:
            yield value


def _quoted(word: str) -> str:
    """Return the word as a shell reads it; only bash reads words with unprintable characters."""
    if word.isprintable():
        return shlex.quote(word)
    return f"$'{''.join(map(_escaped, word))}'"


def _escaped(char: str) -> str:
    if char in "\\'":
        return f"\\{char}"
    if char.isprintable():
        return char
    return "".join(f"\\x{byte:02x}" for byte in os.fsencode(char))
