"""Steelyard's own knowledge of Nova's rules, compared with a real Nova."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.aggregates import SCOPE
from steelyard.analysis.comparison import compare
from steelyard.analysis.novas_rules import OwnRules
from steelyard.cloud import Aggregate, Cloud
from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter
from steelyard.nova.rules import InstalledRules
from steelyard.scheduler.rules import NovaAnswer
from support.examples import draw_until, examples
from support.filters import strategies
from support.repository import ROOT

NOVAS, OWN = InstalledRules(), OwnRules()

Texts = dict[str, str]

# Values that both filters understand, and values that raise in Nova.
words = st.sampled_from(["a", "b", "ab", "4", "8", "8.0", "-1", "10", "many", "a-b"])
shared = st.one_of(
    words,
    st.builds("{} {}".format, strategies.numeric_operators, strategies.numbers),
    st.builds("{} {}".format, strategies.textual_operators, words),
    st.builds("<in> {}".format, words),
    st.builds(lambda found: f"<all-in> {' '.join(found)}", st.lists(words, min_size=1, max_size=3)),
    st.builds(
        lambda found: "".join(f"<or> {word} " for word in found).strip(),
        st.lists(words, min_size=1, max_size=4),
    ),
)
keys = ["ssd", "cpu", "zone", f"{SCOPE}ssd", f"{SCOPE}hw:x", "quota:y"]
subset_flavors = st.dictionaries(st.sampled_from(keys), shared, max_size=4)
offered = st.one_of(words, words, st.sampled_from(["*", "~", "!", "<or> a <or> b", ">= 4", ""]))
subset_metadata = st.dictionaries(
    st.sampled_from(["ssd", "cpu", "zone", "hw:x"]), strategies.comma_lists(offered), max_size=4
)
# Everything: sentinels, forced aggregates, shared namespaces, malformed numbers, and nonsense.
numeric = st.builds(
    "{} {}".format,
    strategies.numeric_operators,
    st.sampled_from(["4", "8", "many", "inf", "nan", "1e999", " 4 x"]),
)
anything = st.one_of(
    strategies.scribble,
    shared,
    numeric,
    st.sampled_from(["*", "~", "!", "<or> a <or> ~", "<or> ! <or> a", "<or>", " a ", ">="]),
)
any_keys = st.sampled_from([*keys, "hw:x", "force_metadata_check", f"{SCOPE}force_metadata_check"])
all_flavors = st.dictionaries(any_keys, anything, max_size=3)
all_metadata = st.dictionaries(
    any_keys,
    strategies.comma_lists(st.one_of(offered, numeric, st.sampled_from(["inf", "nan"]), anything)),
    max_size=4,
).flatmap(
    lambda said: (
        st.just(said) | strategies.flags.map(lambda flag: {**said, "force_metadata_check": flag})
    )
)

thorough = settings(max_examples=examples(300), suppress_health_check=list(HealthCheck))


def aggregates(said: list[Texts]) -> tuple[Aggregate, ...]:
    return tuple(Aggregate(f"a{i}", each, ()) for i, each in enumerate(said))


# Nova answers the last two too: it compares with nan, and reads every second word of a junction.
OUTCOMES: list[tuple[Texts, list[Texts], NovaAnswer]] = [
    ({}, [], NovaAnswer.PASSES),
    ({"ssd": "a"}, [{"ssd": "a"}], NovaAnswer.PASSES),
    ({"ssd": "a"}, [{"ssd": "b"}], NovaAnswer.REJECTS),
    ({"ssd": "a"}, [], NovaAnswer.REJECTS),
    ({"cpu": ">= 4"}, [{"cpu": "many"}], NovaAnswer.ABORTS),
    ({"cpu": ">= 4"}, [{"cpu": "many"}, {"cpu": "8"}], NovaAnswer.MAY_ABORT),
    ({"cpu": ">= 4", "ssd": "b"}, [{"cpu": "many", "ssd": "a"}], NovaAnswer.MAY_ABORT),
    ({"cpu": ">= nan"}, [{"cpu": "4"}], NovaAnswer.NOT_KNOWN),
    ({"ssd": "<or> a b <or> c"}, [{"ssd": "a"}], NovaAnswer.NOT_KNOWN),
]


def check_own(flavor: Texts, said: list[Texts]) -> NovaAnswer:
    """Return the outcome of our own rules, after checking it against Nova unless it is not known."""
    own = OWN.judge(flavor, aggregates(said))
    if own.outcome is not NovaAnswer.NOT_KNOWN:
        assert own == NOVAS.judge(flavor, aggregates(said))
    return own.outcome


@pytest.mark.parametrize(("flavor", "said", "outcome"), OUTCOMES)
def test_own_rules_give_each_outcome(flavor: Texts, said: list[Texts], outcome: NovaAnswer) -> None:
    assert check_own(flavor, said) is outcome


def test_examples_cover_every_outcome() -> None:
    assert {outcome for _, _, outcome in OUTCOMES} == set(NovaAnswer)


@pytest.mark.parametrize("outcome", NovaAnswer)
def test_generated_input_leads_to_each_outcome(outcome: NovaAnswer) -> None:
    draw_until(
        st.tuples(all_flavors, st.lists(all_metadata, max_size=3)),
        lambda drawn: OWN.judge(drawn[0], aggregates(drawn[1])).outcome is outcome,
    )


@thorough
@given(all_flavors, st.lists(all_metadata, max_size=3))
def test_own_rules_agree_with_nova_or_do_not_know(flavor: Texts, said: list[Texts]) -> None:
    check_own(flavor, said)


@thorough
@given(subset_flavors, st.lists(subset_metadata, max_size=3))
def test_own_rules_know_outcome_for_shared_language(flavor: Texts, said: list[Texts]) -> None:
    assert check_own(flavor, said) is not NovaAnswer.NOT_KNOWN


@settings(max_examples=examples(100), suppress_health_check=list(HealthCheck))
@given(all_flavors, st.lists(all_metadata, max_size=3))
def test_installed_rules_always_know_outcome(flavor: Texts, said: list[Texts]) -> None:
    found = NOVAS.judge(flavor, aggregates(said))
    assert found.outcome is not NovaAnswer.NOT_KNOWN
    assert bool(found.why) == (found.outcome in (NovaAnswer.ABORTS, NovaAnswer.MAY_ABORT))


def test_compare_of_example_is_the_same_with_and_without_nova(conf: Any) -> None:
    cloud = Cloud.load(ROOT / "src" / "steelyard" / "cloud" / "example.yaml")
    ours = AggregateInstanceTypeFilter(conf)
    with_nova, without = compare(cloud, ours, NOVAS), compare(cloud, ours, OWN)
    assert with_nova.judgements == without.judgements
    assert with_nova.changes == without.changes != []
