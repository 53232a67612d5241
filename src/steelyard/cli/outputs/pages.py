"""Pages written to files, either completely or not at all."""

from steelyard import errors
from steelyard.cli.commands import Command
from steelyard.text import whole_files


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
