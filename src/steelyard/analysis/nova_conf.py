"""A Nova configuration: the options that concern steelyard, and the lines that set them.

The configuration is read as Nova reads it; Nova need not be installed.
"""

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Sequence

from oslo_config import cfg

from steelyard import conf as options
from steelyard import errors, plugins
from steelyard.filters.base import FILTERS
from steelyard.findings import Finding, Subject, SubjectKind
from steelyard.weighers.base import WEIGHERS

OURS = "steelyard.nova"
OUR_FILTERS = f"{OURS}.all_filters"
OUR_WEIGHERS = f"{OURS}.all_weighers"
NOVAS_FILTERS = "nova.scheduler.filters.all_filters"
NOVAS_WEIGHERS = "nova.scheduler.weights.all_weighers"
NOVAS_AFFINITY = "nova.scheduler.weights.affinity"
CAPABILITIES_FILTER = "ComputeCapabilitiesFilter"
# Weighers that both Nova and steelyard have, with the option for their multiplier.
SOFT_WEIGHERS = {
    "ServerGroupSoftAffinityWeigher": "soft_affinity_weight_multiplier",
    "ServerGroupSoftAntiAffinityWeigher": "soft_anti_affinity_weight_multiplier",
}

NOVAS_DEFAULT_FILTERS = (
    "ComputeFilter",
    CAPABILITIES_FILTER,
    "ImagePropertiesFilter",
    "ServerGroupAntiAffinityFilter",
    "ServerGroupAffinityFilter",
)

NOVAS_GROUP = "filter_scheduler"
# The options of Nova that the checks read, with Nova's defaults.
_NOVA_OPTS = [
    cfg.MultiStrOpt("available_filters", default=[NOVAS_FILTERS]),
    cfg.ListOpt("enabled_filters", default=list(NOVAS_DEFAULT_FILTERS)),
    cfg.ListOpt("weight_classes", default=[NOVAS_WEIGHERS]),
    *(cfg.FloatOpt(multiplier, default=1.0) for multiplier in SOFT_WEIGHERS.values()),
]


class NovaConf:
    """The parts of a Nova configuration that the checks read.

    ``scheduler_only`` means that nova-conductor does not read these files.
    """

    def __init__(self, files: Sequence[str], *, scheduler_only: bool = False) -> None:
        self.scheduler_only = scheduler_only
        conf = cfg.ConfigOpts()
        conf([], project="nova", default_config_files=list(files), default_config_dirs=[])
        conf.register_opts(_NOVA_OPTS, group=NOVAS_GROUP)
        self._options = options.register(conf)
        self._novas = options.Values(conf, NOVAS_GROUP)
        self._settings = {
            option_subject(setting.option, setting.group.lower()): setting
            for setting in options.settings(files)
        }
        self.available_filters = _names(self._novas, "available_filters")
        self.enabled_filters = _names(self._novas, "enabled_filters")
        self.weight_classes = _names(self._novas, "weight_classes")
        self.nova_weighers = _names(self._options, "nova_weighers")
        self.trial_filters = _names(self._options, "trial_filters")
        self._load_plugins(conf)
        self.unknown_options = list(options.unknown(conf, options.GROUP, files))
        """The settings in steelyard's group that neither it nor an enabled plugin registers."""

    def offers(self, name: str) -> bool:
        """Return whether Nova loads the filter of this name from steelyard."""
        by_itself = f"{OURS}.{name}" in self.available_filters
        return by_itself or (OUR_FILTERS in self.available_filters and is_for_nova(name))

    @property
    def names_weighers(self) -> bool:
        """Whether a file sets the option that lists the weighers Nova loads from steelyard."""
        return option_subject("nova_weighers", options.GROUP) in self._settings

    def uses_ours(self, weigher: str) -> bool:
        if f"{OURS}.{weigher}" in self.weight_classes:
            return True
        return OUR_WEIGHERS in self.weight_classes and weigher in self.nova_weighers

    def uses_novas(self, weigher: str) -> bool:
        return uses_novas_soft_weigher(self.weight_classes, weigher)

    def soft_multiplier(self, weigher: str) -> float | None:
        """Return the multiplier of Nova's own soft weigher, or None if it cannot be read."""
        try:
            return float(getattr(self._novas, SOFT_WEIGHERS[weigher]))
        except options.InvalidOption:
            return None

    def bad_values(self) -> Iterator[tuple[str, str, str]]:
        """Yield group, name and error of each option that cannot be read."""
        ours = [*dict(options.list_opts())[options.GROUP], *options.REMOVED_OPTS]
        for name, group, opts in (
            (options.GROUP, self._options, ours),
            (NOVAS_GROUP, self._novas, _NOVA_OPTS),
        ):
            for opt in opts:
                try:
                    getattr(group, opt.dest)
                except options.InvalidOption as error:
                    yield name, opt.name, error.what

    def _load_plugins(self, conf: cfg.ConfigOpts) -> None:
        """Load the enabled plugins, which register their options."""
        enabled = {FILTERS: self.enabled_filters, WEIGHERS: self.nova_weighers}
        for kind, names in enabled.items():
            for plugin in plugins.installed(kind):
                if plugin.name in names:
                    # Other checks report broken plugins.
                    with contextlib.suppress(errors.SteelyardError, cfg.Error):
                        plugins.load(kind, [plugin.name], conf)

    def located(self, finding: Finding) -> Finding:
        """Return the finding with the file and line that set its option.

        Findings that have a file already, or whose option no file sets, are returned unchanged.
        """
        setting = self._settings.get(finding.subject)
        if setting is None or finding.file is not None:
            return finding
        return dataclasses.replace(finding, file=setting.file, line=setting.line)


def uses_novas_soft_weigher(weight_classes: Iterable[str], weigher: str) -> bool:
    """Return whether Nova's own soft weigher is used. nova-conductor makes the same check."""
    return not {NOVAS_WEIGHERS, f"{NOVAS_AFFINITY}.{weigher}"}.isdisjoint(weight_classes)


def is_for_nova(name: str) -> bool:
    """Return whether ``steelyard.nova.all_filters`` has the installed filter of that name."""
    try:
        return bool(plugins.load_classes(FILTERS, [name])[name].in_nova)
    except errors.PluginError:
        return False  # all_filters leaves out plugins that cannot be loaded


def option_subject(name: str, group: str = NOVAS_GROUP) -> Subject:
    """Return the option of Nova, or of another group, as the subject of a finding."""
    return Subject(SubjectKind.OPTION, f"[{group}] {name}")


def _names(group: options.Values, option: str) -> list[str]:
    """Return the names that an option lists.

    The list is empty if the option cannot be read; another check reports that.
    """
    try:
        return list(getattr(group, option))
    except options.InvalidOption:
        return []
