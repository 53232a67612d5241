"""The application: options that all commands share, and how errors end."""

import abc
import argparse
import contextlib
import logging
from collections.abc import Iterator, Sequence
from typing import Any

from cliff import app, command, commandmanager, lister, show
from oslo_config import cfg

import steelyard
from steelyard import conf as options
from steelyard import errors
from steelyard.scheduler import NoValidHost

NO_VALID_HOST = 1
NOT_THERE = 1
SOME_FAILED = 1
USERS_MISTAKE = 2
INTERNAL_ERROR = 70  # EX_SOFTWARE: never to be taken for "no valid host"
INTERRUPTED = 130  # as a shell has it of who is ended by SIGINT


class App(app.App):
    """Decides which hosts may take a workload and which is best, and says why."""

    # What plugins say at info level, the commands show in their own way.
    DEFAULT_VERBOSE_LEVEL = 0

    def __init__(self) -> None:
        super().__init__(
            description=self.__doc__,
            version=steelyard.__version__,
            command_manager=commandmanager.CommandManager("steelyard.commands"),
            deferred_help=True,
        )
        self._failed = False

    def build_option_parser(
        self, description: str | None, version: str | None, argparse_kwargs: Any = None
    ) -> argparse.ArgumentParser:
        parser = super().build_option_parser(description, version, argparse_kwargs)
        parser.add_argument(
            "--config-file",
            metavar="FILE",
            action="append",
            default=[],
            help="an oslo.config file with a [steelyard] group, or for doctor nova.conf; may be "
            "repeated, the last counts",
        )
        return parser

    def configure_logging(self) -> None:
        root = logging.getLogger("")
        before = list(root.handlers)
        try:
            super().configure_logging()
        except OSError as error:
            self.parser.error(f"--log-file: {error.filename}: {error.strerror}")
        ours = [handler for handler in root.handlers if handler not in before]
        # What no handler wants is not worth making: the reasons for each host, at debug level.
        root.setLevel(min(handler.level for handler in ours))
        # A warning about somebody's metadata belongs on the screen, with its level in front.
        for handler in ours:
            if type(handler) is logging.StreamHandler:
                handler.setFormatter(logging.Formatter("%(levelname)s: %(message)s"))

    def initialize_app(self, argv: list[str]) -> None:
        if not argv and not self.options.deferred_help:
            self.parser.error("a command is missing; --help lists them")

    def run(self, argv: list[str]) -> int:
        status = super().run(argv or ["--help"])
        return INTERNAL_ERROR if self._failed else status

    def clean_up(self, cmd: Any, result: int, err: BaseException | None) -> None:
        # Commands turn users' mistakes into a status; what gets here was not foreseen.
        self._failed = isinstance(err, Exception) and not isinstance(err, BrokenPipeError)
        if self._failed and not self.options.debug:
            self.LOG.error("this should not have happened; --debug shows where it did")


class Action(command.Command):
    """A command that ends with one clear line where it cannot do what it is asked for."""

    app: App
    opened: contextlib.ExitStack
    """Resources of the command, such as stores, which are closed when it ends."""

    def run(self, parsed_args: argparse.Namespace) -> int:
        try:
            with contextlib.ExitStack() as self.opened:
                return super().run(parsed_args)
        except NoValidHost as error:
            return self.end(error, NO_VALID_HOST)
        except (errors.SteelyardError, cfg.Error) as error:
            return self.end(error, USERS_MISTAKE)

    def configuration(self, overrides: Sequence[tuple[str, Any]] = ()) -> cfg.ConfigOpts:
        """The options from the files that the command line names, and from it directly."""
        conf, files = cfg.ConfigOpts(), self.app.options.config_file
        with self.reading(files):
            conf([], project="steelyard", default_config_files=files, default_config_dirs=[])
        options.register(conf)
        for name, value in overrides:
            conf.set_override(name, value, group=options.GROUP)
        return conf

    @contextlib.contextmanager
    def reading(self, files: Sequence[str]) -> Iterator[None]:
        """Makes mistakes of the user of what can go wrong while configuration files are read."""
        try:
            yield
        except OSError as error:
            raise errors.BadRequest(f"{error.filename}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise errors.BadRequest(f"{', '.join(files)}: is not UTF-8 text: {error}") from error

    def end(self, error: Exception, status: int) -> int:
        self.app.stdout.flush()  # what was listed comes before what is said of it
        self.app.stderr.write(f"steelyard: {error}\n")
        return status


class _Displaying(Action):
    """A command whose columns are known, and looked at, before it does anything."""

    @abc.abstractmethod
    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        """What there is to show."""

    @abc.abstractmethod
    def content(self, parsed_args: argparse.Namespace) -> Any:
        """Does what is asked for; the rows, or the one row, of what there is to show."""

    def take_action(self, parsed_args: argparse.Namespace) -> tuple[Any, Any]:
        names = self.column_names(parsed_args)
        for name in [*parsed_args.columns, *getattr(parsed_args, "sort_columns", [])]:
            if name not in names:
                raise errors.BadRequest(f"there is no column {name!r}{errors.near(name, names)}")
        return names, self.content(parsed_args)


class Listing(_Displaying, lister.Lister):
    """A command that lists rows."""


class Showing(_Displaying, show.ShowOne):
    """A command that shows one row, field by field."""
