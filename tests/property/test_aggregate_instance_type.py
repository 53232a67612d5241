"""Laws of the filter: over generated flavors and aggregates, well formed and not."""

import random
from typing import Any

import strategies
from clouds import Aggregate, Flavor, Host, Request
from hypothesis import given
from hypothesis import strategies as st
from oslo_config import cfg

from steelyard.aggregates import SCOPE, flag
from steelyard.expressions import ABSENT, Expression
from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter

flavors = strategies.mappings(strategies.scribble)
aggregates = st.lists(strategies.metadata(strategies.comma_lists(strategies.scribble)), max_size=3)
likely_flavors = strategies.mappings(strategies.well_formed)
likely_aggregates = st.lists(
    strategies.metadata(strategies.comma_lists(strategies.well_formed)), max_size=3
)


def new_filter() -> AggregateInstanceTypeFilter:
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
    return AggregateInstanceTypeFilter(conf)


def host(said: list[dict[str, str]]) -> Host:
    return Host([Aggregate(metadata, f"a{index}") for index, metadata in enumerate(said)])


@given(
    st.one_of(flavors, likely_flavors),
    st.lists(st.one_of(aggregates, likely_aggregates), max_size=4),
)
def test_examine_and_filter_all_agree_on_lists_and_on_iterators(
    flavor: dict[str, str], layouts: list[list[dict[str, str]]]
) -> None:
    plugin, request = new_filter(), Request(Flavor(flavor))
    hosts = [host(said) for said in layouts]
    expected = [each for each in hosts if plugin.examine(each, request).passed]
    assert list(plugin.filter_all(hosts, request)) == expected
    assert list(plugin.filter_all(iter(hosts), request)) == expected
    assert list(plugin.filter_all(hosts, request)) == expected  # from what was kept
    assert [each for each in hosts if plugin.host_passes(each, request)] == expected


@given(likely_flavors, likely_aggregates, st.randoms(use_true_random=False))
def test_no_order_changes_a_verdict(
    flavor: dict[str, str], said: list[dict[str, str]], shuffle: random.Random
) -> None:
    def shuffled(items: Any) -> list[Any]:
        found = list(items)
        shuffle.shuffle(found)
        return found

    before = new_filter().examine(host(said), Request(Flavor(flavor)))
    named = [
        Aggregate(dict(shuffled(metadata.items())), f"a{index}")
        for index, metadata in enumerate(said)
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


@given(st.one_of(flavors, likely_flavors), st.one_of(aggregates, likely_aggregates))
def test_the_verdict_is_that_of_the_definition(
    flavor: dict[str, str], said: list[dict[str, str]]
) -> None:
    verdict = new_filter().examine(host(said), Request(Flavor(flavor)))
    assert verdict.passed == (meets_demands(flavor, said) and meets_conditions(flavor, said))
    assert verdict.passed == (verdict.reason == "")


@given(likely_flavors, likely_aggregates, likely_aggregates, likely_aggregates)
def test_metadata_changed_in_place_is_noticed(
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


# The definition, word by word and as slowly as that.


def is_forced(metadata: dict[str, str]) -> bool:
    return bool(flag(metadata.get("force_metadata_check", "")))


def stripped(key: str) -> str:
    return key.removeprefix(SCOPE)


def meets_demands(flavor: dict[str, str], said: list[dict[str, str]]) -> bool:
    for written, text in flavor.items():
        key, wanted = stripped(written), Expression.parse(text)
        if key == "force_metadata_check":
            continue
        literal = [
            part.strip()
            for m in said
            if not is_forced(m) and key in m
            for part in m[key].split(",")
        ]
        offers = [
            Expression.parse_list(value)
            for m in said
            if is_forced(m)
            for name, value in m.items()
            if stripped(name) == key
        ]
        if ":" in written and not written.startswith(SCOPE) and not literal and not offers:
            continue
        absent = not literal and all(offer.admits(None) for offer in offers)
        if not (
            any(wanted.admits(value) for value in literal)
            or any(wanted.meets(offer) for offer in offers)
            or (absent and wanted.admits(None))
        ):
            return False
    return True


def meets_conditions(flavor: dict[str, str], said: list[dict[str, str]]) -> bool:
    stated: dict[str, list[Expression]] = {}
    for written, text in flavor.items():
        stated.setdefault(stripped(written), []).append(Expression.parse(text))
    return all(
        expression.compatible(Expression.parse_list(value))
        for metadata in said
        if is_forced(metadata)
        for written, value in metadata.items()
        if stripped(written) != "force_metadata_check" and written != "availability_zone"
        for expression in stated.get(stripped(written), [ABSENT])
    )
