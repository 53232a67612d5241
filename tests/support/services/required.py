"""Tests without a service or a program that they need."""

import os
from typing import NoReturn

import pytest

REQUIRE = "STEELYARD_REQUIRE_SERVICES"


def missing(why: str) -> NoReturn:
    """Skip the test for this reason, or fail it if services are required."""
    if os.environ.get(REQUIRE) == "1":
        pytest.fail(f"{why}; {REQUIRE} is set", pytrace=False)
    pytest.skip(why)
