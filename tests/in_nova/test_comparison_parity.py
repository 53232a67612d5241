"""What steelyard knows of Nova's rules, judged by Nova, and the command with Nova's own."""

import collections
import itertools
import json
import pathlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
import strategies
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from nova import objects
from nova.scheduler import host_manager
from nova.scheduler.filters.aggregate_instance_extra_specs import AggregateInstanceExtraSpecsFilter

from steelyard.aggregates import SCOPE
from steelyard.desk.comparison import compare
from steelyard.desk.novas_rules import OwnRules
from steelyard.desk.rules import Outcome
from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter
from steelyard.nova.rules import InstalledRules
from steelyard.scheduler import Aggregate, Cloud

ROOT = pathlib.Path(__file__).parents[2]
STEELYARD = pathlib.Path(sys.executable).with_name("steelyard")

NOVAS, OWN = InstalledRules(), OwnRules()
THEIRS = AggregateInstanceExtraSpecsFilter()

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
    max_examples=4000, deadline=None, suppress_health_check=list(HealthCheck), database=None
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


class Placed(str):
    """A text whose place in a small set is known: that of its number."""

    __slots__ = ("place",)
    place: int

    def __hash__(self) -> int:
        return self.place

    def __eq__(self, other: object) -> bool:
        return str(self) == other

    def split(self, *args: Any) -> Any:
        return [self]

    def strip(self, *args: Any) -> Any:
        return self


def in_every_order(flavor: Texts, offers: Mapping[str, tuple[str, ...]]) -> Iterator[Any]:
    """Nova's answers with keys and values in every order; an exception is an answer."""
    for keys in itertools.permutations(flavor):
        for orders in itertools.product(*map(itertools.permutations, offers.values())):
            state = host_manager.HostState("host", "node", "00000000-0000-4000-8000-000000000000")
            state.aggregates = [
                collections.namedtuple("Said", "metadata")({key: placed(value, place)})
                for key, order in zip(offers, orders, strict=True)
                for place, value in enumerate(order)
            ]
            ordered = objects.Flavor(extra_specs={key: flavor[key] for key in keys})
            try:
                yield THEIRS.host_passes(state, objects.RequestSpec(flavor=ordered))
            except Exception as error:  # noqa: BLE001  (whatever Nova raises is its answer)
                yield type(error).__name__


def placed(text: str, place: int) -> Placed:
    made = Placed(text)
    made.place = place
    return made


def test_whether_the_order_matters_is_what_every_order_says() -> None:
    values = st.sampled_from(["2", "8", "many", "a", "few"])
    tally: collections.Counter[Outcome] = collections.Counter()

    @settings(max_examples=1000, deadline=None, database=None)
    @given(
        st.dictionaries(
            st.sampled_from(["k", "x"]), st.sampled_from([">= 4", "= many", "a", "<or>"])
        ),
        st.dictionaries(
            st.sampled_from(["k", "x"]), st.lists(values, min_size=1, max_size=3, unique=True)
        ),
    )
    def judge(flavor: Texts, offers: dict[str, list[str]]) -> None:
        answers = set(in_every_order(flavor, {key: tuple(said) for key, said in offers.items()}))
        found = NOVAS.judge(flavor, aggregates([{k: ",".join(v) for k, v in offers.items()}]))
        tally[found.outcome] += 1
        raised = answers - {True, False}
        expected = {
            Outcome.PASSES: answers == {True},
            Outcome.REJECTS: answers == {False},
            Outcome.ABORTS: answers == raised,
            Outcome.MAY_ABORT: bool(raised) and answers != raised,
        }
        assert expected[found.outcome], (answers, found)

    judge()
    for outcome in set(Outcome) - {Outcome.NOT_KNOWN}:
        assert tally[outcome] >= 10, tally


@settings(max_examples=500, deadline=None, suppress_health_check=list(HealthCheck))
@given(all_flavors, st.lists(all_metadata, max_size=3))
def test_what_is_not_known_does_not_occur_with_nova(flavor: Texts, said: list[Texts]) -> None:
    found = NOVAS.judge(flavor, aggregates(said))
    assert found.outcome is not Outcome.NOT_KNOWN
    assert bool(found.why) == (found.outcome in (Outcome.ABORTS, Outcome.MAY_ABORT))


def test_what_fails_only_as_a_whole_aborts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = InstalledRules()

    def fail(host: Any, request: Any) -> bool:
        if len(request.flavor.extra_specs) > 1:
            raise RuntimeError("out of order")
        return True

    monkeypatch.setattr(rules._filter, "host_passes", fail)
    found = rules.judge({"a": "1", "b": "2"}, aggregates([{"a": "1", "b": "2"}]))
    assert found.outcome is Outcome.ABORTS
    assert found.why == "it ends in RuntimeError: out of order"


def test_the_example_is_compared_alike(conf: Any) -> None:
    cloud = Cloud.load(ROOT / "src" / "steelyard" / "scheduler" / "example.yaml")
    ours = AggregateInstanceTypeFilter(conf)
    with_nova, without = compare(cloud, ours, NOVAS), compare(cloud, ours, OWN)
    assert with_nova.judgements == without.judgements
    assert with_nova.changes == without.changes != []


def steelyard(*argv: str) -> tuple[int, Any, str]:
    done = subprocess.run(
        [STEELYARD, "compare", "-f", "json", *argv],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT / "docs" / "examples",
    )
    return done.returncode, json.loads(done.stdout), done.stderr


@pytest.mark.parametrize("choice", [(), ("--rules", "nova")])
def test_the_command_asks_the_nova_that_is_installed(choice: tuple[str, ...]) -> None:
    status, rows, err = steelyard("--cloud", "switching.yaml", *choice)
    assert status == 1
    assert {row["Nova's rules"] for row in rows} == {NOVAS.name}
    assert NOVAS.name.startswith("nova ")
    # One line, whatever Nova and its libraries would have said while they were imported.
    assert err.startswith(f"steelyard: by {NOVAS.name}: of ")
    assert err.count("\n") == 1
    _, own, said = steelyard("--cloud", "switching.yaml", "--rules", "own")
    known = [row for row in own if row["Change"] != "not known without nova"]
    assert "by what steelyard knows of Nova" in said
    changes = {(row["Change"], row["Cause"], *row["Flavors"], *row["Hosts"]) for row in rows}
    assert {
        (row["Change"], row["Cause"], *row["Flavors"], *row["Hosts"]) for row in known
    } <= changes
    assert len(known) < len(own)


def test_only_asking_nova_imports_it_and_that_configures_nothing() -> None:
    code = """
import json, logging, sys
import steelyard.cli.compare, steelyard.desk.comparison, steelyard.desk.novas_rules
before = "nova" in sys.modules, list(logging.root.handlers), logging.root.level
rules = steelyard.cli.compare._rules(None)
from nova import conf
print(json.dumps([before[0], "nova" in sys.modules, rules.name, conf.CONF is cfg.CONF,
    list(logging.root.handlers) == before[1], logging.root.level == before[2],
    "steelyard" in cfg.CONF._groups, cfg.CONF.config_file if "config_file" in cfg.CONF else None]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert json.loads(done.stdout) == [False, True, NOVAS.name, True, True, True, False, None]
