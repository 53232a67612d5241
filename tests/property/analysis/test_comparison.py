"""Laws of comparing Nova's answers with ours for a whole cloud."""

import itertools

from hypothesis import given
from hypothesis import strategies as st
from oslo_config import cfg

from steelyard.aggregates import SCOPE
from steelyard.analysis.comparison import Difference, compare
from steelyard.analysis.novas_rules import OwnRules
from steelyard.cloud import Aggregate, Cloud, Flavor, Host
from steelyard.cloud.host_state import host_states
from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter
from steelyard.scheduler import Request
from support.filters import strategies

OURS = AggregateInstanceTypeFilter(cfg.ConfigOpts())
HOSTS = ["h1", "h2", "h3", "h4"]


def clouds(
    flavors: st.SearchStrategy[dict[str, str]], metadata: st.SearchStrategy[dict[str, str]]
) -> st.SearchStrategy[Cloud]:
    aggregates = st.tuples(metadata, st.sets(st.sampled_from(HOSTS)))
    return st.builds(
        lambda extra_specs, said: Cloud(
            {name: Host(name, 1, 1, 1) for name in HOSTS},
            {
                f"a{i}": Aggregate(f"a{i}", each, tuple(sorted(hosts)))
                for i, (each, hosts) in enumerate(said)
            },
            {f"f{i}": Flavor(f"f{i}", 1, 1, 1, each) for i, each in enumerate(extra_specs)},
        ),
        st.lists(flavors, min_size=1, max_size=4),
        st.lists(aggregates, max_size=4),
    )


# One key has numbers and the others have text, so no comparison in Nova raises.
texts = st.sampled_from(["a", "b", "ab", "a-b", "4"])
alike = clouds(
    st.fixed_dictionaries(
        {},
        optional={
            "cpu": st.builds("{} {}".format, strategies.numeric_operators, strategies.numbers),
            f"{SCOPE}ssd": texts,
            "zone": st.builds("{} {}".format, strategies.textual_operators, texts),
            "rack": st.builds("<or> {} <or> {}".format, texts, texts),
            "quota:x": texts,
        },
    ),
    st.fixed_dictionaries(
        {},
        optional={
            "cpu": strategies.comma_lists(strategies.numbers),
            **dict.fromkeys(("ssd", "zone", "rack"), strategies.comma_lists(texts)),
        },
    ),
)


@given(clouds(strategies.mappings(strategies.scribble), strategies.metadata(strategies.scribble)))
def test_compare_gives_both_answers_for_each_pair(cloud: Cloud) -> None:
    found = {
        pair: each
        for each in compare(cloud, OURS, OwnRules()).judgements
        for pair in itertools.product(each.flavors, each.hosts)
    }
    assert set(found) == set(itertools.product(cloud.flavors, cloud.hosts))
    for flavor, host in itertools.product(cloud.flavors.values(), host_states(cloud)):
        each = found[flavor.name, host.host]
        nova = OwnRules().judge(flavor.extra_specs, tuple(host.aggregates))
        assert each.nova is nova.outcome
        assert each.passes is OURS.host_passes(host, Request(flavor))
        same = each.nova == ("passes" if each.passes else "rejects")
        assert (each.kind is None) is same
        assert bool(each.cause) is not same


@given(clouds(strategies.mappings(strategies.scribble), strategies.metadata(strategies.scribble)))
def test_changes_contain_each_difference_once(cloud: Cloud) -> None:
    comparison = compare(cloud, OURS, OwnRules())
    differing = [each for each in comparison.judgements if each.kind is not None]
    grouped = [each for change in comparison.changes for each in change.judgements]
    assert sorted(map(id, grouped)) == sorted(map(id, differing))
    causes = [(change.kind, change.cause) for change in comparison.changes]
    assert len(set(causes)) == len(causes)
    for change in comparison.changes:
        assert {(each.kind, each.cause) for each in change.judgements} == {
            (change.kind, change.cause)
        }


@given(alike)
def test_compare_without_differences_has_no_changes(cloud: Cloud) -> None:
    assert compare(cloud, OURS, OwnRules()).changes == []


@given(alike, st.sampled_from(["*", "~", "!", "<or> * <or> ~"]))
def test_sentinels_cause_only_newly_accepted_hosts(cloud: Cloud, sentinel: str) -> None:
    flavors = {
        name: Flavor(name, 1, 1, 1, {**flavor.extra_specs, "zone": sentinel})
        for name, flavor in cloud.flavors.items()
    }
    changed = Cloud(cloud.hosts, cloud.aggregates, flavors)
    kinds = {change.kind for change in compare(changed, OURS, OwnRules()).changes}
    assert kinds <= {Difference.NEWLY_ACCEPTED}
