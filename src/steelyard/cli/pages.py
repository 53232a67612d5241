"""Pages as files: there as a whole, or as they were before."""

import contextlib
import os
import secrets
import shutil

from steelyard import errors
from steelyard.cli.app import App


def write(page: str, path: str, app: App) -> None:
    """Writes the page to the file, and says so; - is standard output."""
    if path == "-":
        app.stdout.flush()
        app.stdout.buffer.write(page.encode())
        return
    try:
        _replace(os.path.realpath(path), page.encode())
    except OSError as error:
        raise errors.BadRequest(f"{path}: cannot be written: {error.strerror}") from error
    app.stdout.write(f"the page is in {path}\n")


def _replace(path: str, content: bytes) -> None:
    if os.path.exists(path) and not os.path.isfile(path):
        with open(path, "wb") as device:  # which is no file to be replaced
            device.write(content)
        return
    directory, name = os.path.split(path)
    made = os.path.join(directory, f".{name}.{secrets.token_hex(4)}")
    try:
        with open(made, "xb") as file:
            file.write(content)
        with contextlib.suppress(FileNotFoundError):  # it is new
            shutil.copymode(path, made)
        os.replace(made, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(made)
        raise
