"""The verdicts of the filter and of Nova's own, over generated flavors and aggregates.

A test for each intended difference shows both answers.
"""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nova import objects
from nova.scheduler import host_manager
from nova.scheduler.filters.aggregate_instance_extra_specs import AggregateInstanceExtraSpecsFilter
from oslo_config import cfg

from steelyard.aggregates import SCOPE
from steelyard.expressions import Expression
from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter
from support.examples import draw_until, examples
from support.filters import strategies

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
# Values of a flavor that both filters understand.
shared = st.one_of(words, operations)
flavors = st.dictionaries(
    st.sampled_from(["ssd", "cpu", "zone", f"{SCOPE}ssd", f"{SCOPE}hw:x", "quota:y"]),
    shared,
    max_size=4,
)
# In unforced aggregates, sentinels and junctions are literal text.
offered = st.one_of(words, words, st.sampled_from(["*", "~", "!", "<or> a <or> b", ">= 4", ""]))
metadata = st.dictionaries(
    st.sampled_from(["ssd", "cpu", "zone", "hw:x", "force_metadata_check"]),
    strategies.comma_lists(offered),
    max_size=4,
).map(
    lambda offered: (
        offered | {"force_metadata_check": "no"} if "force_metadata_check" in offered else offered
    )
)


def host(offered: list[dict[str, str]]) -> host_manager.HostState:
    state = host_manager.HostState("host", "node", "00000000-0000-4000-8000-000000000000")
    state.aggregates = [
        objects.Aggregate(id=index, name=f"aggregate {index}", metadata=metadata)
        for index, metadata in enumerate(offered)
    ]
    return state


def request(flavor: dict[str, str]) -> objects.RequestSpec:
    return objects.RequestSpec(flavor=objects.Flavor(extra_specs=flavor), scheduler_hints={})


def theirs(flavor: dict[str, str], *offered: dict[str, str]) -> bool | str:
    """Return Nova's verdict, or the name of the exception that aborts the request."""
    try:
        return bool(THEIRS.host_passes(host(list(offered)), request(flavor)))
    except Exception as error:  # noqa: BLE001  (whatever Nova raises is its answer)
        return type(error).__name__


def ours(flavor: dict[str, str], *offered: dict[str, str]) -> bool:
    state, spec = host(list(offered)), request(flavor)
    verdict = OURS.examine(state, spec)
    assert list(OURS.filter_all([state], spec)) == ([state] if verdict else [])
    return verdict.passed


def check_parity(flavor: dict[str, str], offered: list[dict[str, str]]) -> bool | str:
    """Check that both verdicts agree, unless Nova raises; return Nova's answer."""
    verdict, expected = ours(flavor, *offered), theirs(flavor, *offered)
    if isinstance(expected, str):
        # For a numeric operator, a value that is not a number does not match here.
        assert expected == "ValueError"
    else:
        assert verdict == expected
    return expected


@pytest.mark.parametrize(
    ("flavor", "offered", "answer"),
    [
        ({}, [{"ssd": "a"}], True),
        ({"ssd": "a"}, [{"ssd": "b"}, {"ssd": "a"}], True),
        ({"ssd": "<or> a <or> b", "cpu": ">= 4"}, [{"ssd": "b", "cpu": "8.0"}], True),
        ({"quota:y": "a"}, [], True),
        ({"ssd": "a"}, [], False),
        ({f"{SCOPE}ssd": "a"}, [{"ssd": "b"}], False),
        ({"ssd": "a"}, [{"ssd": "*", "force_metadata_check": "no"}], False),
        ({"cpu": "<= 4"}, [{"cpu": "8"}], False),
        ({"cpu": ">= 4"}, [{"cpu": "many"}], "ValueError"),
    ],
)
def test_request_has_the_same_verdict_unless_nova_raises(
    flavor: dict[str, str], offered: list[dict[str, str]], answer: bool | str
) -> None:
    assert check_parity(flavor, offered) == answer


