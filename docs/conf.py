"""How Sphinx builds this documentation."""

import steelyard

project = "steelyard"
copyright = "the steelyard authors"
version = release = steelyard.__version__

extensions = [
    "sphinx.ext.autodoc",
    "cliff.sphinxext",
    "oslo_config.sphinxext",
    "stevedore.sphinxext",
]
exclude_patterns = ["_build", "examples"]

html_theme = "furo"
html_title = f"steelyard {version}"

autodoc_member_order = "bysource"
