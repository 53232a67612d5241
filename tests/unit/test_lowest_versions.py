"""That the environment for the lowest versions really has the lowest that are declared."""

import importlib.metadata
import os
import re

import pytest


@pytest.mark.skipif(
    "STEELYARD_LOWEST" not in os.environ, reason="runs where the lowest versions are installed"
)
def test_what_is_installed_is_the_lowest_declared() -> None:
    declared = [
        re.fullmatch(r"([\w.-]+)>=([\w.]+)(; extra == .cli.)?", requirement)
        for requirement in importlib.metadata.requires("steelyard") or ()
    ]
    lowest = {found[1].lower(): found[2] for found in declared if found}
    assert set(lowest) == {"cliff", "oslo-config", "oslo-log", "pyyaml", "stevedore", "tqdm"}
    assert {name: importlib.metadata.version(name) for name in lowest} == lowest