@pytest.mark.parametrize("answer", [True, False, "ValueError"])
def test_generated_input_leads_to_each_answer(answer: bool | str) -> None:
    draw_until(
        st.tuples(flavors, st.lists(metadata, max_size=3)),
        lambda drawn: check_parity(*drawn) == answer,
    )


@settings(max_examples=examples(500), suppress_health_check=list(HealthCheck))
@given(flavors, st.lists(metadata, max_size=3))
def test_generated_requests_have_the_same_verdict(
    flavor: dict[str, str], offered: list[dict[str, str]]
) -> None:
    check_parity(flavor, offered)


@settings(max_examples=examples(100))
@given(
    st.builds("{} {}".format, strategies.numeric_operators, strategies.numbers) | st.just("<or>"),
    st.lists(st.sampled_from(["many", "a", "", "s== 4", "~"]), min_size=1, max_size=3),
    strategies.mappings(strategies.scribble),
)
def test_value_that_makes_nova_raise_does_not_match(
    text: str, values: list[str], others: dict[str, str]
) -> None:
    flavor, metadata = {"n": text}, {"n": ", ".join(values)}
    assert theirs(flavor, metadata) in ("ValueError", "IndexError")
    assert ours(flavor, metadata) is False
    assert ours(flavor | others, metadata) is False


def test_difference_white_space_around_a_flavors_value_is_ignored() -> None:
    assert theirs({"ssd": " nvme "}, {"ssd": "nvme"}) is False
    assert ours({"ssd": " nvme "}, {"ssd": "nvme"}) is True


@pytest.mark.parametrize(
    ("text", "value"), [(">= 4", "inf"), ("!= 4", "nan"), ("<= inf", "4"), ("!= nan", "4")]
)
def test_difference_infinite_numbers_and_nan_do_not_match(text: str, value: str) -> None:
    assert theirs({"n": text}, {"n": value}) is True
    assert ours({"n": text}, {"n": value}) is False


@pytest.mark.parametrize(
    ("value", "in_nova", "here"), [("a", True, False), ("a b", False, True), ("c", False, True)]
)
def test_difference_junction_splits_at_or_and_not_at_every_second_word(
    value: str, in_nova: bool, here: bool
) -> None:
    assert theirs({"k": "<or> a b <or> c"}, {"k": value}) is in_nova
    assert ours({"k": "<or> a b <or> c"}, {"k": value}) is here


def test_difference_operators_inside_junctions_are_evaluated() -> None:
    assert theirs({"n": "<or> >= 4 <or> x"}, {"n": "5"}) is False
    assert ours({"n": "<or> >= 4 <or> x"}, {"n": "5"}) is True


def test_difference_reserved_key_of_a_flavor_is_ignored() -> None:
    assert theirs({"force_metadata_check": "x"}, {}) is False
    assert ours({"force_metadata_check": "x"}, {}) is True


@pytest.mark.parametrize(("text", "value"), [("*", "x"), ("<or> * <or> y", "x")])
def test_difference_asterisk_matches_any_value(text: str, value: str) -> None:
    assert theirs({"k": text}, {"k": value}) is False
    assert ours({"k": text}, {"k": value}) is True


@pytest.mark.parametrize("text", ["~", "!", "<or> x <or> ~"])
def test_difference_sentinels_match_absence(text: str) -> None:
    assert theirs({"k": text}, {}) is False
    assert ours({"k": text}, {}) is True


def test_difference_namespaced_key_on_both_sides_is_compared() -> None:
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
def test_difference_value_that_aborts_novas_request_does_not_match(
    flavor: dict[str, str], metadata: dict[str, str], exception: str
) -> None:
    assert theirs(flavor, metadata) == exception
    assert ours(flavor, metadata) is False
    assert Expression.parse(flavor["n"]).admits("other") is False
