"""Errors and risks in a Nova configuration that names steelyard.

Each check is a function from the configuration to findings.
"""

from collections.abc import Iterator

from steelyard import conf as options
from steelyard import errors, plugins
from steelyard.analysis.nova_conf import (
    CAPABILITIES_FILTER,
    NOVAS_DEFAULT_FILTERS,
    NOVAS_FILTERS,
    NOVAS_GROUP,
    NOVAS_WEIGHERS,
    OUR_FILTERS,
    OUR_WEIGHERS,
    OURS,
    SOFT_WEIGHERS,
    NovaConf,
    is_for_nova,
    option_subject,
)
from steelyard.filters.base import FILTERS
from steelyard.findings import Check, Finding, Severity
from steelyard.text import spelling
from steelyard.weighers.base import WEIGHERS

OUR_FILTER = "AggregateInstanceTypeFilter"
NOVAS_FILTER = "AggregateInstanceExtraSpecsFilter"


def examine(conf: NovaConf) -> list[Finding]:
    """Return all findings, the most severe first."""
    checks = (
        _values,
        _trial_filters,
        _unknown,
        _paths,
        _offered,
        _enabled,
        _left_out,
        _both_filters,
        _capabilities,
        _weighers,
        _soft_weighers,
        _policy_check,
    )
    found = [conf.located(finding) for check in checks for finding in check(conf)]
    return sorted(found, key=lambda finding: list(Severity).index(finding.severity))


def _values(conf: NovaConf) -> Iterator[Finding]:
    for group, name, why in conf.bad_values():
        remedy = "correct or delete the line; with it, nova-scheduler may not start"
        yield Finding(
            Severity.ERROR, Check.INVALID_OPTION, option_subject(name, group), why, remedy
        )


def _trial_filters(conf: NovaConf) -> Iterator[Finding]:
    names = [plugin.name for plugin in plugins.installed(FILTERS)]
    for name in conf.trial_filters:
        if name not in names:
            yield Finding(
                Severity.ERROR,
                Check.UNKNOWN_PLUGIN,
                option_subject("trial_filters", options.GROUP),
                f"no filter {name!r}{plugins.suggestion(name, names)}",
                "correct or remove the name; nova-scheduler does not start with it",
            )
        elif name not in conf.enabled_filters:
            useful = conf.offers(name) or is_for_nova(name)
            enable = f"add {name} to enabled_filters, or remove it from trial_filters"
            yield Finding(
                Severity.NOTE,
                Check.FILTER_NOT_ENABLED,
                option_subject("trial_filters", options.GROUP),
                f"{name} is on trial but not enabled: it reports nothing",
                enable if useful else "remove the name",
            )
        elif not conf.offers(name) and not is_for_nova(name):
            yield Finding(
                Severity.WARNING,
                Check.FILTER_NOT_AVAILABLE,
                option_subject("trial_filters", options.GROUP),
                f"Nova does not load {name} from steelyard: it is not on trial, and rejects hosts",
                "remove the name; filters of Nova itself cannot be on trial",
            )


def _unknown(conf: NovaConf) -> Iterator[Finding]:
    known = [opt.name for opt in dict(options.list_opts())[options.GROUP]]
    for setting in conf.unknown_options:
        yield Finding(
            Severity.WARNING,
            Check.UNKNOWN_OPTION,
            option_subject(setting.option, options.GROUP),
            f"unknown option{spelling.near(setting.option, known)}",
            "correct the name or remove the line; it has no effect",
            setting.file,
            setting.line,
        )


def _paths(conf: NovaConf) -> Iterator[Finding]:
    for option, named, group, everything in (
        ("available_filters", conf.available_filters, FILTERS, OUR_FILTERS),
        ("weight_classes", conf.weight_classes, WEIGHERS, OUR_WEIGHERS),
    ):
        known = [f"{OURS}.{plugin.name}" for plugin in plugins.installed(group)] + [everything]
        for path in sorted({path for path in named if named.count(path) > 1}):
            yield Finding(
                Severity.WARNING,
                Check.DUPLICATE_PLUGIN,
                option_subject(option),
                f"{path!r} is listed more than once",
                "list it once",
                details={"plugin": path},
            )
        for path in named:
            if path.startswith(f"{OURS}.") and path not in known:
                yield Finding(
                    Severity.ERROR,
                    Check.UNKNOWN_PLUGIN,
                    option_subject(option),
                    f"no plugin {path!r}{spelling.near(path, known)}",
                    "correct the path; nova-scheduler does not start with it",
                    details={"plugin": path},
                )


