"""Pages written to files, either completely or not at all."""

import argparse
import datetime
import os

from steelyard import errors
from steelyard.cli.commands import Command
from steelyard.cli.inputs import clouds
from steelyard.page.commands import Invocation
from steelyard.page.reloading import modified_at
from steelyard.text import whole_files


def modified(parsed_args: argparse.Namespace) -> datetime.datetime | None:
    """Return the time when the cloud file was modified; None if the cloud is not in a file."""
    if parsed_args.example or not os.path.isfile(path := clouds.file_name(parsed_args)):
        return None
    return modified_at(os.stat(path).st_mtime_ns)


def invocation(
    command: Command, parsed_args: argparse.Namespace, *options: tuple[str, str | None]
) -> Invocation:
    """Return the configuration files, the options that choose the cloud, and these options."""
    source: tuple[str, str | None] = ("--example", None)
    if not parsed_args.example:
        source = ("--cloud", clouds.file_name(parsed_args))
    return Invocation(command.app.options.config_file, (source, *options))


def require_writable(html: str, parsed_args: argparse.Namespace, **others: str | None) -> None:
    """Raise BadRequest if the page cannot be written to the file, or would replace another one.

    ``others`` are the other files of the command, by the names of their options.
    """
    if html == "-":
        return
    named = {f"file of --{option}": path for option, path in others.items()}
    if not parsed_args.example:
        named["cloud file"] = clouds.file_name(parsed_args)
    for what, path in named.items():
        if path not in (None, "-") and _is_same(path, html):
            raise errors.BadRequest(f"--html {html}: this is the {what}; name another file")
    try:
        whole_files.require_writable(html)
    except OSError as error:
        raise errors.BadRequest(f"cannot write {html!r}: {error.strerror}") from error


def _is_same(path: str, other: str) -> bool:
    """Return whether both paths lead to one file, which need not exist yet."""
    if os.path.exists(path) and os.path.exists(other):
        return os.path.samefile(path, other)
    return os.path.realpath(path) == os.path.realpath(other)


def write(page: str, path: str, command: Command) -> None:
    """Write the page to the file and confirm it. ``-`` is standard output.

    Raises BadRequest if the file cannot be written; its old content is then unchanged.
    """
    if path == "-":
        command.app.stdout.flush()
        command.app.stdout.buffer.write(page.encode())
        return
    try:
        whole_files.write(path, page.encode())
    except OSError as error:
        raise errors.BadRequest(f"cannot write {path!r}: {error.strerror}") from error
    command.confirm(f"page written to {path}")
