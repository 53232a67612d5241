import logging
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import hypothesis
import pytest
from oslo_config import cfg

# How long an example takes says something about the machine, not about the law.
hypothesis.settings.register_profile(
    "steelyard", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("steelyard")


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
