"""Cloud files as commands read and change them."""

import argparse
import os
import sys
from typing import IO, Any, cast

import tqdm

from steelyard import errors
from steelyard.cli import os_clouds
from steelyard.cli.app import Action, App
from steelyard.scheduler import Cloud, cloud_file
from steelyard.scheduler.saved_cloud import SavedCloud


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
