"""The application: common options, logging, and the exit status after errors."""

import argparse
import contextlib
import logging
import sys
from collections.abc import Sequence
from typing import Any, TextIO, cast

from cliff import app, command, commandmanager

import steelyard
from steelyard import extras, plugins
from steelyard.cli.commands import USERS_MISTAKE, Parsed
from steelyard.cli.complete import Complete
from steelyard.cli.inputs import parsing
from steelyard.cli.outputs import progress, streams
from steelyard.text import escapes, logs

INTERNAL_ERROR = 70  # EX_SOFTWARE, which differs from all results of commands
CANNOT_WRITE = 74  # EX_IOERR: standard output is full or closed
BROKEN_PIPE = 141  # as in a shell, for a process that SIGPIPE ended

_LEVELS = (logging.WARNING, logging.INFO, logging.DEBUG)


class _Commands(commandmanager.CommandManager):
    """The commands. Each word of a name may be abbreviated."""

    def load_commands(self, namespace: str) -> None:
        """Find the commands of the entry point group, and import none of them.

        cliff itself imports all, which takes a third of the time of a short command, and omits
        those that fail.
        """
        self.group_list.append(namespace)
        for point in plugins.registered(namespace):
            self.commands[point.name.replace("_", " ")] = point

    def find_command(self, argv: list[str]) -> tuple[type[command.Command], str, list[str]]:
        """Return the command class, its full name and the remaining arguments.

        cliff itself returns an abbreviated name as it was typed. Raises MissingExtra if the command
        needs a package that is not installed.
        """
        with extras.required("cli", "the steelyard command"):
            kind, typed, rest = super().find_command(argv)
        names = [name for name, _ in self]
        if typed not in names:
            (typed,) = (name for name in names if parsing.abbreviates(typed, name))
        return kind, typed, rest


class App(app.App):
    """Decide which hosts may take a workload and which is best, and explain why."""

    parser: parsing.Parser

    def __init__(self) -> None:
        super().__init__(
            description=self.__doc__,
            version=steelyard.__version__,
            command_manager=_Commands("steelyard.commands"),
            # cliff asks for TextIO, and uses only attributes that these wrappers have.
            stdout=cast(TextIO, streams.Output(sys.stdout)),
            stderr=cast(TextIO, streams.Errors(sys.stderr)),
        )
        self.command_manager.add_command("help", Help)
        self.command_manager.add_command("complete", Complete)

    def build_option_parser(
        self, description: str | None, version: str | None, argparse_kwargs: Any = None
    ) -> parsing.Parser:
        # Options of commands pass through this parser, so it must not expand abbreviations.
        parser = parsing.Parser(
            prog=self.NAME, description=description, add_help=False, allow_abbrev=False
        )
        parser.add_argument("-h", "--help", action="store_true", help="show this help and exit")
        parser.add_argument(
            "--version",
            action="version",
            version=f"{self.NAME} {version}",
            help="show the version and exit",
        )
        amount = parser.add_mutually_exclusive_group()
        amount.add_argument(
            "-v",
            "--verbose",
            action="count",
            dest="verbose_level",
            default=0,
            help="show the files that are read and the steps of long work; -vv adds debug messages",
        )
        amount.add_argument(
            "-q",
            "--quiet",
            action="store_true",
            help="hide summaries and progress; show only results, warnings and errors",
        )
        parser.add_argument(
            "--log-file",
            metavar="FILE",
            type=parsing.file_name,
            help="file to append log messages to",
        )
        parser.add_argument(
            "--debug", action="store_true", help="show the traceback of an internal error"
        )
        parser.add_argument(
            "--config-file",
            metavar="FILE",
            type=parsing.file_name,
            action="append",
            default=[],
            help="oslo.config file to read, or nova.conf for doctor; may be repeated, and later "
            "files take precedence",
        )
        return parser

    def configure_logging(self) -> None:
        root, level = logging.getLogger(), _LEVELS[min(self.options.verbose_level, 2)]
        console = logging.StreamHandler(self.stderr)
        console.setLevel(level)
        # Show the level, so that a warning about metadata is recognised as one.
        console.setFormatter(_formatter("%(levelname)s: %(message)s"))
        if level != logging.DEBUG:
            console.addFilter(_is_for_operators)
        root.addHandler(console)
        if self.options.log_file is not None:
            try:
                file = logging.FileHandler(self.options.log_file)
            except OSError as error:
                self.parser.error(f"--log-file: {error.filename}: {error.strerror}")
            file.setFormatter(_formatter(self.LOG_FILE_MESSAGE_FORMAT))
            root.addHandler(file)
            level = logging.DEBUG
        # Do not create messages that no handler writes: there may be one for each host.
        root.setLevel(level)

    def initialize_app(self, argv: list[str]) -> None:
        progress.quiet.set(self.options.quiet)
        if argv[:1] == ["--"]:
            del argv[0]
        if self.options.help:
            argv[:] = self._help_arguments(parsing.command_words(argv))
            self.interactive_mode = False
        if not argv:
            self.parser.error("missing command")

    def run(self, argv: list[str]) -> int:
        try:
            status = self._run(argv or ["--help"])
            self.stdout.flush()
        except BrokenPipeError:
            status = BROKEN_PIPE
        except streams.Unwritable as error:
            self.stderr.write(f"steelyard: {error.message}\n")
            status = CANNOT_WRITE
        else:
            return status
        streams.discard(sys.stdout)
        return status

    def _run(self, argv: list[str]) -> int:
        try:
            return super().run(argv)
        except parsing.UsageError as error:
            if not set(parsing.HELP).isdisjoint(parsing.before_separator(argv)):
                return self._run(self._help_arguments(self.parser.words_after_options(argv)))
            self.stderr.write(f"{escapes.escaped_lines(error.message)}\n")
            return USERS_MISTAKE

    def _help_arguments(self, words: list[str]) -> list[str]:
        """Return the arguments that print the help of the command that the words begin with."""
        with contextlib.suppress(ValueError):
            words = self.command_manager.find_command(words)[1].split()
        return ["help", *words]

    def run_subcommand(self, argv: list[str]) -> int:
        self.require_command(argv)
        kind, name, rest = self.command_manager.find_command(argv)
        found = kind(self, self.options, cmd_name=name)
        try:
            parsed_args = found.get_parser(f"{self.NAME} {name}").parse_args(rest)
            return found.run(parsed_args)
        except BrokenPipeError:
            raise
        # Commands return a status for users' mistakes; any other exception is a bug.
        except Exception as error:
            self.LOG.error(error, exc_info=self.options.debug)
            if not self.options.debug:
                self.LOG.error("internal error; run again with --debug and report it")
            return INTERNAL_ERROR

    def require_command(self, argv: Sequence[str]) -> tuple[type[command.Command], str, list[str]]:
        """Return the command at the start of the arguments, its name and the remaining arguments.

        Raises UsageError if the arguments do not start with a command.
        """
        words = parsing.command_words(argv)
        if not words:
            if argv[0].startswith("-"):
                self.parser.require_option(argv[0].partition("=")[0])
            self.parser.error("missing command")
        try:
            return self.command_manager.find_command(words)
        except ValueError:
            names = [name for name, _ in self.command_manager]
            self.parser.error(parsing.unknown_command(words, names))


