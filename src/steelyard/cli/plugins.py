"""The command ``plugins``."""

import argparse

from steelyard import conf, plugins
from steelyard.cli.commands import Listed, Listing
from steelyard.cli.outputs.columns import Position
from steelyard.consumers.base import CONSUMER_MODELS
from steelyard.filters.base import FILTERS
from steelyard.tags.backends.base import TAG_BACKENDS
from steelyard.traits.requests import QUERY_BUILDERS
from steelyard.weighers.base import WEIGHERS


class Plugins(Listing):
    """List the installed plugins and their distributions.

    "Enabled" is the position of a filter or weigher in the order in which the embedded scheduler
    runs them. Of each other kind, one plugin is enabled.
    """

    examples = (
        "steelyard plugins",
        "steelyard --config-file steelyard.conf plugins",
    )

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Kind", "Name", "Enabled", "Distribution"

    def result(self, parsed_args: argparse.Namespace) -> Listed:
        configuration = self.configuration()
        self.warn_of_unknown_options(configuration)
        options = conf.register(configuration)
        tags_options = conf.register_tags(configuration)
        rows, not_installed = [], 0
        for group, enabled in (
            (FILTERS, options.enabled_filters),
            (WEIGHERS, options.enabled_weighers),
            (QUERY_BUILDERS, [options.query_builder]),
            (CONSUMER_MODELS, [options.consumer_model]),
            (TAG_BACKENDS, [tags_options.backend]),
        ):
            installed = plugins.installed(group)
            missing = set(enabled) - {plugin.name for plugin in installed}
            not_installed += len(missing)
            installed += [plugins.Installed(name, "not installed") for name in missing]
            rows += [
                (
                    group.kind,
                    plugin.name,
                    Position(enabled.index(plugin.name) + 1 if plugin.name in enabled else None),
                    plugin.distribution,
                )
                for plugin in sorted(installed)
            ]
        return Listed(
            kind="plugins",
            rows=rows,
            summary={"installed": len(rows) - not_installed, "not_installed": not_installed},
        )
