"""Files that are written as a whole or not at all."""

import contextlib
import errno
import fcntl
import os
import stat
import tempfile
from collections.abc import Callable, Iterator


def write(path: str, content: bytes, check: Callable[[], object] = lambda: None) -> None:
    """Writes the file, or replaces what is there, which keeps its owner and mode.

    A link stays one: what it leads to is replaced. What is there and is no file, such as a pipe, is
    written to. ``check`` raises where the file is not to be touched after all; it is called when
    nobody else who writes like this can come between.
    """
    require_writable(path)
    if os.path.exists(path) and not os.path.isfile(path):
        check()
        with open(path, "wb") as device:
            device.write(content)
        return
    target = os.path.realpath(path)
    directory = os.path.dirname(target)
    with _beside(directory, content) as written, _locked(directory):
        check()
        if os.path.exists(target):
            _copy_owner_and_mode(target, written)
        else:
            os.chmod(written, 0o666 & ~_umask())
        os.replace(written, target)


def require_writable(path: str) -> None:
    """Raises the OSError that writing there would, as far as that can be known before."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        if not os.path.basename(path):  # which would be a directory
            raise
    else:
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        # Who may write to a directory may replace what is in it; that is not what is asked here.
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if not stat.S_ISREG(mode):
            return
    with tempfile.TemporaryFile(dir=os.path.dirname(os.path.realpath(path))):
        pass


@contextlib.contextmanager
def _beside(directory: str, content: bytes) -> Iterator[str]:
    """A file in that directory, to be put in another's place; without that, it does not stay."""
    handle, path = tempfile.mkstemp(prefix=".steelyard.", dir=directory)
    try:
        with open(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        yield path
    except BaseException:
        os.unlink(path)
        raise


def _umask() -> int:
    """It can be read only by being set."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


def _copy_owner_and_mode(source: str, target: str) -> None:
    status = os.stat(source)
    with contextlib.suppress(PermissionError):  # only root may give files away
        os.chown(target, status.st_uid, status.st_gid)
    os.chmod(target, status.st_mode & 0o7777)


@contextlib.contextmanager
def _locked(directory: str) -> Iterator[None]:
    """Keeps other commands from replacing a file there between a look at it and its end."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
