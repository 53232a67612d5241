from typing import Any

import hypothesis
import pytest
from oslo_config import cfg

# How long an example takes says something about the machine, not about the law.
hypothesis.settings.register_profile(
    "steelyard", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("steelyard")


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
