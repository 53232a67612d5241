"""Laws of AggregateInstanceTypeFilter, over generated flavors and aggregates."""

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oslo_config import cfg

from steelyard import conf as options
from steelyard.aggregates import SCOPE
from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter
from support.examples import examples
from support.filters import aggregate_oracle as oracle
from support.filters import strategies
from support.scheduler.plain_objects import Aggregate, Flavor, Host, Request

# Coverage doubles the time of these tests, and others reach the same lines.
pytestmark = pytest.mark.usefixtures("no_cover")

IGNORED = tuple(options.register(None).force_check_ignored_keys)

flavors = strategies.mappings(strategies.scribble)
aggregates = st.lists(strategies.metadata(strategies.comma_lists(strategies.scribble)), max_size=4)
likely_flavors = strategies.mappings(strategies.well_formed)
likely_metadata = strategies.metadata(strategies.comma_lists(strategies.well_formed))
likely_aggregates = st.lists(likely_metadata, max_size=4)


def new_filter() -> AggregateInstanceTypeFilter:
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
    return AggregateInstanceTypeFilter(conf)


def host(offered: list[dict[str, str]]) -> Host:
    return Host([Aggregate(metadata, f"a{index}") for index, metadata in enumerate(offered)])


@given(
    st.one_of(flavors, likely_flavors),
    st.lists(st.one_of(aggregates, likely_aggregates), max_size=4),
)
def test_examine_and_filter_all_agree_on_lists_and_on_iterators(
    flavor: dict[str, str], layouts: list[list[dict[str, str]]]
) -> None:
    plugin, request = new_filter(), Request(Flavor(flavor))
    hosts = [host(offered) for offered in layouts]
    expected = [each for each in hosts if plugin.examine(each, request).passed]
    assert list(plugin.filter_all(hosts, request)) == expected
    assert list(plugin.filter_all(iter(hosts), request)) == expected
    assert list(plugin.filter_all(hosts, request)) == expected  # from kept answers
    assert [each for each in hosts if plugin.host_passes(each, request)] == expected


@given(st.one_of(flavors, likely_flavors), st.one_of(aggregates, likely_aggregates))
def test_rejection_has_the_key_that_its_reason_names(
    flavor: dict[str, str], offered: list[dict[str, str]]
) -> None:
    for verdict in new_filter().rejections(host(offered), Request(Flavor(flavor))):
        assert verdict.reason.startswith(f"key {verdict.key!r}: ")
        assert verdict.cause.startswith(f"key {verdict.key!r}: ")


@given(likely_flavors, likely_aggregates, st.randoms(use_true_random=False))
def test_verdict_is_independent_of_order(
    flavor: dict[str, str], offered: list[dict[str, str]], shuffle: random.Random
) -> None:
    def shuffled(items: Any) -> list[Any]:
        found = list(items)
        shuffle.shuffle(found)
        return found

    before = new_filter().examine(host(offered), Request(Flavor(flavor)))
    named = [
        Aggregate(dict(shuffled(metadata.items())), f"a{index}")
        for index, metadata in enumerate(offered)
    ]
    other = Host(shuffled(named))
    asked = Request(Flavor(dict(shuffled(flavor.items()))))
    assert new_filter().examine(other, asked) == before
    for aggregate in named:
        aggregate.metadata = {
            key: value if key == "force_metadata_check" else ",".join(shuffled(value.split(",")))
            for key, value in aggregate.metadata.items()
        }
    assert new_filter().examine(other, asked).passed == before.passed


@settings(max_examples=examples(100))
@given(st.one_of(flavors, likely_flavors), st.one_of(aggregates, likely_aggregates))
def test_verdict_equals_the_oracle(flavor: dict[str, str], offered: list[dict[str, str]]) -> None:
    plugin, request = new_filter(), Request(Flavor(flavor))
    verdict = plugin.examine(host(offered), request)
    assert verdict.passed == oracle.passes(flavor, offered, IGNORED)
    assert verdict.passed == (verdict.reason == "")
    assert verdict.passed == (list(plugin.rejections(host(offered), request)) == [])


present = st.one_of(strategies.words, st.just("*"), strategies.operations)
present_values = st.one_of(
    present,
    st.lists(present, min_size=1, max_size=3).map(lambda found: "<or> " + " <or> ".join(found)),
)


@given(
    st.fixed_dictionaries({}, optional={"a": present_values, "hw:b": present_values}),
    st.lists(
        st.dictionaries(
            st.sampled_from(["a", "hw:b", "c"]),
            st.lists(present_values, min_size=1, max_size=3).map(",".join),
            min_size=1,
        ),
        min_size=1,
        max_size=3,
    ),
)
def test_forced_aggregates_combine_their_values(
    flavor: dict[str, str], offered: list[dict[str, str]]
) -> None:
    # This does not hold for '~' and '!', which the strategy does not draw.
    joined: dict[str, str] = {}
    for metadata in offered:
        for key, text in metadata.items():
            joined[key] = f"{joined[key]},{text}" if key in joined else text
    forced = [{**metadata, "force_metadata_check": "true"} for metadata in offered]
    one = [{**joined, "force_metadata_check": "true"}]
    plugin, request = new_filter(), Request(Flavor(flavor))
    assert plugin.host_passes(host(forced), request) == plugin.host_passes(host(one), request)


