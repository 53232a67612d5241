"""The answers of Nova's filter, and the command that compares with them."""

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

from steelyard.cloud import Aggregate
from steelyard.nova.rules import InstalledRules
from steelyard.scheduler.rules import NovaAnswer
from support.examples import draw_until, examples
from support.repository import ROOT

STEELYARD = pathlib.Path(sys.executable).with_name("steelyard")

NOVAS = InstalledRules()
THEIRS = AggregateInstanceExtraSpecsFilter()

Texts = dict[str, str]


def aggregate(metadata: Texts) -> tuple[Aggregate, ...]:
    return (Aggregate("a", metadata, ()),)


class Placed(str):
    """A text with a chosen hash, which fixes its place in a small set."""

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
    """Yield Nova's answer, or its exception, for every order of keys and values."""
    for keys in itertools.permutations(flavor):
        for orders in itertools.product(*map(itertools.permutations, offers.values())):
            state = host_manager.HostState("host", "node", "00000000-0000-4000-8000-000000000000")
            state.aggregates = [
                collections.namedtuple("Offers", "metadata")({key: placed(value, place)})
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


def check_order(flavor: Texts, offers: Mapping[str, list[str]]) -> NovaAnswer:
    """Check steelyard's answer against Nova's answers in every order, and return it."""
    answers = set(in_every_order(flavor, {key: tuple(values) for key, values in offers.items()}))
    found = NOVAS.judge(flavor, aggregate({k: ",".join(v) for k, v in offers.items()}))
    raised = answers - {True, False}
    expected = {
        NovaAnswer.PASSES: answers == {True},
        NovaAnswer.REJECTS: answers == {False},
        NovaAnswer.ABORTS: answers == raised,
        NovaAnswer.MAY_ABORT: bool(raised) and answers != raised,
    }
    assert expected[found.outcome], (answers, found)
    return found.outcome


@pytest.mark.parametrize(
    ("flavor", "offers", "outcome"),
    [
        ({"k": ">= 4"}, {"k": ["8"]}, NovaAnswer.PASSES),
        ({"k": "a"}, {"k": ["few", "a"]}, NovaAnswer.PASSES),
        ({"k": "a"}, {"k": ["few"]}, NovaAnswer.REJECTS),
        ({"k": ">= 4"}, {"k": ["many", "few"]}, NovaAnswer.ABORTS),
        ({"k": "<or>"}, {"k": ["a"]}, NovaAnswer.ABORTS),
        ({"k": ">= 4"}, {"k": ["many", "8"]}, NovaAnswer.MAY_ABORT),
        ({"k": ">= 4", "x": "a"}, {"k": ["many"], "x": ["few"]}, NovaAnswer.MAY_ABORT),
    ],
)
def test_rules_give_each_outcome_of_novas_filter(
    flavor: Texts, offers: dict[str, list[str]], outcome: NovaAnswer
) -> None:
    assert check_order(flavor, offers) is outcome


some_flavors = st.dictionaries(
    st.sampled_from(["k", "x"]), st.sampled_from([">= 4", "= many", "a", "<or>"])
)
some_offers = st.dictionaries(
    st.sampled_from(["k", "x"]),
    st.lists(st.sampled_from(["2", "8", "many", "a", "few"]), min_size=1, max_size=3, unique=True),
)


@pytest.mark.parametrize("outcome", sorted(set(NovaAnswer) - {NovaAnswer.NOT_KNOWN}))
def test_generated_offers_lead_to_each_outcome(outcome: NovaAnswer) -> None:
    draw_until(st.tuples(some_flavors, some_offers), lambda drawn: check_order(*drawn) is outcome)


@settings(max_examples=examples(100))
@given(some_flavors, some_offers)
def test_rules_agree_with_nova_in_every_order(flavor: Texts, offers: dict[str, list[str]]) -> None:
    check_order(flavor, offers)


def test_error_of_all_extra_specs_together_aborts(monkeypatch: pytest.MonkeyPatch) -> None:
    rules = InstalledRules()

    def fail(host: Any, request: Any) -> bool:
        if len(request.flavor.extra_specs) > 1:
            raise RuntimeError("out of order")
        return True

    monkeypatch.setattr(rules._filter, "host_passes", fail)
    found = rules.judge({"a": "1", "b": "2"}, aggregate({"a": "1", "b": "2"}))
    assert found.outcome is NovaAnswer.ABORTS
    assert found.why == "Nova's filter raises RuntimeError: out of order"


def test_nova_in_a_source_folder_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
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
    return done.returncode, json.loads(done.stdout)["changes"], done.stderr


@pytest.mark.parametrize("choice", [(), ("--rules", "nova")])
def test_compare_command_uses_the_installed_nova(choice: tuple[str, ...]) -> None:
    status, rows, err = steelyard("--cloud", "switching.yaml", *choice)
    assert status == 1
    assert {row["novas_rules"] for row in rows} == {NOVAS.name}
    assert NOVAS.name.startswith("nova ")
    # One line: the command suppresses the warnings of Nova and its libraries during the import.
    assert f", according to {NOVAS.name}\n" in err
    assert err.count("\n") == 1
    _, own, err = steelyard("--cloud", "switching.yaml", "--rules", "own")
    known = [row for row in own if row["change"] != "not known without nova"]
    assert ", according to steelyard's knowledge of Nova's rules; " in err
    changes = {(row["change"], row["cause"], *row["flavors"], *row["hosts"]) for row in rows}
    assert {
        (row["change"], row["cause"], *row["flavors"], *row["hosts"]) for row in known
    } <= changes
    assert len(known) < len(own)


def test_rules_import_nova_on_demand_without_configuring_it() -> None:
    code = """
import json, logging, sys
import steelyard.cli.cloud.compare, steelyard.analysis.comparison, steelyard.analysis.novas_rules
before = "nova" in sys.modules, list(logging.root.handlers), logging.root.level
rules = steelyard.cli.cloud.compare._rules(None)
from oslo_config import cfg
from nova import conf
print(json.dumps([before[0], "nova" in sys.modules, rules.name, conf.CONF is cfg.CONF,
    list(logging.root.handlers) == before[1], logging.root.level == before[2],
    "steelyard" in cfg.CONF._groups]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert json.loads(done.stdout) == [False, True, NOVAS.name, True, True, True, False]
