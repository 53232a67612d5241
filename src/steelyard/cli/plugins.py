"""steelyard plugins"""

import argparse
from typing import Any

from steelyard import conf, plugins
from steelyard.cli.app import Listing
from steelyard.cli.columns import Place


class Plugins(Listing):
    """Show the installed filters, weighers and query builders, and where each comes from.

    "Enabled" is the place in the order in which the embedded scheduler runs them.
    """

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Kind", "Name", "Enabled", "Distribution"

    def content(self, parsed_args: argparse.Namespace) -> Any:
        options = self.configuration()[conf.GROUP]
        rows = []
        for group, enabled in (
            (plugins.FILTERS, options.enabled_filters),
            (plugins.WEIGHERS, options.enabled_weighers),
            (plugins.QUERY_BUILDERS, [options.query_builder]),
        ):
            installed = plugins.installed(group)
            missing = set(enabled) - {plugin.name for plugin in installed}
            installed += [plugins.Installed(group, name, "not installed") for name in missing]
            rows += [
                (
                    plugin.kind,
                    plugin.name,
                    Place(enabled.index(plugin.name) + 1 if plugin.name in enabled else None),
                    plugin.distribution,
                )
                for plugin in sorted(installed)
            ]
        return rows
