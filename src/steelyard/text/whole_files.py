"""Atomic file writes."""

import contextlib
import errno
import fcntl
import os
import stat
import tempfile
from collections.abc import Callable, Iterator


def write(path: str, content: bytes, check: Callable[[], object] = lambda: None) -> None:
    """Write the file atomically; an existing file keeps its owner and mode.

    A symbolic link is kept, and the file it points to replaced. A path that is not a regular file,
    such as a pipe, is written to directly. ``check`` may raise to prevent the write; no other call
    of this function can replace the file between the check and the write. Raises OSError.
    """
    require_writable(path)
    if os.path.exists(path) and not os.path.isfile(path):
        check()
        with open(path, "wb") as device:
            device.write(content)
        return
    target = os.path.realpath(path)
    directory = os.path.dirname(target)
    with _locked(directory) as handle:
        with _beside(directory, content) as written:
            check()
            if os.path.exists(target):
                _copy_owner_and_mode(target, written)
            else:
                os.chmod(written, 0o666 & ~_umask())
            os.replace(written, target)
        _sync(handle)


def require_writable(path: str) -> None:
    """Raise the OSError that writing the file would raise, as far as that is known in advance."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        if not os.path.basename(path):  # the path is empty or ends in a slash
            raise
    else:
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        # A writable directory would be enough to replace the file, but its mode forbids writing.
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
        if not stat.S_ISREG(mode):
            return
    with tempfile.TemporaryFile(dir=os.path.dirname(os.path.realpath(path))):
        pass


@contextlib.contextmanager
def _beside(directory: str, content: bytes) -> Iterator[str]:
    """Write the content to a temporary file in the directory; delete it if the block fails."""
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
    """Return the umask of the process, which can be read only by setting it."""
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


def _copy_owner_and_mode(source: str, target: str) -> None:
    status = os.stat(source)
    with contextlib.suppress(PermissionError):  # only root may give files away
        os.chown(target, status.st_uid, status.st_gid)
    os.chmod(target, status.st_mode & 0o7777)


@contextlib.contextmanager
def _locked(directory: str) -> Iterator[int]:
    """Lock the directory against other writes with this module; yield its file descriptor."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield handle
    finally:
        os.close(handle)


def _sync(directory: int) -> None:
    """Write the directory to disk, so that a crash of the machine cannot undo the replacement."""
    try:
        os.fsync(directory)
    except OSError as error:
        if error.errno != errno.EINVAL:  # a file system that cannot sync directories
            raise
