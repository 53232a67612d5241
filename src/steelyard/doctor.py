"""What is wrong or risky in a Nova configuration that names steelyard.

The configuration is read as Nova reads it; Nova need not be installed. Each question is a
function from the configuration to findings.
"""

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

from oslo_config import cfg

from steelyard import conf as options
from steelyard import errors, plugins
from steelyard.severity import Severity

OURS = "steelyard.nova"
OUR_FILTERS = f"{OURS}.all_filters"
OUR_WEIGHERS = f"{OURS}.all_weighers"
NOVAS_FILTERS = "nova.scheduler.filters.all_filters"
NOVAS_WEIGHERS = "nova.scheduler.weights.all_weighers"
NOVAS_AFFINITY = "nova.scheduler.weights.affinity"
OUR_FILTER = "AggregateInstanceTypeFilter"
NOVAS_FILTER = "AggregateInstanceExtraSpecsFilter"
CAPABILITIES_FILTER = "ComputeCapabilitiesFilter"
# Weighers that Nova and steelyard both have, with the option for their multiplier.
SOFT_WEIGHERS = {
    "ServerGroupSoftAffinityWeigher": "soft_affinity_weight_multiplier",
    "ServerGroupSoftAntiAffinityWeigher": "soft_anti_affinity_weight_multiplier",
}

_GROUP = "filter_scheduler"
# The options of Nova that are looked at, with Nova's defaults.
_NOVA_OPTS = [
    cfg.MultiStrOpt("available_filters", default=[NOVAS_FILTERS]),
    cfg.ListOpt(
        "enabled_filters",
        default=[
            "ComputeFilter",
            CAPABILITIES_FILTER,
            "ImagePropertiesFilter",
            "ServerGroupAntiAffinityFilter",
            "ServerGroupAffinityFilter",
        ],
    ),
    cfg.ListOpt("weight_classes", default=[NOVAS_WEIGHERS]),
    *(cfg.FloatOpt(multiplier, default=1.0) for multiplier in SOFT_WEIGHERS.values()),
]


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One thing that is wrong or risky, where, and what to do about it."""

    severity: Severity
    file: str
    option: str
    finding: str
    remedy: str


class NovaConf:
    """A Nova configuration, as far as it matters here.

    ``scheduler_only`` says that no conductor reads it.
    """

    def __init__(self, files: Sequence[str], *, scheduler_only: bool = False) -> None:
        self.scheduler_only = scheduler_only
        conf = cfg.ConfigOpts()
        conf([], project="nova", default_config_files=list(files), default_config_dirs=[])
        conf.register_opts(_NOVA_OPTS, group=_GROUP)
        self._options = options.register(conf)
        self._sections = {file: _sections(file) for file in files}
        self.available_filters: list[str] = conf[_GROUP].available_filters
        self.enabled_filters: list[str] = conf[_GROUP].enabled_filters
        self.weight_classes: list[str] = conf[_GROUP].weight_classes
        self._novas = conf[_GROUP]

    @property
    def offers_our_filter(self) -> bool:
        return bool({OUR_FILTERS, f"{OURS}.{OUR_FILTER}"} & set(self.available_filters))

    @property
    def nova_weighers(self) -> list[str]:
        return list(self._options.nova_weighers)

    @property
    def names_weighers(self) -> bool:
        """Whether a file says which of our weighers Nova should use."""
        return any(
            "nova_weighers" in said.get(options.GROUP, {}) for said in self._sections.values()
        )

    def uses_ours(self, weigher: str) -> bool:
        if f"{OURS}.{weigher}" in self.weight_classes:
            return True
        return OUR_WEIGHERS in self.weight_classes and weigher in self.nova_weighers

    def uses_novas(self, weigher: str) -> bool:
        """Whether Nova's own soft weigher is used; the conductor asks just this."""
        return bool({NOVAS_WEIGHERS, f"{NOVAS_AFFINITY}.{weigher}"} & set(self.weight_classes))

    def soft_multiplier(self, weigher: str) -> float | None:
        """Nova's multiplier for its own soft weigher; None if it cannot be read."""
        try:
            return float(self._novas[SOFT_WEIGHERS[weigher]])
        except cfg.ConfigFileValueError:
            return None

    def bad_values(self) -> Iterator[tuple[str, str, str]]:
        """Each option that is looked at whose value cannot be read: its group, its name, why."""
        ours = dict(options.list_opts())[options.GROUP]
        for name, group, opts in (
            (options.GROUP, self._options, ours),
            (_GROUP, self._novas, _NOVA_OPTS),
        ):
            for opt in opts:
                try:
                    getattr(group, opt.dest)
                except cfg.ConfigFileValueError as error:
                    yield name, opt.name, str(error).rpartition("is not valid: ")[2]

    def unknown_options(self) -> Iterator[tuple[str, str]]:
        """Each option in our group that there is not, with the file it is in."""
        known = {opt.name for opt in dict(options.list_opts())[options.GROUP]}
        for file, sections in self._sections.items():
            for name in sections.get(options.GROUP, {}):
                if name not in known:
                    yield name, file

    def finding(
        self, severity: Severity, option: str, finding: str, remedy: str, group: str = _GROUP
    ) -> Finding:
        """A finding about an option, with the file that has the last word on it."""
        setting = [file for file, said in self._sections.items() if option in said.get(group, {})]
        file = setting[-1] if setting else "(not set)"
        return Finding(severity, file, f"[{group}] {option}", finding, remedy)


