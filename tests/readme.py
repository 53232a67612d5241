"""The commands that the README tells its readers to type."""

import pathlib
import re

ROOT = pathlib.Path(__file__).parents[1]

INSTALL, TEST = re.findall(
    r"^   (python3 -m venv .*)$", (ROOT / "README.rst").read_text(), re.MULTILINE
)
"""The command that installs steelyard and runs an example, and the command that tests it."""
