"""Standard output and standard error that may be full, closed or broken."""

import abc
import contextlib
import io
import os
import sys
from collections.abc import Iterable, Iterator
from typing import Any


class Unwritable(SystemExit):
    """A failure to write standard output. Not an Exception, because cliff would log it."""

    def __init__(self, error: OSError) -> None:
        super().__init__()
        self.message = f"cannot write to standard output: {error.strerror or 'it is closed'}"


@contextlib.contextmanager
def _reported() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise  # not an error: the reader has closed the pipe
    except OSError as error:
        raise Unwritable(error) from error


class _Stream(abc.ABC):
    """A wrapper with all attributes of another stream."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    @abc.abstractmethod
    def write(self, text: Any) -> None:
        """Write the text, or the bytes."""

    def writelines(self, lines: Iterable[Any]) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class Output(_Stream):
    """Standard output. Raises Unwritable if it cannot be written."""

    @property
    def buffer(self) -> "Output":
        return Output(self._stream.buffer)

    def write(self, text: str | bytes) -> None:
        with _reported():
            self._stream.write(text)

    def flush(self) -> None:
        with _reported():
            self._stream.flush()


class Errors(_Stream):
    """Standard error. Drops all text if it cannot be written."""

    def write(self, text: str) -> None:
        try:
            self._stream.write(text)
        except OSError:
            discard(self._stream)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            discard(self._stream)


def prepare() -> None:
    """Replace closed standard streams, and let standard output escape unencodable characters.

    For a closed stream, Python sets None, on which libraries fail. Characters that cannot be
    encoded are escaped as Python does it on standard error.
    """
    if sys.stdout is None:
        # Open for reading, so that writing fails as it does on a closed stream.
        sys.stdout = open(os.devnull, encoding="utf-8")  # noqa: SIM115  (used until the process exits)
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115  (used until the process exits)
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="backslashreplace")


def discard(stream: Any) -> None:
    """Redirect the stream to the null device.

    Otherwise Python would write the buffered text at exit, and fail.
    """
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
