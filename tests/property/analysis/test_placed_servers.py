"""Laws of the checks of placed servers: they find what counting server by server finds."""

from typing import NamedTuple

from hypothesis import given, settings
from hypothesis import strategies as st
from oslo_config import cfg

from steelyard import conf as options
from steelyard.analysis.checks import check
from steelyard.analysis.fitting import Fitting
from steelyard.analysis.group_violations import violations
from steelyard.analysis.placed_servers import misplaced, overcommitted
from steelyard.cloud import Aggregate, Cloud, Flavor, Host, Server
from steelyard.findings import Check
from steelyard.groups import Policy, ServerGroup
from steelyard.resources import FIELDS
from support.analysis.naive_placement import AMOUNTS, NaivePlacement
from support.examples import draw_until, examples

TRAIT = "HW_CPU_X86_AVX2"
DOMAINS: list[list[str]] = [[], ["rack"], ["rack", "room"], ["rack", "room"]]


class Case(NamedTuple):
    """A cloud with placed servers, and the keys of its failure domains."""

    cloud: Cloud
    domains: list[str]

    @property
    def conf(self) -> cfg.ConfigOpts:
        found = cfg.ConfigOpts()
        options.register(found)
        found([], project="steelyard", default_config_files=[], default_config_dirs=[])
        found.set_override("failure_domains", self.domains, "steelyard")
        return found

    @property
    def naive(self) -> NaivePlacement:
        return NaivePlacement(self.cloud, self.domains)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Return a case with few hosts, most of them in a rack and a room, and several groups."""
    names = [f"h{number}" for number in range(draw(st.integers(2, 6)))]
    hosts = {
        name: Host(
            name,
            *draw(st.tuples(st.integers(2, 12), st.integers(2, 12), st.just(9))),
            traits=draw(st.sampled_from([frozenset[str](), frozenset([TRAIT])])),
            reserved=draw(st.sampled_from([{}, {}, {"vcpus": 1}])),
            used=draw(st.sampled_from([{}, {}, {"ram_mb": 1}])),
            allocation_ratios={**dict.fromkeys(AMOUNTS, 1.0), "vcpus": 1.5},
            out_of_service=draw(st.sampled_from(["", "", "", "", "down"])),
        )
        for name in names
    }
    aggregates = []
    for key, values in VALUES.items():
        of_hosts = {name: draw(st.sampled_from(PICKS)) for name in names}
        for number, value in enumerate(values):
            members = tuple(name for name in names if number in of_hosts[name])
            flags = draw(st.sampled_from(FLAGS))
            aggregates.append(Aggregate(f"{key} {value}", {key: value, **flags}, members))
    flavors = {
        f"f{number}": Flavor(f"f{number}", vcpus, ram, 0, specs)
        for number, (vcpus, ram, specs) in enumerate(
            draw(
                st.lists(
                    st.tuples(st.integers(0, 3), st.integers(0, 4), st.sampled_from(SPECS)),
                    min_size=1,
                    max_size=3,
                )
            )
        )
    }
    groups: dict[str, ServerGroup] = {}
    for policy in draw(st.lists(st.sampled_from(Policy), min_size=1, max_size=3)):
        name, most = f"g{len(groups)}", draw(st.integers(1, 2))
        rules = {"max_server_per_host": most} if policy is Policy.ANTI_AFFINITY else {}
        groups[name] = ServerGroup(name, policy, rules)
    cloud = Cloud(hosts, {each.name: each for each in aggregates}, flavors, groups)
    places = draw(
        st.lists(
            st.tuples(
                st.sampled_from(sorted(flavors)),
                st.sampled_from(names),
                st.sampled_from([None, *groups, *groups, *groups]),
            ),
            min_size=draw(st.integers(0, 8)),
            max_size=12,
        )
    )
    return Case(
        cloud.with_servers(
            Server(f"s{number}", f"s{number}", flavors[flavor], host, group)
            for number, (flavor, host, group) in enumerate(places)
        ),
        draw(st.sampled_from(DOMAINS)),
    )


VALUES = {"rack": "abc", "room": "ns", "ssd": ["nvme", "sata"], "filter_tenant_id1": ["t"]}
# The values that apply to a host, mostly one.
PICKS = [{0}, {1}, {1}, {2}, {0, 1}, set()]
FLAGS: list[dict[str, str]] = [*[{}] * 15, {"force_metadata_check": "true"}]
SPECS: list[dict[str, str]] = [
    *[{}] * 5,
    {"ssd": "nvme"},
    {"ssd": "<or> nvme <or> ~"},
    {f"trait:{TRAIT}": "required"},
    {"rack": "a"},
]


@settings(max_examples=examples(150))
@given(cases())
def test_violations_are_those_of_servers_moved_alone(case: Case) -> None:
    found = {each.group.name: each for each in violations(Fitting(case.cloud, case.conf))}
    naive = case.naive.violations()
    assert {
        name: (each.level, {offender.server.uuid for offender in each.offenders})
        for name, each in found.items()
    } == {name: (each.level, set(each.better)) for name, each in naive.items()}
    for name, each in found.items():
        for offender in each.offenders:
            best = naive[name].better[offender.server.uuid]
            assert offender.better_host in best if best else offender.better_host is None


@settings(max_examples=examples(50))
@given(cases())
def test_misplaced_servers_are_those_that_do_not_fit_their_empty_hosts(case: Case) -> None:
    fitting = Fitting(case.cloud, case.conf)
    found = list(misplaced(fitting))
    assert sorted(each.server.uuid for each in found) == sorted(case.naive.misplaced())
    emptied = {host.host: host for host in fitting.emptied.hosts}
    for each in found:
        missing = fitting.missing(each.server.flavor.name, emptied[each.server.host])
        assert each.verdict == missing.verdicts[0]


@settings(max_examples=examples(50))
@given(cases())
def test_overcommitted_hosts_are_those_with_more_allocated_than_limits(case: Case) -> None:
    found = {
        each.host: {FIELDS[excess.resource_class] for excess in each.excesses}
        for each in overcommitted(Fitting(case.cloud, case.conf))
    }
    assert found == case.naive.overcommitted()


@settings(max_examples=examples(50))
@given(cases())
def test_findings_about_placed_servers_are_the_counted_ones(case: Case) -> None:
    told = {(each.check, each.subject.name) for each in check(case.cloud, case.conf)}
    naive = case.naive
    for kind, names in (
        (Check.GROUP_VIOLATION, naive.violations()),
        (Check.MISPLACED_SERVER, naive.misplaced()),
        (Check.OVERCOMMITTED_HOST, naive.overcommitted()),
    ):
        assert {name for found, name in told if found is kind} == set(names)


@settings(max_examples=examples(50))
@given(cases())
def test_nearest_host_has_fewest_unmet_demands_and_is_dedicated_to_no_other(case: Case) -> None:
    for finding in check(case.cloud, case.conf):
        if finding.check is Check.FITS_NO_HOST:
            flavor = case.cloud.flavors[finding.subject.name]
            assert finding.details["nearest_host"] == case.naive.nearest(flavor)


def test_cases_include_violations_of_every_policy_at_every_level() -> None:
    hard = {(policy, "host") for policy in Policy}
    soft = {
        (policy, level)
        for policy in (Policy.SOFT_AFFINITY, Policy.SOFT_ANTI_AFFINITY)
        for level in ("rack", "room")
    }
    seen: set[tuple[Policy, str]] = set()

    def completes(case: Case) -> bool:
        groups = case.cloud.server_groups
        found = case.naive.violations()
        seen.update((groups[name].policy, each.level) for name, each in found.items())
        return seen == hard | soft

    draw_until(cases(), completes)
    assert seen == hard | soft