@given(likely_flavors, st.lists(likely_metadata, max_size=3), st.sampled_from(["a", "hw:b", "c"]))
def test_forced_aggregate_with_any_or_none_changes_nothing_for_flavors_without_the_key(
    flavor: dict[str, str], offered: list[dict[str, str]], key: str
) -> None:
    without = {name: text for name, text in flavor.items() if name.removeprefix(SCOPE) != key}
    plugin, request = new_filter(), Request(Flavor(without))
    more = [*offered, {key: "<or> * <or> ~", "force_metadata_check": "true"}]
    assert plugin.host_passes(host(more), request) == plugin.host_passes(host(offered), request)


odd_keys = st.one_of(
    st.sampled_from(["a", "b", "force_metadata_check"]),
    st.none(),
    st.booleans(),
    st.integers(0, 2),
    st.binary(max_size=1),
    st.tuples(st.integers(0, 1)),
)
odd_values = st.one_of(st.sampled_from(["1", "true", "~", "!"]), st.none(), st.integers(0, 2))
odd_mappings = st.dictionaries(odd_keys, odd_values, max_size=3)


@given(odd_mappings, st.lists(st.lists(odd_mappings, max_size=2), max_size=3))
def test_keys_that_are_not_text_are_ignored_by_all_methods(
    flavor: dict[Any, Any], layouts: list[list[dict[Any, Any]]]
) -> None:
    plugin, request = new_filter(), Request(Flavor(flavor))
    hosts = [host(offered) for offered in layouts]
    expected = [each for each in hosts if plugin.examine(each, request).passed]
    assert [each for each in hosts if plugin.host_passes(each, request)] == expected
    assert list(plugin.filter_all(hosts, request)) == expected


@given(likely_flavors, likely_aggregates, likely_aggregates, likely_aggregates)
def test_metadata_changed_in_place_takes_effect(
    flavor: dict[str, str],
    one: list[dict[str, str]],
    other: list[dict[str, str]],
    replaced: list[dict[str, str]],
) -> None:
    plugin, request = new_filter(), Request(Flavor(flavor))
    hosts = [host(one), host(other)]
    list(plugin.filter_all(hosts, request))
    for aggregate, metadata in zip(hosts[0].aggregates, replaced, strict=False):
        assert aggregate.metadata is not None
        aggregate.metadata.clear()
        aggregate.metadata.update(metadata)
    assert list(plugin.filter_all(hosts, request)) == list(new_filter().filter_all(hosts, request))


@given(
    likely_flavors,
    st.lists(likely_metadata, min_size=1, max_size=3),
    st.lists(st.lists(st.integers(0, 2), max_size=2), min_size=1, max_size=6),
    st.integers(0, 5),
    st.one_of(st.none(), st.lists(st.integers(0, 2), max_size=2)),
)
def test_changed_lists_of_shared_aggregates_take_effect(
    flavor: dict[str, str],
    pool: list[dict[str, str]],
    layouts: list[list[int]],
    changed: int,
    replacement: list[int] | None,
) -> None:
    shared = [Aggregate(metadata, f"a{index}") for index, metadata in enumerate(pool)]

    def chosen(indexes: list[int]) -> list[Aggregate]:
        return [shared[index % len(shared)] for index in indexes]

    plugin, request = new_filter(), Request(Flavor(flavor))
    hosts = [Host(chosen(indexes)) for indexes in layouts] * 2  # each list occurs twice
    hosts += [Host(list(each.aggregates)) for each in hosts]
    list(plugin.filter_all(hosts, request))
    some = hosts[changed % len(hosts)]
    if replacement is None:
        some.aggregates = None
    else:
        some.aggregates[:] = chosen(replacement)
    expected = [each for each in hosts if plugin.examine(each, request).passed]
    for _ in range(2):
        assert list(plugin.filter_all(hosts, request)) == expected


RANDOM_TEXTS = [
    *("1", "2", "1,2", "*", "~", "!", "<or> !", "<or> 1 <or> ~", "<or> * <or> ~", "<or> 2 <or> 3"),
    *(">= 2", "<= 1", "s> 1", "<in> 1", "1,!", "<or>", ">= many", "1 , ~", "<or> 1 <or>", ""),
]
RANDOM_KEYS = ["a", f"{SCOPE}a", "hw:b", f"{SCOPE}hw:b", "trait:C"]


def test_verdicts_of_20_000_hosts_equal_the_oracle() -> None:
    # With few keys, aggregates and flavors often have one in common.
    chance = random.Random(20)
    plugin, rejected = new_filter(), 0

    def mapping(most: int) -> dict[str, str]:
        keys = chance.sample(RANDOM_KEYS, chance.randint(0, most))
        return {key: chance.choice(RANDOM_TEXTS) for key in keys}

    for _ in range(2000):
        flavor = mapping(2)
        for _ in range(10):
            offered = [mapping(3) for _ in range(chance.randint(0, 4))]
            for metadata in offered:
                if chance.random() < 0.7:
                    metadata["force_metadata_check"] = chance.choice(["true", "true", "1", "no"])
            passes = plugin.host_passes(host(offered), Request(Flavor(flavor)))
            assert passes == oracle.passes(flavor, offered, IGNORED), (flavor, offered)
            rejected += not passes
    assert 5_000 < rejected < 19_000
