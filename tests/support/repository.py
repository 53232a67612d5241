"""The folders of the repository that tests read."""

import pathlib

ROOT = pathlib.Path(__file__).parents[2]
DOCS = ROOT / "docs"
EXAMPLES = DOCS / "examples"
