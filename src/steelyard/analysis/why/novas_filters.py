"""Nova's filters, as far as their answers can be computed from readable data."""

import fnmatch
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence

from oslo_config import cfg

from steelyard import plugins
from steelyard.analysis.checks.novas_keys import HOST_ATTRIBUTES
from steelyard.analysis.novas_rules import OwnRules
from steelyard.analysis.why.facts import Facts, KnownHost
from steelyard.attributes import read
from steelyard.cloud.image_properties import named_as_now
from steelyard.filters.base import FILTERS, Filter, Rejections
from steelyard.groups import Policy
from steelyard.scheduler.rules import NovaAnswer, NovaRules, demands
from steelyard.verdict import Verdict

_IN_SERVICE = "InServiceFilter"
_FOR_GROUPS = {
    "ServerGroupAffinityFilter": Policy.AFFINITY,
    "ServerGroupAntiAffinityFilter": Policy.ANTI_AFFINITY,
}
_WITHOUT_AGGREGATES = (_IN_SERVICE, *_FOR_GROUPS)
_SAME_HOST = "same_host"
_DIFFERENT_HOST = "different_host"
_TENANT_KEY = "filter_tenant_id"

# Extra specs, and image properties, that NUMATopologyFilter compares with the CPUs of hosts.
_NUMA_SPECS = (
    "hw:cpu_*",
    "hw:emulator_threads_policy",
    "hw:mem_page_size",
    "hw:numa_*",
    "hw:pmem",
    "resources*:PCPU",
)
_PCI_ALIAS = "pci_passthrough:alias"
_NUMA_PROPERTIES = ("hw_cpu_*", "hw_mem_page_size", "hw_numa_*")

# Values of hosts, with those of images that they may support, too.
_COMPATIBLE = {"x86_64": {"i686"}, "aarch64": {"armv7l"}, "qemu": {"kvm"}}


class JudgedFilter(Filter):
    """A filter whose answers one function gives for one request."""

    host_local = True

    def __init__(self, rejections: Rejections) -> None:
        super().__init__()
        self._rejections = rejections

    def judge(self, request: object) -> Rejections:
        return self._rejections


