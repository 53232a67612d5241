"""steelyard db upgrade|current|history"""

import argparse
from typing import Any

from steelyard.cli.app import Action, Listing
from steelyard.cli.consumers import AtUrl


class DbUpgrade(AtUrl, Action):
    """Create the tables of a store of consumers, or bring them up to date.

    A database that a Placement lives in is refused. What has been done is kept when a later step
    fails; the command can be repeated.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        store = self.store(parsed_args)
        before = store.current()
        store.upgrade()
        self.app.stdout.write(f"{before or 'nothing'} -> {store.current()}\n")


class DbCurrent(AtUrl, Action):
    """Show the revision of the tables of a store of consumers."""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.app.stdout.write(f"{self.store(parsed_args).current() or 'nothing'}\n")


class DbHistory(AtUrl, Listing):
    """List the revisions of the tables of a store of consumers, and which are there."""

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return ("Revision", "There", "What it does")

    def content(self, parsed_args: argparse.Namespace) -> Any:
        store = self.store(parsed_args)
        current = store.current() or ""
        return [
            (revision, "yes" if revision <= current else "no", what)
            for revision, what in store.history()
        ]
