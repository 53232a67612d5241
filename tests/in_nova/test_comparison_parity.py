"""What steelyard knows of Nova's rules is what a real Nova answers, or nothing."""

import collections
import pathlib
from typing import Any

import strategies
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.aggregates import SCOPE
from steelyard.desk.comparison import compare
from steelyard.desk.novas_rules import OwnRules
from steelyard.desk.rules import Outcome
from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter
from steelyard.nova.rules import InstalledRules
from steelyard.scheduler import Aggregate, Cloud

ROOT = pathlib.Path(__file__).parents[2]

NOVAS, OWN = InstalledRules(), OwnRules()

Texts = dict[str, str]

# What both read alike, as the parity of the filters has it, and what raises in Nova.
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
# All there is: sentinels, forced aggregates, shared namespaces, malformed numbers, and nonsense.
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

thorough = settings(
    max_examples=3000, deadline=None, suppress_health_check=list(HealthCheck), database=None
)


def aggregates(said: list[Texts]) -> tuple[Aggregate, ...]:
    return tuple(Aggregate(f"a{i}", each, ()) for i, each in enumerate(said))


def tallied(
    flavors: st.SearchStrategy[Texts], metadata: st.SearchStrategy[Texts]
) -> collections.Counter[Outcome]:
    """How often each answer of our own came up, all of them being Nova's, or none."""
    tally: collections.Counter[Outcome] = collections.Counter()

    @thorough
    @given(flavors, st.lists(metadata, max_size=3))
    def judge(flavor: Texts, said: list[Texts]) -> None:
        own = OWN.judge(flavor, aggregates(said))
        tally[own.outcome] += 1
        if own.outcome is not Outcome.NOT_KNOWN:
            assert own == NOVAS.judge(flavor, aggregates(said))

    judge()
    return tally


def test_our_own_knowledge_is_novas_answer_or_none() -> None:
    tally = tallied(all_flavors, all_metadata)
    for outcome in Outcome:
        assert tally[outcome] >= 10, tally


def test_all_is_known_about_what_both_read_alike() -> None:
    tally = tallied(subset_flavors, subset_metadata)
    assert tally[Outcome.NOT_KNOWN] == 0
    assert tally[Outcome.PASSES] > 400
    assert tally[Outcome.REJECTS] > 400
    assert tally[Outcome.ABORTS] > 40
    assert tally[Outcome.MAY_ABORT] > 10


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(all_flavors, st.lists(all_metadata, max_size=3))
def test_what_is_not_known_does_not_occur_with_nova(flavor: Texts, said: list[Texts]) -> None:
    found = NOVAS.judge(flavor, aggregates(said))
    assert found.outcome is not Outcome.NOT_KNOWN
    assert bool(found.why) == (found.outcome in (Outcome.ABORTS, Outcome.MAY_ABORT))


def test_the_example_is_compared_alike(conf: Any) -> None:
    cloud = Cloud.load(ROOT / "src" / "steelyard" / "scheduler" / "example.yaml")
    ours = AggregateInstanceTypeFilter(conf)
    with_nova, without = compare(cloud, ours, NOVAS), compare(cloud, ours, OWN)
    assert with_nova.judgements == without.judgements
    assert with_nova.changes == without.changes != []
