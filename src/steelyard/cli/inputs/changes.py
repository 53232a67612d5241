"""The options that change a cloud."""

import argparse
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from steelyard import errors
from steelyard.cli.inputs import cloud_names, clouds, parsing
from steelyard.cloud import Cloud, change_texts, changes
from steelyard.cloud.changes import Change
from steelyard.cloud.files import changes_file


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that change the cloud."""
    for name, option in change_texts.OPTIONS.items():
        parser.add_argument(
            name,
            dest="changes",
            metavar="CHANGE",
            action=InOrder,
            type=cloud_names.AGGREGATE if option.expected == "AGGREGATE" else str,
            help=f"{option.help}: {option.expected}; may be repeated",
        )
    parser.add_argument(
        "--changes",
        dest="changes_file",
        metavar="FILE",
        type=parsing.file_name,
        help="file with a list of changes, JSON if the name ends in .json, else YAML; they are "
        "applied before those of the command line",
    )
    parser.add_argument(
        "--against",
        metavar="FILE",
        type=parsing.file_name,
        help="cloud file with the hosts, aggregates and flavors after the change; excludes other "
        "changes",
    )


class InOrder(argparse.Action):
    """The action that collects several options with their values, in the order of the arguments."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        (name,) = self.option_strings  # the whole name, also if it was abbreviated
        collected = getattr(namespace, self.dest) or []
        setattr(namespace, self.dest, [*collected, (name, values)])


class Changed(NamedTuple):
    """A cloud after changes, and the hosts in it that no longer exist."""

    cloud: Cloud
    missing: frozenset[str] = frozenset()


def changed(cloud: Cloud, parsed_args: argparse.Namespace) -> Changed:
    """Return the cloud with the changes that the arguments request.

    Raises BadRequest if there are none, InvalidCloud if a file is invalid, NotFound if the cloud
    lacks something that a change names, and Conflict if a change has no effect.
    """
    given = parsed_args.changes or parsed_args.changes_file
    if parsed_args.against is not None:
        if given:
            raise errors.BadRequest(
                "--against excludes other changes: make them in the file that it names"
            )
        other = clouds.read(parsed_args.against)
        return Changed(
            changes.with_servers_of(cloud, other, parsed_args.against),
            frozenset(cloud.hosts.keys() - other.hosts.keys()),
        )
    if not given:
        options = ", ".join(change_texts.OPTIONS)
        raise errors.BadRequest(
            f"no change: add one of {options}, a file with --changes, or another cloud file with "
            f"--against"
        )
    if parsed_args.changes_file is not None:
        cloud = changes_file.applied(parsed_args.changes_file, cloud)
    return Changed(changes.applied(cloud, _wanted(cloud, parsed_args.changes or ())))


def _wanted(cloud: Cloud, given: Iterable[tuple[str, str]]) -> Iterator[tuple[str, Change]]:
    """Yield the changes of the options, each with its place."""
    for option, text in given:
        place = f"{option} {text}"
        try:
            change = change_texts.parse(option, text, cloud)
        except errors.NotFound as error:
            raise errors.NotFound(f"{place}: {error}", error.text) from error
        except errors.BadRequest as error:
            raise errors.BadRequest(f"{option}: {error}", error.text) from error
        yield place, change
