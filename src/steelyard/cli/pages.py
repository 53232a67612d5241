"""Pages as files: there as a whole, or as they were before."""

from steelyard import errors, whole_files
from steelyard.cli.app import App


def write(page: str, path: str, app: App) -> None:
    """Writes the page to the file, and says so; - is standard output."""
    if path == "-":
        app.stdout.flush()
        app.stdout.buffer.write(page.encode())
        return
    try:
        whole_files.write(path, page.encode())
    except OSError as error:
        raise errors.BadRequest(f"{path}: cannot be written: {error.strerror}") from error
    app.stdout.write(f"the page is in {path}\n")
