import faulthandler
import functools
import importlib.metadata
import logging
import os
import pathlib
import signal
import sys
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from oslo_config import cfg

from support import examples

# A shell starts background jobs with SIGINT ignored, and child processes inherit that, so tests
# that send SIGINT would hang. With Python's own handler here, child processes get the default.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

examples.load_profile()

# SQLite waits for the disk at each commit, so temporary files are in memory where it has space.
_MEMORY = "/dev/shm"
_NEEDED_BYTES = 4 * 1024**3


def _keeps_temporary_files(folder: str) -> bool:
    """Return whether the folder has space for the files of all tests, and runs programs."""
    if not os.access(folder, os.W_OK):
        return False
    found = os.statvfs(folder)
    return found.f_bavail * found.f_frsize > _NEEDED_BYTES and not found.f_flag & os.ST_NOEXEC


if _keeps_temporary_files(_MEMORY):
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", _MEMORY)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int | None:
    """Return one worker more than cores for ``-n auto``, for tests that wait much.

    None leaves the number to pytest-xdist, which runs one worker per core for ``-n logical``.
    """
    if config.option.numprocesses == "logical" or "PYTEST_XDIST_AUTO_NUM_WORKERS" in os.environ:
        return None
    return len(os.sched_getaffinity(0)) + 1


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Limit the teardown of a failed test: pytest stops its own timers when a test fails."""
    faulthandler.dump_traceback_later(
        float(item.config.getini("faulthandler_timeout")),
        file=item.config.stash[fault_handler_stderr_fd_key],
        exit=True,
    )
    return (yield)


@pytest.fixture(autouse=True, scope="session")
def entry_points_read_once() -> Iterator[None]:
    """Cache the entry points by search path, because reading all distributions is slow."""
    read = importlib.metadata.entry_points

    @functools.cache
    def kept(_path: tuple[str, ...], **params: Any) -> Any:
        return read(**params)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            importlib.metadata,
            "entry_points",
            lambda **params: kept(tuple(sys.path), **params),
        )
        yield


@pytest.fixture(autouse=True)
def the_log() -> Iterator[None]:
    """Restore the handlers and the level of the log, which commands configure."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)


@pytest.fixture
def requirements(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """Return a function that replaces the requirements in steelyard's installed metadata."""

    def declare(*lines: str) -> None:
        metadata = tmp_path / "installed" / "steelyard-0.dist-info" / "METADATA"
        metadata.parent.mkdir(parents=True)
        declared = "".join(f"Requires-Dist: {line}\n" for line in lines)
        metadata.write_text(f"Metadata-Version: 2.1\nName: steelyard\nVersion: 0\n{declared}")
        monkeypatch.syspath_prepend(tmp_path / "installed")

    return declare


@pytest.fixture
def closed_databases() -> Iterator[None]:
    """Close the connections of every engine that the test uses when it ends.

    From Python 3.13 on, a test fails if the garbage collector closes an SQLite connection.
    """
    import sqlalchemy as sa

    engines: list[sa.Engine] = []

    def note(connection: sa.Connection) -> None:
        engines.append(connection.engine)

    sa.event.listen(sa.Engine, "engine_connect", note)
    yield
    sa.event.remove(sa.Engine, "engine_connect", note)
    for engine in engines:
        engine.dispose()


@pytest.fixture
def conf() -> Any:
    """Return a configuration without registered options."""
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
    return conf


@pytest.fixture
def configured(tmp_path: Any) -> Any:
    """Return a function that builds a configuration from the lines of a [steelyard] group."""

    def configure(*lines: str) -> cfg.ConfigOpts:
        path = tmp_path / "steelyard.conf"
        path.write_text("\n".join(["[steelyard]", *lines]))
        conf = cfg.ConfigOpts()
        conf([], project="steelyard", default_config_files=[str(path)], default_config_dirs=[])
        return conf

    return configure
