"""The commands of the README."""

import re

from support.repository import ROOT

INSTALL, TEST = re.findall(
    r"^   (python3 -m venv .*)$", (ROOT / "README.rst").read_text(), re.MULTILINE
)
"""The command that installs steelyard and runs an example, and the command that tests it."""
