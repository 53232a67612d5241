"""Nova's filter as steelyard asks it, and the command with Nova's rules."""

import collections
import importlib.metadata
import itertools
import json
import pathlib
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nova import objects
from nova.scheduler import host_manager
from nova.scheduler.filters.aggregate_instance_extra_specs import AggregateInstanceExtraSpecsFilter

from steelyard.desk.rules import Outcome
from steelyard.nova.rules import InstalledRules
from steelyard.scheduler import Aggregate

ROOT = pathlib.Path(__file__).parents[2]
STEELYARD = pathlib.Path(sys.executable).with_name("steelyard")

NOVAS = InstalledRules()
THEIRS = AggregateInstanceExtraSpecsFilter()

Texts = dict[str, str]


def aggregate(metadata: Texts) -> tuple[Aggregate, ...]:
    return (Aggregate("a", metadata, ()),)


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
        found = NOVAS.judge(flavor, aggregate({k: ",".join(v) for k, v in offers.items()}))
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


def test_what_fails_only_as_a_whole_aborts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = InstalledRules()

    def fail(host: Any, request: Any) -> bool:
        if len(request.flavor.extra_specs) > 1:
            raise RuntimeError("out of order")
        return True

    monkeypatch.setattr(rules._filter, "host_passes", fail)
    found = rules.judge({"a": "1", "b": "2"}, aggregate({"a": "1", "b": "2"}))
    assert found.outcome is Outcome.ABORTS
    assert found.why == "it ends in RuntimeError: out of order"


def test_a_nova_that_is_a_folder_of_source_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def version(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", version)
    assert InstalledRules().name == "nova of an unknown version"


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
    assert err.startswith(f"steelyard: Nova's rules from {NOVAS.name}: of ")
    assert err.count("\n") == 1
    _, own, said = steelyard("--cloud", "switching.yaml", "--rules", "own")
    known = [row for row in own if row["Change"] != "not known without nova"]
    assert "from what steelyard knows of them: " in said
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
from oslo_config import cfg
from nova import conf
print(json.dumps([before[0], "nova" in sys.modules, rules.name, conf.CONF is cfg.CONF,
    list(logging.root.handlers) == before[1], logging.root.level == before[2],
    "steelyard" in cfg.CONF._groups]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert json.loads(done.stdout) == [False, True, NOVAS.name, True, True, True, False]
