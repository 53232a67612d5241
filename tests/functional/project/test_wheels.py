"""The script that installs packages from the wheels that tox environments share."""

import configparser
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile

import pytest

from support.repository import ROOT

pytestmark = pytest.mark.package

SCRIPT = pathlib.Path(".ci", "install_from_wheels.py")
PYPROJECT = """\
[build-system]
requires = []
[project]
name = "made"
dependencies = ["alpha{version}"]
[project.optional-dependencies]
more = ["beta"]
all = ["made[more]"]
[dependency-groups]
test = ["gamma"]
dev = [{{include-group = "test"}}]
nova = ["missing"]
"""


def make_wheel(index: pathlib.Path, name: str, version: str) -> None:
    """Write a wheel of an empty distribution into the folder."""
    information = f"{name}-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    tags = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    with zipfile.ZipFile(index / f"{name}-{version}-py3-none-any.whl", "w") as wheel:
        wheel.writestr(f"{information}/METADATA", metadata)
        wheel.writestr(f"{information}/WHEEL", tags)
        wheel.writestr(f"{information}/RECORD", "")


@pytest.fixture
def checkout(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return a folder with the script, a pyproject.toml, and an index of its requirements."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / SCRIPT, tmp_path / SCRIPT)
    (tmp_path / "pyproject.toml").write_text(PYPROJECT.format(version=""))
    (tmp_path / "index").mkdir()
    for name in ("alpha", "beta", "gamma"):
        make_wheel(tmp_path / "index", name, "1.0")
    return tmp_path


def install(checkout: pathlib.Path, *packages: str) -> subprocess.CompletedProcess[str]:
    """Run the script with an index in a folder; packages go into the folder 'installed'."""
    return subprocess.run(
        [sys.executable, SCRIPT, "wheels", "--target", "installed", *packages],
        cwd=checkout,
        env={**os.environ, "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(checkout / "index")},
        capture_output=True,
        text=True,
        check=False,
    )


def names(folder: pathlib.Path, ending: str) -> list[str]:
    """Return the names and versions of the distributions in the folder."""
    return sorted(path.name.split("-py3")[0] for path in folder.glob(f"*{ending}"))


def test_packages_are_installed_from_wheels_that_are_collected_once(
    checkout: pathlib.Path,
) -> None:
    assert install(checkout, "alpha").returncode == 0
    assert names(checkout / "wheels", ".whl") == ["alpha-1.0", "beta-1.0", "gamma-1.0"]
    assert names(checkout / "installed", ".dist-info") == ["alpha-1.0.dist-info"]
    shutil.rmtree(checkout / "index")
    assert install(checkout, "gamma").returncode == 0
    installed = ["alpha-1.0.dist-info", "gamma-1.0.dist-info"]
    assert names(checkout / "installed", ".dist-info") == installed


def test_changed_requirements_are_collected_again(checkout: pathlib.Path) -> None:
    assert install(checkout, "alpha").returncode == 0
    (checkout / "pyproject.toml").write_text(PYPROJECT.format(version=">=2"))
    failed = install(checkout, "alpha")
    assert failed.returncode == 1
    assert "No matching distribution found for alpha>=2" in failed.stderr
    make_wheel(checkout / "index", "alpha", "2.0")
    assert install(checkout, "alpha>=2").returncode == 0
    assert "alpha-2.0" in names(checkout / "wheels", ".whl")


def test_environments_with_shared_wheels_install_collected_groups_alone() -> None:
    tox = configparser.ConfigParser(interpolation=None)
    tox.read_string((ROOT / "tox.ini").read_text())
    sharing = [
        name
        for name in tox.sections()
        if tox[name].get("install_command") == "{[wheels]install_command}"
    ]
    assert len(sharing) > 1
    groups = {
        group
        for name in sharing
        for group in re.findall("[a-z]+", tox[name].get("dependency_groups", ""))
    }
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    assert groups < set(declared) - {"nightly", "nova"}
    assert not [name for name in sharing if tox[name].get("deps")]