def _offered(conf: NovaConf) -> Iterator[Finding]:
    ours = [path for path in conf.available_filters if path.startswith(f"{OURS}.")]
    if ours and NOVAS_FILTERS not in conf.available_filters:
        yield Finding(
            Severity.ERROR,
            Check.NOVA_FILTERS_MISSING,
            option_subject("available_filters"),
            f"{', '.join(ours)} listed without {NOVAS_FILTERS}: Nova's own filters, such as "
            f"ComputeFilter, are not available",
            f"add the line 'available_filters = {NOVAS_FILTERS}'",
        )


def _enabled(conf: NovaConf) -> Iterator[Finding]:
    for name in sorted({plugin.name for plugin in plugins.installed(FILTERS)}):
        if name in conf.enabled_filters and is_for_nova(name) and not conf.offers(name):
            yield Finding(
                Severity.ERROR,
                Check.FILTER_NOT_AVAILABLE,
                option_subject("available_filters"),
                f"{name} is enabled but not available: nova-scheduler does not start",
                f"add the line 'available_filters = {OUR_FILTERS}'",
                details={"plugin": name},
            )
    if conf.offers(OUR_FILTER) and OUR_FILTER not in conf.enabled_filters:
        yield Finding(
            Severity.WARNING,
            Check.FILTER_NOT_ENABLED,
            option_subject("enabled_filters"),
            f"{OUR_FILTER} is available but not enabled: it has no effect",
            f"add {OUR_FILTER} to enabled_filters",
            details={"plugin": OUR_FILTER},
        )


def _left_out(conf: NovaConf) -> Iterator[Finding]:
    # Both read plain extra specs, so leaving out Nova's is a remedy for another note.
    replaced = {CAPABILITIES_FILTER} if OUR_FILTER in conf.enabled_filters else set()
    present = replaced.union(conf.enabled_filters)
    missing = [name for name in NOVAS_DEFAULT_FILTERS if name not in present]
    if missing:
        yield Finding(
            Severity.NOTE,
            Check.DEFAULT_FILTERS_LEFT_OUT,
            option_subject("enabled_filters"),
            f"filters that Nova enables by default are left out: {', '.join(missing)}",
            "add them to enabled_filters, unless they are left out on purpose",
            details={"plugins": missing},
        )


def _both_filters(conf: NovaConf) -> Iterator[Finding]:
    if not {OUR_FILTER, NOVAS_FILTER} <= set(conf.enabled_filters):
        return
    if OUR_FILTER in conf.trial_filters:
        yield Finding(
            Severity.NOTE,
            Check.CONFLICTING_FILTERS,
            option_subject("enabled_filters"),
            f"{OUR_FILTER} is on trial, and {NOVAS_FILTER} still rejects hosts: it reads sentinels "
            f"as literal text",
            f"keep both during the trial; at its end, remove {NOVAS_FILTER}, and {OUR_FILTER} from "
            f"trial_filters",
            details={"plugin": NOVAS_FILTER},
        )
    else:
        yield Finding(
            Severity.WARNING,
            Check.CONFLICTING_FILTERS,
            option_subject("enabled_filters"),
            f"{NOVAS_FILTER} and {OUR_FILTER} are both enabled: Nova's reads sentinels as literal "
            f"text and rejects hosts that ours accepts",
            f"remove {NOVAS_FILTER}; {OUR_FILTER} understands the same values",
            details={"plugin": NOVAS_FILTER},
        )


def _capabilities(conf: NovaConf) -> Iterator[Finding]:
    if {OUR_FILTER, CAPABILITIES_FILTER} <= set(conf.enabled_filters):
        yield Finding(
            Severity.NOTE,
            Check.UNSCOPED_KEYS,
            option_subject("enabled_filters"),
            f"{CAPABILITIES_FILTER} also reads plain extra specs: one with the name of an "
            f"attribute of Nova's hosts (host, uuid, metrics, …) is compared with that attribute",
            "write such keys with the scope 'aggregate_instance_extra_specs:'",
            details={"plugin": CAPABILITIES_FILTER},
        )


