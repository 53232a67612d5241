"""The examples of the specification by use case, with one host per aggregate."""

from typing import Any

import pytest

from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter
from support.scheduler.plain_objects import Flavor, Request, host

FORCED = {"force_metadata_check": "True"}
NOT_FORCED = {"force_metadata_check": "False"}


def passing(flavor: dict[str, str], *aggregates: dict[str, str]) -> list[int]:
    """Return the numbers of the aggregates whose hosts pass."""
    plugin = AggregateInstanceTypeFilter()
    request = Request(Flavor(flavor))
    hosts = [host(metadata) for metadata in aggregates]
    found = list(plugin.filter_all(hosts, request))
    assert found == [each for each in hosts if plugin.examine(each, request)]
    return [hosts.index(each) + 1 for each in found]


@pytest.mark.parametrize(
    ("flavor", "aggregates"),
    [
        ({"key": "~"}, [2, 3]),
        ({"key": "<or> * <or> ~"}, [1, 2, 3]),
        ({"key": "*"}, [1]),
        ({}, [1, 2, 3]),
    ],
)
def test_introduction_extra_spec_selects_aggregates(flavor: Any, aggregates: Any) -> None:
    assert (
        passing(flavor, {"key": "1"} | NOT_FORCED, {}, {"other key": "1"} | NOT_FORCED)
        == aggregates
    )


@pytest.mark.parametrize("flavor", [{}, {"key": "1"}, {"key": "x y"}, {"key": "*"}, {"key": "~"}])
def test_introduction_forced_any_or_none_requires_nothing(flavor: Any) -> None:
    metadata = {"key": "<or> * <or> ~"} | FORCED
    assert passing(flavor, metadata) == [1]


def test_use_case_1_any_value() -> None:
    assert passing({"key": "*"}, {"key": "1"}, {"key": "anything at all"}, {}) == [1, 2]


def test_use_case_2_a_value_or_none() -> None:
    assert passing({"key": "<or> 1 <or> ~"}, {"key": "1"}, {"key": "2"}, {}) == [1, 3]


def test_use_case_3_never_with_the_key() -> None:
    assert passing({"key": "!"}, {"key": "1"}, {}) == [2]


@pytest.mark.parametrize(
    ("flavor", "passes"), [({"key": "1"}, True), ({"key": "2"}, False), ({}, False)]
)
def test_use_case_4_forced_aggregate(flavor: Any, passes: Any) -> None:
    assert bool(passing(flavor, {"key": "1"} | FORCED)) is passes


def test_use_case_4_unforced_aggregate() -> None:
    assert passing({}, {"key": "1"}) == [1]


@pytest.mark.parametrize(
    ("metadata", "flavors"),
    [
        ({"key": "*"} | FORCED, [1, 2]),
        ({"key": "*"}, [3]),
        ({"key": "*"} | NOT_FORCED, [3]),
        ({"key": "!"} | FORCED, [3]),
    ],
)
def test_use_case_5_sentinels_in_forced_aggregates(metadata: Any, flavors: Any) -> None:
    asked = [{"key": "1"}, {"key": "2"}, {}, {"key": "*", "key2": "2"}]
    if metadata == {"key": "!"} | FORCED:
        asked.pop()
    assert [i for i, flavor in enumerate(asked, 1) if passing(flavor, metadata)] == flavors


@pytest.mark.parametrize(
    ("metadata", "flavors"),
    [
        ({"key": "<or> 1 <or> 2"} | FORCED, [1, 2, 3, 5]),
        # The document says that no flavor passes; by its use cases 4 and 5, flavor 4 passes.
        ({"key": "<or> 1 <or> 2"}, [4]),
        ({"key": "<or> 1 <or> 2"} | NOT_FORCED, [4]),
    ],
)
def test_use_case_6_junctions_in_forced_aggregates(metadata: Any, flavors: Any) -> None:
    asked = [{"key": "1"}, {"key": "2"}, {"key": "<or> 2 <or> 3"}, {}, {"key": "<or> 1 <or> 2"}]
    assert [i for i, flavor in enumerate(asked, 1) if passing(flavor, metadata)] == flavors


def test_use_case_7_namespaced_keys() -> None:
    flavor = {"hw:cpu_policy": "shared"}
    aggregates = [{"hw:cpu_policy": "shared"}, {"hw:cpu_policy": "dedicated"}, {}]
    assert passing(flavor, *aggregates) == [1, 3]


@pytest.mark.parametrize(
    ("flavor", "passes"),
    [({"hw:cpu_policy": "shared"}, True), ({"hw:cpu_policy": "dedicated"}, False), ({}, False)],
)
def test_use_case_7_forced_aggregates_require_namespaced_keys(flavor: Any, passes: Any) -> None:
    assert bool(passing(flavor, {"hw:cpu_policy": "shared"} | FORCED)) is passes