def _sections(file: str) -> dict[str, Any]:
    """The options of each group in the file, as they are written."""
    sections: dict[str, Any] = {}
    cfg.ConfigParser(file, sections).parse()
    return sections


def examine(conf: NovaConf) -> list[Finding]:
    """Everything that is wrong or risky, the worst first."""
    questions = (
        _values,
        _unknown,
        _paths,
        _offered,
        _enabled,
        _both_filters,
        _capabilities,
        _weighers,
        _soft_weighers,
        _policy_check,
    )
    found = [finding for question in questions for finding in question(conf)]
    return sorted(found, key=lambda finding: list(Severity).index(finding.severity))


def _values(conf: NovaConf) -> Iterator[Finding]:
    for group, name, why in conf.bad_values():
        remedy = "correct the value; nova-scheduler does not start with it"
        yield conf.finding(Severity.ERROR, name, why, remedy, group)


def _unknown(conf: NovaConf) -> Iterator[Finding]:
    known = [opt.name for opt in dict(options.list_opts())[options.GROUP]]
    for name, file in conf.unknown_options():
        yield Finding(
            Severity.WARNING,
            file,
            f"[{options.GROUP}] {name}",
            f"there is no such option{errors.near(name, known)}",
            "correct the name or remove the line; it has no effect",
        )


def _paths(conf: NovaConf) -> Iterator[Finding]:
    for option, named, group, everything in (
        ("available_filters", conf.available_filters, plugins.FILTERS, OUR_FILTERS),
        ("weight_classes", conf.weight_classes, plugins.WEIGHERS, OUR_WEIGHERS),
    ):
        there = [f"{OURS}.{plugin.name}" for plugin in plugins.installed(group)] + [everything]
        for path in {path for path in named if named.count(path) > 1}:
            yield conf.finding(Severity.WARNING, option, f"{path} is named twice", "name it once")
        for path in named:
            if path.startswith(f"{OURS}.") and path not in there:
                yield conf.finding(
                    Severity.ERROR,
                    option,
                    f"there is no {path}{errors.near(path, there)}",
                    "correct the path; nova-scheduler does not start with it",
                )


def _offered(conf: NovaConf) -> Iterator[Finding]:
    ours = [path for path in conf.available_filters if path.startswith(f"{OURS}.")]
    if ours and NOVAS_FILTERS not in conf.available_filters:
        yield conf.finding(
            Severity.ERROR,
            "available_filters",
            f"it names {', '.join(ours)} but not {NOVAS_FILTERS}: Nova's own filters, "
            f"ComputeFilter among them, are not available",
            f"add the line 'available_filters = {NOVAS_FILTERS}'",
        )


def _enabled(conf: NovaConf) -> Iterator[Finding]:
    enabled = OUR_FILTER in conf.enabled_filters
    if enabled and not conf.offers_our_filter:
        yield conf.finding(
            Severity.ERROR,
            "available_filters",
            f"{OUR_FILTER} is enabled but not available: nova-scheduler does not start",
            f"add the line 'available_filters = {OUR_FILTERS}'",
        )
    if conf.offers_our_filter and not enabled:
        yield conf.finding(
            Severity.WARNING,
            "enabled_filters",
            f"{OUR_FILTER} is available but not enabled: it does nothing",
            f"add {OUR_FILTER} to enabled_filters",
        )


