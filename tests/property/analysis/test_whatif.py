"""The consequences of changes equal those of two full runs that share nothing."""

import dataclasses
from collections.abc import Iterable
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st
from oslo_config import cfg

from steelyard import conf as options
from steelyard.analysis.whatif.baseline import Baseline
from steelyard.analysis.whatif.consequences import Consequences, consequences
from steelyard.cloud import Aggregate, Cloud, Flavor, Host, Server, changes
from steelyard.cloud.changes import (
    Change,
    KeyedPart,
    SetKey,
    SetMembership,
    TakeIn,
    TakeOut,
    TakeOutAggregate,
    TakeOutByMetadata,
)
from steelyard.errors import SteelyardError
from steelyard.findings import Check, Finding
from steelyard.groups import Policy, ServerGroup
from support.analysis.naive_whatif import NaiveConsequences, naive_consequences
from support.examples import examples

FLAVORS = {
    "small": Flavor("small", 1, 1024, 1),
    "large": Flavor("large", 2, 3072, 2, {"ssd": "nvme"}),
    "trait": Flavor("trait", 1, 512, 1, {"trait:CUSTOM_A": "required"}),
}
names = st.sampled_from(["h0", "h1", "h2", "h3"])
aggregate_names = st.sampled_from(["a0", "a1", "a2"])
values = st.sampled_from(["nvme", "sata", "r1", "r2", "true"])
keys = st.sampled_from(["ssd", "rack", "force_metadata_check", "trait:CUSTOM_A"])

change_values = st.one_of(
    st.builds(SetKey, st.just(KeyedPart.FLAVOR), st.sampled_from(sorted(FLAVORS)), keys, values),
    st.builds(SetKey, st.just(KeyedPart.AGGREGATE), aggregate_names, keys, values),
    st.builds(SetMembership, aggregate_names, names, st.booleans()),
    st.builds(TakeOut, names),
    st.builds(TakeOutAggregate, aggregate_names),
    st.builds(TakeOutByMetadata, st.just("rack"), st.sampled_from(["r1", "r2"])),
    st.builds(TakeIn, names),
)


@st.composite
def clouds(draw: st.DrawFn) -> Cloud:
    hosts = {
        f"h{number}": Host(
            f"h{number}",
            4,
            draw(st.sampled_from([2048, 4096, 6144])),
            20,
            draw(st.sampled_from([frozenset[str](), frozenset({"CUSTOM_A"})])),
            out_of_service="down" if draw(st.integers(0, 5)) == 5 else "",
        )
        for number in range(draw(st.integers(2, 4)))
    }
    members = st.lists(st.sampled_from(sorted(hosts)), unique=True)
    metadata = [{"rack": "r1"}, {"rack": "r2"}, {"ssd": "nvme"}]
    aggregates = {
        f"a{number}": Aggregate(f"a{number}", said, tuple(draw(members)))
        for number, said in enumerate(metadata)
    }
    groups = {"g": ServerGroup("g", draw(st.sampled_from(Policy)))}
    placed = st.tuples(
        st.sampled_from(sorted(hosts)),
        st.sampled_from(sorted(FLAVORS)),
        st.sampled_from([None, "g", "g"]),
    )
    return Cloud(hosts, aggregates, FLAVORS, groups).with_servers(
        Server(f"u{number}", f"s{number}", FLAVORS[flavor], host, group)
        for number, (host, flavor, group) in enumerate(
            draw(st.lists(placed, min_size=2, max_size=6))
        )
    )


def changed(cloud: Cloud, wanted: list[Change]) -> Cloud:
    """Return the cloud with those of the changes that are possible."""
    for change in wanted:
        try:
            cloud = changes.applied(cloud, [("", change)])
        except SteelyardError:
            event("a change is not possible")
    return cloud


@st.composite
def sides(draw: st.DrawFn) -> tuple[Cloud, Cloud]:
    """Draw a cloud, and the cloud after changes, or one from another file."""
    before = draw(clouds())
    if draw(st.integers(0, 3)):
        wanted = draw(st.lists(change_values, max_size=2))
        hosts = {server.host for server in before.servers.values()}
        if bool(hosts) and draw(st.booleans()):
            wanted.append(TakeOut(draw(st.sampled_from(sorted(hosts)))))
        return before, changed(before, wanted)
    other = draw(clouds())
    flavors = {name: each for name, each in other.flavors.items() if draw(st.booleans())}
    other = dataclasses.replace(other, flavors=flavors, servers={})
    return before, changes.with_servers_of(before, other, "other")


def configured(domains: list[str]) -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
    options.register(conf)
    conf.set_override("failure_domains", domains, options.GROUP)
    return conf


def test_consequences_equal_those_of_two_full_runs() -> None:
    seen: set[str] = set()

    @settings(max_examples=examples(60))
    @given(sides(), st.sampled_from([list[str](), ["rack"]]))
    def law(both: tuple[Cloud, Cloud], domains: list[str]) -> None:
        before, after = both
        missing = {
            name for name, host in after.hosts.items() if host.out_of_service == "not in other"
        }
        found = consequences(Baseline(before, configured(domains)), after, missing=missing)
        assert_same(found, naive_consequences(*both, configured(domains), missing))
        seen.update(kinds(found))

    law()
    # A law about several outcomes proves little if its clouds never lead to one of them.
    assert seen == {"moved", "stranded", "misplaced", "worse", "strict"}


def kinds(found: Consequences) -> set[str]:
    """Return the kinds of the consequences."""
    conditions = {
        "moved": len(found.displaced) > 1,
        "stranded": found.stranded,
        "misplaced": found.misplaced,
        "worse": found.is_worse(),
        "strict": found.is_worse(strict=True) and not found.is_worse(),
    }
    return {kind for kind, holds in conditions.items() if holds}


def identities(findings: Iterable[Finding]) -> set[Any]:
    """Return the check and the subject of each finding, for unreachable hosts those of each one."""
    return {
        identity
        for each in findings
        for identity in (
            [(each.check, host) for host in each.details["hosts"]]
            if each.check is Check.UNREACHABLE_HOST
            else [(each.check, each.subject)]
        )
    }


def assert_same(found: Consequences, naive: NaiveConsequences) -> None:
    assert {
        each.flavor: (
            each.hosts_before,
            each.hosts_after,
            each.capacity_before,
            each.capacity_after,
        )
        for each in found.flavors
    } == naive.flavors
    for each in found.flavors:
        expected = naive.causes.get(each.flavor, {})
        assert {cause.cause: cause.hosts for cause in each.causes} == expected
    assert [(each.server.uuid, each.to) for each in found.displaced] == naive.moved
    assert {each.server.uuid for each in found.stranded} == naive.stranded
    assert {each.server.uuid for each in found.misplaced} == naive.misplaced
    assert identities(found.findings.new) == naive.new
    assert identities(found.findings.resolved) == naive.resolved
    assert found.is_worse() == naive.worse
    assert found.is_worse(strict=True) == naive.worse_if_strict
