"""Tests of the repository without the measurement of coverage."""

import pytest


@pytest.fixture(autouse=True)
def coverage_paused(no_cover: None) -> None:
    """Pause coverage: these tests read the code, and measuring that doubles their time."""
