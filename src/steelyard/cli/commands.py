"""Base classes of commands that act, list rows or show one thing."""

import abc
import argparse
import contextlib
import dataclasses
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cliff import command, display, lister, show
from oslo_config import cfg

from steelyard import conf as options
from steelyard import errors, plugins
from steelyard.cli.inputs import parsing
from steelyard.cli.outputs import columns, formats
from steelyard.cloud import Cloud
from steelyard.scheduler import FilterScheduler, NoValidHost
from steelyard.tags.backends.base import TAG_BACKENDS
from steelyard.text import escapes

# Generic for type checkers. At run time, the oldest supported cliff is not generic.
if TYPE_CHECKING:
    from steelyard.cli.app import App

    _CliffDisplay = display.DisplayCommandBase[Any]
else:
    _CliffDisplay = display.DisplayCommandBase

LOG = logging.getLogger(__name__)

NO_VALID_HOST = 1
TAG_MISSING = 1
SOME_FAILED = 1
NOT_CONFIRMED = 1
USERS_MISTAKE = parsing.USAGE_ERROR
INTERRUPTED = 130  # as in a shell, for a process that SIGINT ended

_EXPECTED = (errors.SteelyardError, cfg.Error)

_TABLE = "table"
# Formats for people, not for programs.
_LAID_OUT = frozenset({_TABLE, formats.TEXT})


class Parsed(command.Command):
    """A command with steelyard's parser. List it after classes of cliff that add options."""

    app: "App"
    examples: tuple[str, ...] = ()
    """Command lines for the end of the help."""

    def get_epilog(self) -> str:
        # cliff's method would read the metadata of all installed distributions for each command.
        if not self.examples:
            return ""
        # A literal block of reStructuredText, for the documentation.
        return "\n".join(["examples::\n", *(f"  {each}" for each in self.examples)])

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        return parsing.Parser(
            prog=prog_name, description=self.get_description(), epilog=self.get_epilog()
        )


