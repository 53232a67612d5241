"""Output formats in addition to those of cliff."""

import argparse
import io
import re
import shutil
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TextIO

from cliff.formatters import base
from stevedore import extension

from steelyard.cli.outputs import columns

TEXT = "text"
SHELL = "shell"
DOCUMENTS = frozenset({"json", "yaml"})
# Characters that a shell expands within double quotes.
_EXPANDED = re.compile(r"[\\$`]")
_INDENT = "    "


class _Prepared:
    """A formatter that prepares data for a formatter of cliff."""

    def __init__(self, formatter: Any) -> None:
        self._formatter = formatter

    def add_argument_group(self, parser: argparse.ArgumentParser) -> None:
        self._formatter.add_argument_group(parser)


class AtOnce(_Prepared, base.ListFormatter):
    """The same text, written at once.

    Formatters write each row or word by itself, which takes longer than all the rest.
    """

    def emit_list(
        self,
        column_names: Sequence[str],
        data: Iterable[Sequence[Any]],
        stdout: TextIO,
        parsed_args: argparse.Namespace,
    ) -> None:
        text = io.StringIO()
        self._formatter.emit_list(column_names, data, text, parsed_args)
        stdout.write(text.getvalue())


class Document(_Prepared, base.ListFormatter):
    """JSON or YAML with a summary, and the rows under the name of their kind."""

    def __init__(self, formatter: Any, kind: str, summary: Mapping[str, Any]) -> None:
        """Wrap cliff's formatter, which formats both lists and single objects."""
        super().__init__(formatter)
        self._kind = kind
        self._summary = summary

    def emit_list(
        self,
        column_names: Sequence[str],
        data: Iterable[Sequence[Any]],
        stdout: TextIO,
        parsed_args: argparse.Namespace,
    ) -> None:
        keys = list(map(columns.key, column_names))
        rows = [dict(zip(keys, row, strict=True)) for row in data]
        text = io.StringIO()  # as in AtOnce
        self._formatter.emit_one(
            ("summary", self._kind), (dict(self._summary), rows), text, parsed_args
        )
        stdout.write(text.getvalue())


class Fields(_Prepared, base.SingleFormatter):
    """JSON or YAML with the fields of one thing."""

    def emit_one(
        self,
        column_names: Sequence[str],
        data: Sequence[Any],
        stdout: TextIO,
        parsed_args: argparse.Namespace,
    ) -> None:
        self._formatter.emit_one(list(map(columns.key, column_names)), data, stdout, parsed_args)


class Shell(_Prepared, base.SingleFormatter):
    """Shell assignments with values in which the shell expands nothing.

    Cliff's own formatter escapes quotation marks only.
    """

    def emit_one(
        self,
        column_names: Sequence[str],
        data: Sequence[Any],
        stdout: TextIO,
        parsed_args: argparse.Namespace,
    ) -> None:
        safe = [_EXPANDED.sub(r"\\\g<0>", each) if isinstance(each, str) else each for each in data]
        self._formatter.emit_one(column_names, safe, stdout, parsed_args)


class TextLines(base.SingleFormatter):
    """The lines of a text; the only field has them."""

    def add_argument_group(self, parser: argparse.ArgumentParser) -> None:
        """Add nothing: text has no options."""

    def emit_one(
        self,
        column_names: Sequence[str],
        data: Sequence[Any],
        stdout: TextIO,
        parsed_args: argparse.Namespace,
    ) -> None:
        (lines,) = data
        stdout.write("".join(f"{line}\n" for line in lines))


def with_text(found: Any, formatter: type[Any]) -> Any:
    """Return the plugins of cliff's formatters, and this one for text."""
    # An entry point would add the format to every command of every program that uses cliff.
    point: Any = None  # stevedore uses it only to describe the origin of a plugin
    text: Any = extension.Extension(TEXT, point, formatter, formatter())
    return found.make_test_instance([*found, text])


class FindingBlocks(base.ListFormatter):
    """A block of text for each finding, wrapped to the width of the terminal."""

    def add_argument_group(self, parser: argparse.ArgumentParser) -> None:
        """Add nothing: the table formatter already adds ``--max-width``."""

    def emit_list(
        self,
        column_names: Sequence[str],
        data: Iterable[Sequence[Any]],
        stdout: TextIO,
        parsed_args: argparse.Namespace,
    ) -> None:
        given = parsed_args.max_width
        width = given if given > 0 else shutil.get_terminal_size().columns
        for row in data:
            lines = _block(dict(zip(column_names, row, strict=True)), width)
            stdout.write("".join(f"{line}\n" for line in lines))


def _block(cells: Mapping[str, Any], width: int) -> Iterator[str]:
    """Yield the lines of a finding, with an empty line after a block of several parts."""
    heading = _joined(": ", cells, "Severity", "Check", "Subject")
    place = _joined(":", cells, "File", "Line")
    message = ": ".join(filter(None, (place, cells.get("Message"))))
    remedy = f"remedy: {cells['Remedy']}" if "Remedy" in cells else ""
    parts = [part for part in (heading, message, remedy) if part]
    for part in parts:
        indent, further = ("", 2 * _INDENT) if part is heading else (_INDENT, _INDENT)
        yield from textwrap.wrap(
            part,
            width,
            initial_indent=indent,
            subsequent_indent=further,
            break_long_words=False,
            break_on_hyphens=False,
        )
    if len(parts) > 1:
        yield ""


def _joined(separator: str, cells: Mapping[str, Any], *names: str) -> str:
    return separator.join(str(cells[name]) for name in names if cells.get(name))