def _formatter(form: str) -> logging.Formatter:
    return logs.EscapingFormatter(logging.Formatter(form))


def _is_for_operators(record: logging.LogRecord) -> bool:
    """Return whether to show a record: one of steelyard, or a warning of another library."""
    # keystoneauth warns of an unreachable service, which an error of steelyard then reports.
    if record.name.startswith("keystoneauth.identity"):
        return False
    return record.levelno >= logging.WARNING or record.name.partition(".")[0] == "steelyard"


class Help(Parsed):
    """Show the help of a command, or list the commands."""

    examples = (
        "steelyard help",
        "steelyard help tags backend set",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "words",
            metavar="COMMAND",
            nargs="*",
            help="command, or first word of several; default: all commands",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        words = parsed_args.words
        group = " ".join(words)
        commands = dict(self.app.command_manager)
        below = parsing.subcommands(group, commands)
        if not words:
            text = self.app.parser.format_help() + self._listed(sorted(commands))
        elif below:
            text = f"usage: {self.app.NAME} {group} COMMAND ...\n"
            text += self._listed([f"{group} {name}" for name in below])
        else:
            kind, name, rest = self.app.require_command(words)
            if rest:
                self.app.parser.error(f"help {name}: {parsing.UNEXPECTED.format(rest[0])}")
            found = kind(self.app, self.app.options, cmd_name=name)
            text = found.get_parser(f"{self.app.NAME} {name}").format_help()
        self.app.stdout.write(text)

    def _listed(self, names: Sequence[str]) -> str:
        width = max(map(len, names))
        lines = [f"  {name:{width}}  {self._summary(name)}\n" for name in names]
        return f"\ncommands:\n{''.join(lines)}"

    def _summary(self, name: str) -> str:
        kind, _, _ = self.app.command_manager.find_command(name.split())
        description: str = kind(self.app, None).get_description()
        return description.partition("\n")[0].rstrip(".")