def _both_filters(conf: NovaConf) -> Iterator[Finding]:
    if {OUR_FILTER, NOVAS_FILTER} <= set(conf.enabled_filters):
        yield conf.finding(
            Severity.WARNING,
            "enabled_filters",
            f"{NOVAS_FILTER} and {OUR_FILTER} are both enabled: Nova's takes sentinels for plain "
            f"text and rejects hosts that ours accepts",
            f"remove {NOVAS_FILTER}; {OUR_FILTER} accepts what it accepts",
        )


def _capabilities(conf: NovaConf) -> Iterator[Finding]:
    if {OUR_FILTER, CAPABILITIES_FILTER} <= set(conf.enabled_filters):
        yield conf.finding(
            Severity.NOTE,
            "enabled_filters",
            f"{CAPABILITIES_FILTER} reads plain extra specs too, and rejects hosts where one "
            f"names an attribute of Nova's hosts (host, uuid, metrics, …)",
            "write such keys with the scope 'aggregate_instance_extra_specs:'",
        )


def _weighers(conf: NovaConf) -> Iterator[Finding]:
    for name in conf.nova_weighers:
        trouble = _trouble_with(name)
        if trouble:
            yield conf.finding(
                Severity.ERROR,
                "nova_weighers",
                trouble,
                "it is left out: correct the name or remove it",
                options.GROUP,
            )
        elif {OUR_WEIGHERS, f"{OURS}.{name}"} <= set(conf.weight_classes):
            yield conf.finding(
                Severity.WARNING,
                "weight_classes",
                f"{name} is named by itself and by {OUR_WEIGHERS}: it counts twice",
                f"remove {OURS}.{name}",
            )
    if not any(path.startswith("nova.") for path in conf.weight_classes):
        yield conf.finding(
            Severity.WARNING,
            "weight_classes",
            "none of Nova's own weighers is named: free RAM, CPUs and disk, build failures and "
            "all that they weigh count for nothing",
            f"add {NOVAS_WEIGHERS}, or the ones you want by their paths",
        )
    named = conf.names_weighers and conf.nova_weighers
    if named and OUR_WEIGHERS not in conf.weight_classes:
        yield conf.finding(
            Severity.WARNING,
            "weight_classes",
            f"[{options.GROUP}] nova_weighers names weighers, but {OUR_WEIGHERS} is not there: "
            f"they do nothing",
            f"add {OUR_WEIGHERS} to weight_classes",
        )


def _trouble_with(name: str) -> str:
    """Why Nova does not get the weigher of that name, or nothing."""
    try:
        found = plugins.load_classes(plugins.WEIGHERS, [name])[name]
    except errors.PluginError as error:
        near = errors.near(name, [each.name for each in plugins.installed(plugins.WEIGHERS)])
        return f"{str(error).partition('; installed are')[0]}{near}"
    return "" if found.in_nova else f"{name} is not for Nova, which has one of its own"


def _soft_weighers(conf: NovaConf) -> Iterator[Finding]:
    for weigher, multiplier in SOFT_WEIGHERS.items():
        novas = conf.soft_multiplier(weigher)
        if conf.uses_ours(weigher) and conf.uses_novas(weigher) and novas:
            yield conf.finding(
                Severity.WARNING,
                multiplier,
                f"{weigher} is there twice, Nova's own with the multiplier {novas} and ours: the "
                f"members of a group are weighed twice",
                f"set {multiplier} = 0.0 in [{_GROUP}]; ours is in [{options.GROUP}]",
            )
        if conf.uses_novas(weigher) and novas == 0 and not conf.uses_ours(weigher):
            yield conf.finding(
                Severity.WARNING,
                multiplier,
                f"Nova's own {weigher} counts for nothing, and ours is not there: the wish of "
                f"server groups is accepted and then ignored",
                f"name {OUR_WEIGHERS} in weight_classes and {weigher} in [{options.GROUP}] "
                f"nova_weighers",
            )


def _policy_check(conf: NovaConf) -> Iterator[Finding]:
    if conf.scheduler_only:
        return
    for weigher in SOFT_WEIGHERS:
        if conf.uses_ours(weigher) and not conf.uses_novas(weigher):
            yield conf.finding(
                Severity.WARNING,
                "weight_classes",
                f"Nova's own {weigher} is not named: nova-conductor, where it reads this, refuses "
                f"server groups that need it",
                f"in what nova-conductor reads, name {NOVAS_WEIGHERS}; if it reads another file, "
                f"say --scheduler-only",
            )
