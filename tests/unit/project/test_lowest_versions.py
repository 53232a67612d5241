"""The lowest versions of all dependencies, and the tox environment that tests them together."""

import configparser
import importlib.metadata
import os
import re
import tomllib

import pytest

from support.repository import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EXTRAS = PROJECT["optional-dependencies"]
ITSELF = re.compile(r"steelyard\[(.*)\]")


def declared() -> list[str]:
    """Return every dependency of steelyard and of its extras, without the extras in an extra."""
    requirements = {
        *PROJECT["dependencies"],
        *(each for extra in EXTRAS.values() for each in extra),
    }
    return sorted(each for each in requirements if not ITSELF.fullmatch(each))


def pinned() -> list[str]:
    """Return the requirements that the tox environment installs."""
    tox = configparser.ConfigParser(interpolation=None)
    tox.read(ROOT / "tox.ini")
    return tox["testenv:lowest"]["deps"].strip().splitlines()


@pytest.mark.parametrize("requirement", declared())
def test_dependency_declares_its_lowest_version(requirement: str) -> None:
    assert re.fullmatch(r"[\w.-]+>=\d+(\.\d+)+", requirement)


def test_lowest_environment_pins_every_dependency_and_nothing_else() -> None:
    assert sorted(pinned()) == [each.replace(">=", "==") for each in declared()]


def test_extra_all_contains_every_other_extra() -> None:
    (itself,) = EXTRAS["all"]
    found = ITSELF.fullmatch(itself)
    assert found
    assert set(found[1].split(",")) == set(EXTRAS) - {"all"}


@pytest.mark.skipif(
    "STEELYARD_LOWEST" not in os.environ, reason="runs where the lowest versions are installed"
)
@pytest.mark.parametrize("requirement", declared())
def test_lowest_environment_has_the_lowest_version(requirement: str) -> None:
    name, _, version = requirement.partition(">=")
    assert importlib.metadata.version(name) == version