def _weighers(conf: NovaConf) -> Iterator[Finding]:
    for name in conf.nova_weighers:
        fault = _weigher_fault(name)
        if fault:
            yield Finding(
                Severity.ERROR,
                Check.UNKNOWN_PLUGIN,
                option_subject("nova_weighers", options.GROUP),
                fault,
                "correct or remove the name; all_weighers leaves the weigher out",
                details={"plugin": name},
            )
        elif {OUR_WEIGHERS, f"{OURS}.{name}"} <= set(conf.weight_classes):
            yield Finding(
                Severity.WARNING,
                Check.DUPLICATE_PLUGIN,
                option_subject("weight_classes"),
                f"{name} is listed by name and through {OUR_WEIGHERS}: it counts twice",
                f"remove {OURS}.{name}",
                details={"plugin": name},
            )
    if not any(path.startswith("nova.") for path in conf.weight_classes):
        yield Finding(
            Severity.WARNING,
            Check.NOVA_WEIGHERS_MISSING,
            option_subject("weight_classes"),
            "none of Nova's own weighers is listed: free RAM, CPUs and disk, build failures and "
            "so on do not affect the choice of hosts",
            f"add {NOVAS_WEIGHERS}, or the paths of the weighers that you want",
        )
    named = conf.names_weighers and conf.nova_weighers
    if named and OUR_WEIGHERS not in conf.weight_classes:
        yield Finding(
            Severity.WARNING,
            Check.WEIGHERS_NOT_LOADED,
            option_subject("weight_classes"),
            f"[{options.GROUP}] nova_weighers lists weighers, but weight_classes does not list "
            f"{OUR_WEIGHERS}: they have no effect",
            f"add {OUR_WEIGHERS} to weight_classes",
        )


def _weigher_fault(name: str) -> str:
    """Return why Nova cannot load the weigher from steelyard, or an empty text."""
    try:
        found = plugins.load_classes(WEIGHERS, [name])[name]
    except errors.PluginError as error:
        names = [each.name for each in plugins.installed(WEIGHERS)]
        return error.message + ("" if name in names else plugins.suggestion(name, names))
    return "" if found.in_nova else f"{name} is not available in Nova, which has its own"


def _soft_weighers(conf: NovaConf) -> Iterator[Finding]:
    for weigher, multiplier in SOFT_WEIGHERS.items():
        novas = conf.soft_multiplier(weigher)
        if conf.uses_ours(weigher) and conf.uses_novas(weigher) and novas:
            yield Finding(
                Severity.WARNING,
                Check.DUPLICATE_PLUGIN,
                option_subject(multiplier),
                f"{weigher} is loaded twice, from Nova with the multiplier {novas} and from "
                f"steelyard: the members of a group are weighed twice",
                f"set {multiplier} = 0.0 in [{NOVAS_GROUP}]; steelyard's is in [{options.GROUP}]",
                details={"plugin": weigher},
            )
        if conf.uses_novas(weigher) and novas == 0 and not conf.uses_ours(weigher):
            yield Finding(
                Severity.WARNING,
                Check.SOFT_POLICY_IGNORED,
                option_subject(multiplier),
                f"Nova's own {weigher} has the multiplier 0, and steelyard's is not loaded: the "
                f"policy of server groups is accepted and then ignored",
                f"list {OUR_WEIGHERS} in weight_classes and {weigher} in [{options.GROUP}] "
                f"nova_weighers",
                details={"plugin": weigher},
            )


def _policy_check(conf: NovaConf) -> Iterator[Finding]:
    if conf.scheduler_only:
        return
    for weigher in SOFT_WEIGHERS:
        if conf.uses_ours(weigher) and not conf.uses_novas(weigher):
            yield Finding(
                Severity.WARNING,
                Check.SOFT_POLICY_REFUSED,
                option_subject("weight_classes"),
                f"Nova's own {weigher} is not listed: if nova-conductor reads this file, it "
                f"rejects server groups that need it",
                f"list {NOVAS_WEIGHERS} in the file that nova-conductor reads; if that is another "
                f"file, add --scheduler-only",
                details={"plugin": weigher},
            )