class NovasFilters:
    """The enabled filters of Nova for one request.

    ``applied`` has, by Nova's names, the filters whose answers are known. ``not_applied`` has the
    names of the others.
    """

    def __init__(
        self,
        enabled: Sequence[str],
        facts: Facts,
        rules: NovaRules | None = None,
        conf: cfg.ConfigOpts | None = None,
        architecture: str = "",
    ) -> None:
        """Find the filters.

        ``rules`` are those of an installed Nova, if there is one. ``architecture`` is the one that
        Nova assumes of images that name none; empty for none.
        """
        self._facts = facts
        self._rules = rules or OwnRules()
        self._conf = conf
        self._architecture = architecture
        self.applied: dict[str, Filter] = {}
        self.not_applied: list[str] = []
        finders: dict[str, Callable[[], Filter | None]] = {
            each.name: functools.partial(self._ours, each.name)
            for each in plugins.installed(FILTERS)
        }
        finders |= {
            "AggregateInstanceExtraSpecsFilter": self._extra_specs,
            "AggregateMultiTenancyIsolation": self._tenants,
            "AllHostsFilter": _passing,
            "ComputeCapabilitiesFilter": self._capabilities,
            "ComputeFilter": lambda: self._ours(_IN_SERVICE),
            "DifferentHostFilter": self._different_host,
            "ImagePropertiesFilter": self._image_properties,
            "JsonFilter": self._unless_hinted("query"),
            "NUMATopologyFilter": self._numa_topology,
            "PciPassthroughFilter": self._pci_devices,
            "SameHostFilter": self._same_host,
            "SimpleCIDRAffinityFilter": self._unless_hinted("build_near_host_ip"),
        }
        for name in dict.fromkeys(enabled):
            found = finders[name]() if name in finders else None
            if found is None:
                self.not_applied.append(name)
            else:
                self.applied[name] = found

    @property
    def _knows_aggregates(self) -> bool:
        return self._facts.hosts is not None and self._facts.aggregates is not None

    def _knows_group_of(self, policy: Policy) -> bool:
        """Return whether it is known which hosts a group with this policy has, if there is one."""
        group = self._facts.wanted.group
        if group is None:
            return self._facts.group_known
        return group.policy is not policy or self._facts.server_hosts.keys() >= group.members

    @property
    def _wanted_specs(self) -> Mapping[str, str]:
        return self._facts.wanted.flavor.extra_specs

    def _ours(self, name: str) -> Filter | None:
        """Return the filter of steelyard; None if the data that it reads is not known."""
        if self._facts.hosts is None:
            return None  # all filters compare names of hosts, or their aggregates
        if self._facts.aggregates is None and name not in _WITHOUT_AGGREGATES:
            return None
        if name in _FOR_GROUPS and not self._knows_group_of(_FOR_GROUPS[name]):
            return None
        found: Filter = plugins.load(FILTERS, [name], self._conf)[name]
        return found

    def _extra_specs(self) -> Filter | None:
        if not self._knows_aggregates:
            return None
        specs = self._wanted_specs

        def rejections(host: object) -> Iterator[Verdict]:
            found = self._rules.judge(specs, tuple(read(host, "aggregates")))
            if found.outcome is NovaAnswer.REJECTS:
                yield from _unoffered(specs, host, self._rules)
            elif found.outcome in (NovaAnswer.ABORTS, NovaAnswer.MAY_ABORT):
                yield Verdict.rejected(f"the filter fails: {found.why}")

        return JudgedFilter(rejections)

    def _tenants(self) -> Filter | None:
        if not self._knows_aggregates or not self._facts.wanted.project:
            return None
        project = self._facts.wanted.project

        def rejections(host: object) -> Iterator[Verdict]:
            allowed = {
                each.strip(): aggregate.name
                for aggregate in read(host, "aggregates")
                for key, text in aggregate.metadata.items()
                if key.startswith(_TENANT_KEY)
                for each in text.split(",")
            }
            if allowed and project not in allowed:
                names = ", ".join(map(repr, sorted(set(allowed.values()))))
                yield Verdict.rejected(
                    f"aggregate {names} is for other projects than {project!r}", key=_TENANT_KEY
                )

        return JudgedFilter(rejections)

    def _capabilities(self) -> Filter | None:
        """Return a filter that passes all hosts if no extra spec is for this filter of Nova."""
        for key in self._wanted_specs:
            scope, _, rest = key.partition(":")
            if scope == "capabilities" or key == "hw:maxphysaddr_bits":
                return None
            if not rest and key in HOST_ATTRIBUTES:
                return None
        return _passing()

    def _numa_topology(self) -> Filter | None:
        wanted = self._facts.wanted
        if _any_matches(wanted.flavor.extra_specs, _NUMA_SPECS):
            return None
        if _any_matches(named_as_now(wanted.image_properties), _NUMA_PROPERTIES):
            return None
        return _passing()

    def _pci_devices(self) -> Filter | None:
        """Return a filter that passes all hosts if the flavor requests no devices.

        Devices that ports request are not known, which the facts say.
        """
        return None if _PCI_ALIAS in self._wanted_specs else _passing()

    def _unless_hinted(self, hint: str) -> Callable[[], Filter | None]:
        hinted = hint in self._facts.wanted.scheduler_hints
        return lambda: None if hinted else _passing()

    def _same_host(self) -> Filter | None:
        return self._by_servers(_SAME_HOST)

    def _different_host(self) -> Filter | None:
        return self._by_servers(_DIFFERENT_HOST)

    def _by_servers(self, hint: str) -> Filter | None:
        uuids = self._facts.wanted.scheduler_hints.get(hint, ())
        if not uuids:
            return _passing()
        at = self._facts.server_hosts
        if self._facts.hosts is None or not at.keys() >= set(uuids):
            return None
        services = {at[uuid] for uuid in uuids} - {""}
        service_of = {each.name: each.service for each in self._facts.hosts}
        listed = ", ".join(map(repr, sorted(services)))
        elsewhere = Verdict.rejected(
            f"the hint {hint!r} names servers on {listed}"
            if services
            else f"the hint {hint!r} names only servers on no host"
        )

        def rejections(host: object) -> Iterator[Verdict]:
            name = read(host, "host")
            is_there = service_of.get(name, name) in services
            if hint == _SAME_HOST and not is_there:
                yield elsewhere
            if hint == _DIFFERENT_HOST and is_there:
                yield Verdict.rejected(
                    f"the hint {hint!r} names servers on {name!r}",
                    f"the hint {hint!r} names servers on the host",
                )

        return JudgedFilter(rejections)

    def _image_properties(self) -> Filter | None:
        """Return a filter on the architecture and the hypervisor that the image needs.

        Nova compares more with the combinations that a host supports, which its API does not show:
        then the filter is unknown.
        """
        default = named_as_now({"hw_architecture": self._architecture})
        properties = {**default, **named_as_now(self._facts.wanted.image_properties)}
        if any(properties.get(each) for each in ("hw_vm_mode", "img_hv_requested_version")):
            return None
        names = ("hw_architecture", "img_hv_type")
        wanted = {name: properties[name] for name in names if properties.get(name)}
        if not wanted:
            return _passing()
        if self._facts.hosts is None:
            return None
        known = {each.name: each for each in self._facts.hosts}

        def rejections(host: object) -> Iterator[Verdict]:
            for name, has in _machine(known.get(read(host, "host"))).items():
                text = wanted.get(name, has)
                if has and text != has and text not in _COMPATIBLE.get(has, ()):
                    yield Verdict.rejected(
                        f"the image has {name} {text!r}, the host has {has!r} and is assumed to "
                        f"support no other",
                        key=name,
                    )

        return JudgedFilter(rejections)


def _machine(host: KnownHost | None) -> dict[str, str]:
    """Return the host's values for the properties of images; empty texts are not known."""
    if host is None:
        return {}
    has = {"hw_architecture": host.architecture, "img_hv_type": host.hypervisor_type}
    return named_as_now(has)


def _passing() -> Filter:
    """Return a filter that passes all hosts."""
    return JudgedFilter(lambda host: ())


def _any_matches(names: Mapping[str, str], patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, each) for name in names for each in patterns)


def _unoffered(specs: Mapping[str, str], host: object, rules: NovaRules) -> Iterator[Verdict]:
    """Yield a rejection for each key of the flavor that the host's aggregates do not satisfy."""
    aggregates = tuple(read(host, "aggregates"))
    for key, bare, text in demands(specs):
        if rules.judge({key: text}, aggregates).outcome is NovaAnswer.REJECTS:
            offers = sorted({each.metadata[bare] for each in aggregates if bare in each.metadata})
            has = f"have {', '.join(map(repr, offers))}" if offers else "do not have it"
            yield Verdict.rejected(
                f"the flavor wants {key!r} = {text!r}, the host's aggregates {has}",
                f"the flavor wants {key!r} = {text!r}, and the aggregates {has}",
                key=bare,
            )
