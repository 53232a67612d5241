"""Cloud files as commands read and change them."""

import argparse
import importlib.resources
import os
import sys
from typing import IO, Any, cast

import tqdm

from steelyard import errors
from steelyard.cli import os_clouds
from steelyard.cli.app import Action, App
from steelyard.scheduler import Cloud, cloud_file
from steelyard.scheduler.saved_cloud import SavedCloud

USUAL_FILE = "cloud.yaml"
"""What is read, and what an import writes, where no other name is given."""


class OnCloudFile(Action):
    """A command on the cloud that a file describes."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--cloud",
            metavar="FILE",
            required=True,
            help="the described cloud: JSON if the name ends in .json, else YAML; where nothing is "
            "changed, - reads YAML from standard input",
        )
        return parser


def add_source(parser: argparse.ArgumentParser) -> None:
    """The options that say which cloud a command looks at."""
    source = parser.add_mutually_exclusive_group()
    source.add_argument(
        "--cloud",
        metavar="FILE",
        help=f"the described cloud: JSON if the name ends in .json, else YAML; - reads YAML from "
        f"standard input; {USUAL_FILE} unless given",
    )
    source.add_argument(
        "--example", action="store_true", help="the cloud that comes with steelyard"
    )


def described(parsed_args: argparse.Namespace) -> Cloud:
    """The cloud that a command is to look at."""
    if parsed_args.example:
        example = importlib.resources.files("steelyard.scheduler") / "example.yaml"
        with importlib.resources.as_file(example) as path:
            return Cloud.load(path)
    return read(file_name(parsed_args))


def called(parsed_args: argparse.Namespace) -> str:
    """What to call the cloud that a command looks at."""
    if parsed_args.example:
        return "the cloud that comes with steelyard"
    name = file_name(parsed_args)
    return "standard input" if name == "-" else name


def file_name(parsed_args: argparse.Namespace) -> str:
    """The file that describes the cloud which a command is to look at."""
    if parsed_args.cloud is not None:
        return str(parsed_args.cloud)
    if not os.path.exists(USUAL_FILE):
        raise errors.BadRequest(
            f"there is no {USUAL_FILE} here: name a file with --cloud, make one with 'steelyard "
            f"cloud import', or try the cloud that comes with steelyard with --example"
        )
    return USUAL_FILE


def read(path: str) -> Cloud:
    """The cloud that the file describes, with a progress bar where it takes long."""
    if path == "-":
        return cloud_file.read(sys.stdin, "standard input")
    try:
        with open(path, encoding="utf-8") as file:
            bar = tqdm.tqdm.wrapattr(
                file,
                "read",
                desc=f"reading {path}",
                total=os.fstat(file.fileno()).st_size,
                delay=1,
                leave=False,
                disable=not sys.stderr.isatty(),
            )
            with bar as watched:
                return cloud_file.read(cast(IO[str], watched), path)
    except OSError as error:
        raise errors.InvalidCloud(f"{path}: {error.strerror}") from error


def overrides(parsed_args: argparse.Namespace) -> list[tuple[str, Any]]:
    """The options of the scheduler that the command line gives."""
    given = [] if parsed_args.seed is None else [("seed", parsed_args.seed)]
    # A cloud's Placement is asked by the model that is made for it.
    recording = vars(parsed_args).get("os_cloud") is not None
    return [*given, ("consumer_model", os_clouds.MODEL)] if recording else given


def saved(path: str | None) -> SavedCloud:
    """The cloud that the file describes, to be changed."""
    if path in (None, "-"):
        raise errors.BadRequest("there is no file to change; name one with --cloud")
    return SavedCloud(path)


def save(changed: SavedCloud, cloud: Cloud, app: App) -> None:
    """Replaces the file, and says so where that loses something."""
    changed.save(cloud)
    tell_unkept(changed, app)


def tell_unkept(changed: SavedCloud, app: App) -> None:
    """Says what has been lost when the file was replaced."""
    if changed.unkept:
        app.stderr.write(
            f"steelyard: {changed.path}: its {' and '.join(changed.unkept)} are gone\n"
        )
