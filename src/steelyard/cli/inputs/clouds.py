"""Cloud files that commands read and change."""

import argparse
import importlib.resources
import os
import sys
from collections.abc import Callable
from typing import IO, Any, TypeVar, cast

import tqdm
from oslo_log import log as logging

from steelyard import errors
from steelyard.cli.app import App
from steelyard.cli.commands import Command
from steelyard.cli.inputs import parsing
from steelyard.cli.inputs.cloud_names import EXAMPLE, FLAVOR, USUAL_FILES, usual_files
from steelyard.cli.outputs import progress
from steelyard.cloud import Cloud, model
from steelyard.cloud.files.saving import SavedCloud
from steelyard.traits import ProviderTrees, ResourceProvider

ValueT = TypeVar("ValueT")

LOG = logging.getLogger(__name__)


class OnCloudFile(Command):
    """A command that changes a cloud file, or checks whether it can."""

    purpose = "cloud file to change"
    """The start of the help of ``--cloud``."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--cloud",
            metavar="FILE",
            type=parsing.file_name,
            required=True,
            help=f"{self.purpose}, JSON if the name ends in .json, else YAML",
        )
        return parser


def add_source(parser: argparse.ArgumentParser) -> Any:
    """Add the options that choose the cloud, and return their group."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--cloud",
        metavar="FILE",
        type=parsing.file_name,
        help=f"cloud file to read, JSON if the name ends in .json, else YAML; - reads YAML from "
        f"standard input; default: {' or '.join(USUAL_FILES)}",
    )
    source.add_argument(
        "--example", action="store_true", help="use the cloud that comes with steelyard"
    )
    return source


def add_flavors(parser: argparse.ArgumentParser, purpose: str) -> None:
    """Add the option that chooses flavors; ``purpose`` begins its help."""
    parser.add_argument(
        "--flavor",
        metavar="NAME",
        type=FLAVOR,
        action="append",
        default=[],
        help=f"{purpose}; may be repeated; default: all flavors",
    )


def described(parsed_args: argparse.Namespace) -> Cloud:
    """Return the cloud that the arguments choose."""
    if parsed_args.example:
        with importlib.resources.as_file(EXAMPLE) as path:
            return Cloud.load(path)
    return read(file_name(parsed_args))


def called(parsed_args: argparse.Namespace) -> str:
    """Return a name of the chosen cloud for messages."""
    if parsed_args.example:
        return "the cloud that comes with steelyard"
    name = file_name(parsed_args)
    return "standard input" if name == "-" else name


def file_name(parsed_args: argparse.Namespace) -> str:
    """Return the path of the chosen cloud file.

    Raises BadRequest if there is no default file, or more than one.
    """
    if parsed_args.cloud is not None:
        return str(parsed_args.cloud)
    found = usual_files()
    if not found:
        raise errors.BadRequest(
            f"no {' or '.join(USUAL_FILES)} in the current directory: name a file with --cloud, "
            f"create one with 'steelyard cloud import', or use the cloud that comes with steelyard "
            f"with --example"
        )
    if len(found) > 1:
        raise errors.BadRequest(
            f"both {' and '.join(found)} are in the current directory: name one of them with "
            f"--cloud, or delete the other"
        )
    return found[0]


def read(path: str) -> Cloud:
    """Return the cloud in the file. ``-`` is standard input. Raises InvalidCloud."""
    return _read(path, model.read)


def read_either(path: str) -> Cloud | ProviderTrees[ResourceProvider]:
    """Return the cloud or the resource providers in the file, as ``read`` does."""
    return _read(path, model.read_either)


def _read(path: str, parse: Callable[[IO[str], str], ValueT]) -> ValueT:
    """Return the parsed file. Show a progress bar if reading takes long."""
    LOG.info("Reading the cloud from %s", "standard input" if path == "-" else path)
    if path == "-":
        return parse(sys.stdin, "standard input")
    try:
        with open(path, encoding="utf-8") as file:
            bar = tqdm.tqdm.wrapattr(
                file,
                "read",
                desc=f"reading {path}",
                total=os.fstat(file.fileno()).st_size,
                delay=progress.DELAY,
                leave=False,
                disable=not progress.visible(),
            )
            with bar as watched:
                return parse(cast(IO[str], watched), path)
    except OSError as error:
        raise errors.InvalidCloud(str(error.strerror), path) from error


def overrides(parsed_args: argparse.Namespace) -> list[tuple[str, Any]]:
    """Return the scheduler options that the command line overrides."""
    return [] if parsed_args.seed is None else [("seed", parsed_args.seed)]


def saved(path: str | None) -> SavedCloud:
    """Return the cloud in the file, ready to be changed and saved.

    Raises BadRequest if there is no file to write to.
    """
    if path in (None, "-"):
        raise errors.BadRequest("no file to change: name one with --cloud")
    return SavedCloud(path)


def save(changed: SavedCloud, cloud: Cloud, app: App) -> None:
    """Replace the file, and report comments and anchors that were lost."""
    changed.save(cloud)
    tell_unkept(changed, app)


def tell_unkept(changed: SavedCloud, app: App) -> None:
    """Report comments and anchors that were lost when the file was replaced."""
    if changed.unkept:
        app.stderr.write(f"steelyard: {changed.path}: lost its {' and '.join(changed.unkept)}\n")
