"""Distributions of third parties, installed into folders."""

import pathlib
import subprocess
import sys

import pytest
from stevedore import extension

from support.repository import ROOT

THIRD_PARTY = ROOT / "tests" / "support" / "third_party"


def install(source: pathlib.Path, target: pathlib.Path) -> pathlib.Path:
    """Install the distribution into the folder, and return the folder."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target"]
    subprocess.run([*command, str(target), str(source)], check=True)
    return target


def make_importable(monkeypatch: pytest.MonkeyPatch, folder: str, *modules: str) -> None:
    """Put the folder on the path until the test ends, and then unload its modules."""
    monkeypatch.syspath_prepend(folder)
    monkeypatch.setattr(extension.ExtensionManager, "ENTRY_POINT_CACHE", {})
    for module in modules:
        # Modules that are imported from now on are removed at the end of the test.
        monkeypatch.setitem(sys.modules, module, sys)
        del sys.modules[module]