class Command(Parsed):
    """A command that reports expected errors in one line and returns an exit status."""

    opened: contextlib.ExitStack
    """Resources of the command, such as stores, which are closed when it exits."""

    def run(self, parsed_args: argparse.Namespace) -> int:
        try:
            with contextlib.ExitStack() as self.opened:
                # Skip the method of cliff's display commands, whose exit status is always 0.
                return command.Command.run(self, parsed_args)
        except NoValidHost as error:
            return self.end(error, NO_VALID_HOST)
        except _EXPECTED as error:
            return self.end(error, USERS_MISTAKE)

    def configuration(self, overrides: Sequence[tuple[str, Any]] = ()) -> cfg.ConfigOpts:
        """Return the configuration from the files on the command line, with the overrides.

        If the command fails, unknown options are logged as a possible cause.
        """
        conf = cfg.ConfigOpts()
        self.opened.enter_context(self._warning_on_failure(conf))
        files = self.app.options.config_file
        for file in files:
            LOG.info("Reading options from %s", file)
        with self.reading(files):
            conf([], project="steelyard", default_config_files=files, default_config_dirs=[])
        options.register(conf)
        for name, value in overrides:
            conf.set_override(name, value, group=options.GROUP)
        return conf

    @contextlib.contextmanager
    def _warning_on_failure(self, conf: cfg.ConfigOpts) -> Iterator[None]:
        """Log unknown options if the block fails, since a typo may be the cause."""
        try:
            yield
        except NoValidHost:
            raise
        except _EXPECTED:
            self.warn_of_unknown_options(conf)
            raise

    def warn_of_unknown_options(self, conf: cfg.ConfigOpts) -> None:
        """Log a warning for each unknown option, as schedulers and services do.

        For commands that construct no plugins. Plugins register options, so they are constructed
        here. If that fails, only names that resemble a known option are logged.
        """
        of_services = (options.TAGS_GROUP, options.CONSUMERS_GROUP)
        group = next((each for each in of_services if each in conf), options.GROUP)
        try:
            if group == options.TAGS_GROUP:
                plugins.load(TAG_BACKENDS, [options.register_tags(conf).backend], conf)
            elif group == options.GROUP:
                FilterScheduler(Cloud({}, {}, {}, {}, {}), conf)
        except (errors.SteelyardError, cfg.Error):
            options.warn_of_typos(conf, group)
        else:
            options.warn_of_unknown(conf, group)

    @contextlib.contextmanager
    def reading(self, files: Sequence[str]) -> Iterator[None]:
        """Turn errors from reading these files into BadRequest."""
        try:
            yield
        except cfg.ConfigFilesNotFoundError as error:
            missing = ", ".join(error.config_files)
            raise errors.BadRequest(f"--config-file: no such file: {missing}") from error
        except cfg.ConfigFileParseError as error:
            why = str(error.msg).removeprefix("at ")
            raise errors.BadRequest(f"{why}; correct the line") from error
        except OSError as error:
            raise errors.BadRequest(f"{error.filename}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise errors.BadRequest(f"{', '.join(files)}: not UTF-8 text: {error}") from error

    def tell(self, text: str) -> None:
        """Write a summary to standard error, after the result, unless --quiet was given."""
        if not self.app.options.quiet:
            self.app.stdout.flush()
            self.app.stderr.write(f"steelyard: {escapes.escaped_lines(text)}\n")

    def confirm(self, text: str) -> None:
        """Write a confirmation to standard output, as the only result, unless --quiet was given."""
        if not self.app.options.quiet:
            self.app.stdout.write(f"{escapes.escaped_lines(text)}\n")

    def end(self, error: Exception, status: int) -> int:
        """Write the error and its notes, a line each, and return the exit status."""
        self.app.stdout.flush()  # so that the rows precede the error
        # These errors have several lines by design, and escape the text that they quote.
        layout = isinstance(error, (errors.InvalidQuery, NoValidHost))
        text = escapes.escaped_lines(str(error)) if layout else escapes.escaped(str(error))
        for each in (text, *map(escapes.escaped, getattr(error, "__notes__", ()))):
            self.app.stderr.write(f"steelyard: {each}\n")
        return status


@dataclasses.dataclass(frozen=True, kw_only=True)
class Listed:
    """The result of a command that lists."""

    kind: str
    """The plural noun for the rows, which is their key in JSON and YAML."""
    rows: Iterable[tuple[Any, ...]]
    summary: Mapping[str, Any]
    """Facts about all rows, for JSON and YAML. The keys are in snake case."""
    totals: Sequence[tuple[Any, ...]] = ()
    """Rows behind the others, for tables only. Other formats have no rows that add up others."""
    told: Sequence[str] = ()
    """The summary as text, for standard error."""
    status: int = 0
    error: Exception | None = None
    """The error that ended the work, written after the rows."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Shown:
    """The result of a command that shows one thing."""

    values: tuple[Any, ...]
    """The values of the fields."""
    told: Sequence[str] = ()
    """The summary as text, for standard error."""
    status: int = 0
    error: Exception | None = None
    """The error that the command ends with. Then only JSON and YAML print the fields."""


# Replaces cliff's help of its own options.
_HELP = {
    "formatter": "output format; default: {default}",
    "columns": "column to show; may be repeated; default: all columns",
    "sort_columns": "column to sort by; may be repeated, the first counts most; default: unsorted",
    "quote_mode": "values to quote in csv; default: {default}",
    "noindent": "print JSON in one line",
    "prefix": "prefix of the variable names; default: no prefix",
    "max_width": "width of tables in characters, 0 for no limit; default: the environment variable "
    "CLIFF_MAX_TERM_WIDTH, or 0",
    "fit_width": "fit tables to the width of the terminal; CLIFF_FIT_WIDTH=1 in the environment "
    "does the same",
    "print_empty": "print a table even if it has no rows",
}


class _Displaying(Command):
    """A command that validates column names before it does its work.

    Untrusted text is escaped in tables, and in all formats on a terminal. Otherwise, formats for
    programs print it unchanged; JSON and YAML have their own escapes.
    """

    formatter: Any
    """A formatter of cliff, or one that wraps it."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        for action in parser._actions:
            if action.dest in _HELP:
                action.help = _HELP[action.dest].format(default=action.default)
        return parser

    @abc.abstractmethod
    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        """Return the names of the columns, or of the fields."""

    @abc.abstractmethod
    def result(self, parsed_args: argparse.Namespace) -> Any:
        """Do the command's work and return the result to write."""

    @abc.abstractmethod
    def write(self, result: Any, names: tuple[str, ...], parsed_args: argparse.Namespace) -> int:
        """Write the result in the chosen format, and return the exit status."""

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        names = self.column_names(parsed_args)
        for option in ("columns", "sort_columns"):
            given = vars(parsed_args).get(option, [])
            setattr(parsed_args, option, [columns.named(each, names) for each in given])
        return self.write(self.result(parsed_args), names, parsed_args)

    def cells(self, row: Iterable[Any], parsed_args: argparse.Namespace) -> tuple[Any, ...]:
        """Return the cells as the chosen format prints them."""
        return tuple(map(self.printed(parsed_args), row))

    def printed(self, parsed_args: argparse.Namespace) -> Callable[[Any], Any]:
        """Return the function that turns a cell into what the chosen format prints."""
        if parsed_args.formatter in formats.DOCUMENTS:
            return columns.machine_readable
        if parsed_args.formatter in _LAID_OUT:
            return columns.shown
        return columns.flat_and_shown if self.app.stdout.isatty() else columns.flat


class Listing(_Displaying, lister.Lister, _CliffDisplay, Parsed):
    """A command that lists rows."""

    @property
    def need_sort_by_cliff(self) -> bool:
        """Whether cliff sorts the rows."""
        # It cannot sort some cells, and sorts others as text.
        return False

    @abc.abstractmethod
    def result(self, parsed_args: argparse.Namespace) -> Listed:
        """Do the command's work and return the rows with their summary."""

    def write(self, result: Listed, names: tuple[str, ...], parsed_args: argparse.Namespace) -> int:
        self.write_rows(result, names, parsed_args)
        for line in result.told:
            self.tell(line)
        return result.status if result.error is None else self.end(result.error, result.status)

    def write_rows(
        self, listed: Listed, names: tuple[str, ...], parsed_args: argparse.Namespace
    ) -> None:
        """Write the rows, and in JSON and YAML the summary."""
        if parsed_args.formatter == _TABLE and listed.error is not None and not listed.rows:
            return  # the error alone is clearer than an empty table
        if parsed_args.formatter == _TABLE and not listed.rows and not parsed_args.print_empty:
            return  # cliff would print an empty line
        by = [names.index(name) for name in parsed_args.sort_columns]
        rows = list(listed.rows)
        if by:
            rows.sort(
                key=lambda row: [columns.order(row[index]) for index in by],
                reverse=parsed_args.sort_direction == "desc",
            )
        if parsed_args.formatter == _TABLE:
            rows += listed.totals
        self.formatter = self._formatter_plugins[parsed_args.formatter].obj
        if parsed_args.formatter in formats.DOCUMENTS:
            self.formatter = formats.Document(self.formatter, listed.kind, listed.summary)
        else:
            self.formatter = formats.AtOnce(self.formatter)
        printed = self.printed(parsed_args)
        self.produce_output(parsed_args, names, [tuple(map(printed, row)) for row in rows])


class Showing(_Displaying, show.ShowOne, _CliffDisplay, Parsed):
    """A command that shows one thing, field by field."""

    @abc.abstractmethod
    def result(self, parsed_args: argparse.Namespace) -> Shown:
        """Do the command's work and return the fields."""

    def write(self, result: Shown, names: tuple[str, ...], parsed_args: argparse.Namespace) -> int:
        structured = parsed_args.formatter in formats.DOCUMENTS
        self.formatter = self._formatter_plugins[parsed_args.formatter].obj
        if structured:
            self.formatter = formats.Fields(self.formatter)
        elif parsed_args.formatter == formats.SHELL:
            self.formatter = formats.Shell(self.formatter)
        if structured or result.error is None:
            self.produce_output(parsed_args, names, self.cells(result.values, parsed_args))
        for line in result.told:
            self.tell(line)
        return result.status if result.error is None else self.end(result.error, result.status)


class Narrating(Showing):
    """A command whose result is text of several lines, or fields in JSON and YAML.

    The text is escaped where it is made, and JSON and YAML have their own escapes.
    """

    fields: tuple[str, ...]
    """The names of the fields in JSON and YAML."""

    @property
    def formatter_default(self) -> str:
        return formats.TEXT

    def _load_formatter_plugins(self) -> Any:
        found = super()._load_formatter_plugins()
        documents = found.make_test_instance(
            [each for each in found if each.name in formats.DOCUMENTS]
        )
        return formats.with_text(documents, formats.TextLines)

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return ("Text",) if parsed_args.formatter == formats.TEXT else self.fields

    def cells(self, row: Iterable[Any], parsed_args: argparse.Namespace) -> tuple[Any, ...]:
        return tuple(row)
