import faulthandler
import logging
import pathlib
import signal
from collections.abc import Callable, Generator, Iterator
from typing import Any

import hypothesis
import pytest
from _pytest.faulthandler import fault_handler_stderr_fd_key
from oslo_config import cfg

# A shell ignores SIGINT for its background jobs, and every process below inherits that: tests that
# send SIGINT would hang. With Python's own handler here, processes that tests start get the default.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# How long an example takes says something about the machine, not about the law.
hypothesis.settings.register_profile(
    "steelyard", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("steelyard")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, None, None]:
    """Limit the teardown of a failed test: pytest stops its own timers when a test fails."""
    faulthandler.dump_traceback_later(
        float(item.config.getini("faulthandler_timeout")),
        file=item.config.stash[fault_handler_stderr_fd_key],
        exit=True,
    )
    return (yield)


@pytest.fixture(autouse=True)
def the_log() -> Iterator[None]:
    """Takes away where a command has logged to: it is closed when its test has ended."""
    root = logging.getLogger()
    before = list(root.handlers)
    yield
    for handler in list(root.handlers):
        if handler not in before and type(handler) is logging.StreamHandler:
            root.removeHandler(handler)


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
    """Close the connections of every engine that the test uses, once the test has ended.

    From Python 3.13 on, an SQLite connection that is left to the garbage collector fails a test.
    What commands leave open is tested in ``functional/test_closed_databases.py``.
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
    """A configuration of its own, that knows no option yet."""
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
    return conf


@pytest.fixture
def configured(tmp_path: Any) -> Any:
    """Makes a configuration from the lines of a [steelyard] group."""

    def configure(*lines: str) -> cfg.ConfigOpts:
        path = tmp_path / "steelyard.conf"
        path.write_text("\n".join(["[steelyard]", *lines]))
        conf = cfg.ConfigOpts()
        conf([], project="steelyard", default_config_files=[str(path)], default_config_dirs=[])
        return conf

    return configure
