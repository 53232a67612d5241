"""The same verdicts as Nova's own filter, over generated flavors and aggregates.

Where the two differ by design, a test of its own shows both answers.
"""

from typing import Any

import pytest
import strategies
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nova import objects
from nova.scheduler import host_manager
from nova.scheduler.filters.aggregate_instance_extra_specs import AggregateInstanceExtraSpecsFilter
from oslo_config import cfg

from steelyard.aggregates import SCOPE
from steelyard.expressions import Expression
from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter

objects.register_all()

THEIRS = AggregateInstanceExtraSpecsFilter()
OURS = AggregateInstanceTypeFilter(cfg.ConfigOpts())

words = st.sampled_from(["a", "b", "ab", "4", "8", "8.0", "-1", "10", "many", "a-b"])
operations = st.one_of(
    st.builds("{} {}".format, strategies.numeric_operators, strategies.numbers),
    st.builds("{} {}".format, strategies.textual_operators, words),
    st.builds("<in> {}".format, words),
    st.builds(lambda found: f"<all-in> {' '.join(found)}", st.lists(words, min_size=1, max_size=3)),
    st.builds(
        lambda found: "".join(f"<or> {word} " for word in found).strip(),
        st.lists(words, min_size=1, max_size=4),
    ),
)
# A flavor's values in the part of the language that both filters have.
shared = st.one_of(words, operations)
flavors = st.dictionaries(
    st.sampled_from(["ssd", "cpu", "zone", f"{SCOPE}ssd", f"{SCOPE}hw:x", "quota:y"]),
    shared,
    max_size=4,
)
# Metadata is literal there, whatever it looks like; sentinels and junctions are only text.
offered = st.one_of(words, words, st.sampled_from(["*", "~", "!", "<or> a <or> b", ">= 4", ""]))
metadata = st.dictionaries(
    st.sampled_from(["ssd", "cpu", "zone", "hw:x", "force_metadata_check"]),
    strategies.comma_lists(offered),
    max_size=4,
).map(
    lambda said: said | {"force_metadata_check": "no"} if "force_metadata_check" in said else said
)


def host(said: list[dict[str, str]]) -> host_manager.HostState:
    state = host_manager.HostState("host", "node", "00000000-0000-4000-8000-000000000000")
    state.aggregates = [
        objects.Aggregate(id=index, name=f"aggregate {index}", metadata=metadata)
        for index, metadata in enumerate(said)
    ]
    return state


def request(flavor: dict[str, str]) -> objects.RequestSpec:
    return objects.RequestSpec(flavor=objects.Flavor(extra_specs=flavor), scheduler_hints={})


def theirs(flavor: dict[str, str], *said: dict[str, str]) -> bool | str:
    """Nova's verdict, or the name of the exception that aborts the request."""
    try:
        return bool(THEIRS.host_passes(host(list(said)), request(flavor)))
    except Exception as error:  # noqa: BLE001  (whatever Nova raises is its answer)
        return type(error).__name__


def ours(flavor: dict[str, str], *said: dict[str, str]) -> bool:
    state, spec = host(list(said)), request(flavor)
    verdict = OURS.examine(state, spec)
    assert list(OURS.filter_all([state], spec)) == ([state] if verdict else [])
    return verdict.passed


def test_ten_thousand_generated_requests_have_the_same_verdict() -> None:
    tally: dict[Any, int] = {True: 0, False: 0, "raised": 0}

    @settings(
        max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck), database=None
    )
    @given(flavors, st.lists(metadata, max_size=3))
    def compare(flavor: dict[str, str], said: list[dict[str, str]]) -> None:
        verdict, expected = ours(flavor, *said), theirs(flavor, *said)
        if isinstance(expected, str):
            # A value that is no number under a numeric operator: no match here, and no exception.
            assert expected == "ValueError"
            tally["raised"] += 1
            return
        assert verdict == expected
        tally[expected] += 1

    compare()
    # The comparison must not be one-sided, nor full of cases that Nova does not answer.
    assert tally[True] > 1000
    assert tally[False] > 1000
    assert tally["raised"] < sum(tally.values()) / 3


@settings(max_examples=1000, deadline=None)
@given(
    st.builds("{} {}".format, strategies.numeric_operators, strategies.numbers) | st.just("<or>"),
    st.lists(st.sampled_from(["many", "a", "", "s== 4", "~"]), min_size=1, max_size=3),
    strategies.mappings(strategies.scribble),
)
def test_where_theirs_raises_ours_does_not_match(
    text: str, values: list[str], others: dict[str, str]
) -> None:
    flavor, metadata = {"n": text}, {"n": ", ".join(values)}
    assert theirs(flavor, metadata) in ("ValueError", "IndexError")
    assert ours(flavor, metadata) is False
    assert ours(flavor | others, metadata) is False


def test_difference_white_space_around_a_flavors_value() -> None:
    assert theirs({"ssd": " nvme "}, {"ssd": "nvme"}) is False
    assert ours({"ssd": " nvme "}, {"ssd": "nvme"}) is True


@pytest.mark.parametrize(
    ("text", "value"), [(">= 4", "inf"), ("!= 4", "nan"), ("<= inf", "4"), ("!= nan", "4")]
)
def test_difference_infinite_numbers_and_nan(text: str, value: str) -> None:
    assert theirs({"n": text}, {"n": value}) is True
    assert ours({"n": text}, {"n": value}) is False


@pytest.mark.parametrize(
    ("value", "in_nova", "here"), [("a", True, False), ("a b", False, True), ("c", False, True)]
)
def test_difference_nova_reads_every_second_word_of_a_junction(
    value: str, in_nova: bool, here: bool
) -> None:
    assert theirs({"k": "<or> a b <or> c"}, {"k": value}) is in_nova
    assert ours({"k": "<or> a b <or> c"}, {"k": value}) is here


def test_difference_operators_inside_junctions() -> None:
    assert theirs({"n": "<or> >= 4 <or> x"}, {"n": "5"}) is False
    assert ours({"n": "<or> >= 4 <or> x"}, {"n": "5"}) is True


def test_difference_the_reserved_key_of_a_flavor() -> None:
    assert theirs({"force_metadata_check": "x"}, {}) is False
    assert ours({"force_metadata_check": "x"}, {}) is True


@pytest.mark.parametrize(("text", "value"), [("*", "x"), ("<or> * <or> y", "x")])
def test_difference_any_value(text: str, value: str) -> None:
    assert theirs({"k": text}, {"k": value}) is False
    assert ours({"k": text}, {"k": value}) is True


@pytest.mark.parametrize("text", ["~", "!", "<or> x <or> ~"])
def test_difference_absence(text: str) -> None:
    assert theirs({"k": text}, {}) is False
    assert ours({"k": text}, {}) is True


def test_difference_a_namespaced_key_on_both_sides() -> None:
    assert theirs({"hw:x": "1"}, {"hw:x": "2"}) is True
    assert ours({"hw:x": "1"}, {"hw:x": "2"}) is False


@pytest.mark.parametrize(
    ("flavor", "metadata", "exception"),
    [
        ({"n": ">= 8"}, {"n": "many"}, "ValueError"),
        ({"n": ">= many"}, {"n": "8"}, "ValueError"),
        ({"n": "<or>"}, {"n": "8"}, "IndexError"),
    ],
)
def test_difference_what_aborts_the_request_in_nova_is_no_match_here(
    flavor: dict[str, str], metadata: dict[str, str], exception: str
) -> None:
    assert theirs(flavor, metadata) == exception
    assert ours(flavor, metadata) is False
    assert Expression.parse(flavor["n"]).admits("other") is False
