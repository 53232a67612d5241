"""Commands on a cloud file that they may change."""

import argparse

from steelyard.cli.app import Action, App
from steelyard.scheduler import Cloud
from steelyard.scheduler.saved_cloud import SavedCloud


class OnSavedCloud(Action):
    """A command on the cloud that a file describes."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--cloud",
            metavar="FILE",
            required=True,
            help="the described cloud: JSON if the name ends in .json, else YAML",
        )
        return parser


def save(saved: SavedCloud, cloud: Cloud, app: App) -> None:
    """Replaces the file, and says so where that loses something."""
    saved.save(cloud)
    if saved.has_comments:
        app.stderr.write(f"steelyard: {saved.path}: its comments are gone\n")
