from collections.abc import Mapping
from typing import Any

import pytest

from steelyard.analysis.comparison import Comparison, compare
from steelyard.analysis.novas_rules import OwnRules
from steelyard.cloud import Aggregate, Cloud, Flavor, Host
from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter
from steelyard.scheduler.rules import NovaAnswer, NovaRules, NovaVerdict

Texts = Mapping[str, str]

FORCED = {"force_metadata_check": "true"}


def cloud(flavors: Mapping[str, Texts], aggregates: Mapping[str, tuple[Texts, str]]) -> Cloud:
    """Return a cloud; its host h0 is in no aggregate.

    Flavors are given by extra specs, aggregates by metadata and hosts.
    """
    found = {
        name: Aggregate(name, metadata, tuple(hosts.split()))
        for name, (metadata, hosts) in aggregates.items()
    }
    hosts = dict.fromkeys(["h0", *(host for each in found.values() for host in each.hosts)])
    return Cloud(
        {name: Host(name, 1, 1, 1) for name in hosts},
        found,
        {name: Flavor(name, 1, 1, 1, extra_specs) for name, extra_specs in flavors.items()},
    )


def comparison(
    flavors: Mapping[str, Texts],
    aggregates: Mapping[str, tuple[Texts, str]],
    rules: NovaRules | None = None,
    conf: Any = None,
) -> Comparison:
    ours = AggregateInstanceTypeFilter(conf)
    return compare(cloud(flavors, aggregates), ours, rules or OwnRules())


def changes(*args: Any, **kwargs: Any) -> list[tuple[str, str, list[str], list[str]]]:
    return [
        (str(each.kind), each.cause, each.flavors, each.hosts)
        for each in comparison(*args, **kwargs).changes
    ]


def test_compare_without_differences_has_no_changes(conf: Any) -> None:
    found = comparison({"f": {"k": "a"}, "g": {}}, {"one": ({"k": "a, b"}, "h1 h2")}, conf=conf)
    assert found.changes == []
    assert (found.flavors, found.hosts, found.rules) == (2, 3, "steelyard's own")
    assert sum(each.pairs for each in found.judgements) == 6
    assert [(each.flavors, each.hosts, each.nova, each.passes) for each in found.judgements] == [
        (("f",), ("h0",), "rejects", False),
        (("f",), ("h1", "h2"), "passes", True),
        (("g",), ("h0",), "passes", True),
        (("g",), ("h1", "h2"), "passes", True),
    ]


def test_compare_groups_judgements_by_cause(conf: Any) -> None:
    found = changes(
        {"f": {"k": "*"}, "same": {"k": "*"}, "g": {"k": "*", "x": "1"}, "plain": {}},
        {
            "one": ({"k": "a", "x": "1"}, "h1 h2"),
            "two": ({"k": "b"}, "h2 h3"),
            "gpu": ({"gpu": "a100"} | FORCED, "h4"),
        },
        conf=conf,
    )
    assert found == [
        (
            "newly rejected",
            "key 'gpu': forced aggregate 'gpu' wants 'a100', flavor does not have the key",
            ["plain"],
            ["h4"],
        ),
        (
            "newly accepted",
            "sentinel '*' in key 'k', which Nova reads as literal text",
            ["f", "same", "g"],
            ["h1", "h2", "h3"],
        ),
    ]


def test_change_counts_pairs_of_flavor_and_host(conf: Any) -> None:
    (change,) = comparison(
        {"f": {"k": "*"}, "same": {"k": "*"}, "g": {"k": "*", "x": "1"}},
        {"one": ({"k": "a", "x": "1"}, "h1 h2"), "two": ({"k": "b"}, "h3")},
        conf=conf,
    ).changes
    assert change.pairs == 2 * 2 + 2 * 1 + 1 * 2


@pytest.mark.parametrize(
    ("extra_specs", "metadata", "cause"),
    [
        ({"k": "~"}, {}, "sentinel '~' in key 'k', which Nova reads as literal text"),
        ({"k": "!"}, {}, "sentinel '!' in key 'k', which Nova reads as literal text"),
        (
            {"k": "<or> a <or> ~"},
            {},
            "sentinel '~' in key 'k', which Nova reads as literal text",
        ),
        (
            {"aggregate_instance_extra_specs:hw:k": "*"},
            {"hw:k": "a"},
            "sentinel '*' in key 'hw:k', which Nova reads as literal text",
        ),
        (
            {"k": " a "},
            {"k": "a"},
            "white space around ' a ' in key 'k', which Nova does not strip",
        ),
        (
            {"force_metadata_check": "x"},
            {},
            "key 'force_metadata_check' of the flavor, which Nova compares with aggregates",
        ),
        (
            {"k": "a"},
            {"k": "*"} | FORCED,
            "key 'k': a forced aggregate has expressions, which Nova reads as literal text",
        ),
        (
            {"k": "*", "x": " a"},
            {"k": "a", "x": "a"},
            "sentinel '*' in key 'k', which Nova reads as literal text; "
            "white space around ' a' in key 'x', which Nova does not strip",
        ),
    ],
)
def test_newly_accepted_host_has_cause(
    extra_specs: Texts, metadata: Texts, cause: str, conf: Any
) -> None:
    found = changes({"f": extra_specs}, {"one": (metadata, "h1")}, conf=conf)
    (accepted,) = [each for each in found if each[3][-1:] == ["h1"]]
    assert accepted[:2] == ("newly accepted", cause)


class Strict:
    """Rules that reject every flavor with an extra spec."""

    name = "strict"

    def judge(self, extra_specs: Texts, aggregates: tuple[Aggregate, ...]) -> NovaVerdict:
        return NovaVerdict(NovaAnswer.REJECTS if extra_specs else NovaAnswer.PASSES)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            "<or> a b <or> c",
            "junction '<or> a b <or> c' in key 'k', where Nova reads every second word",
        ),
        ("c", "key 'k': 'c' is satisfied in steelyard, but not in Nova"),
    ],
)
def test_newly_accepted_host_has_cause_with_other_rules(text: str, cause: str, conf: Any) -> None:
    found = changes({"f": {"k": text}}, {"one": ({"k": "c"}, "h1")}, rules=Strict(), conf=conf)
    assert found == [("newly accepted", cause, ["f"], ["h1"])]


@pytest.mark.parametrize(
    ("extra_specs", "metadata", "kind", "cause"),
    [
        (
            {"k": ">= 4"},
            {"k": "many"},
            "Nova aborts the request",
            "key 'k': comparing '>= 4' with 'many' raises ValueError: could not convert string to "
            "float: 'many'; steelyard: key 'k': flavor wants '>= 4', aggregate 'one' "
            "offers 'many'",
        ),
        (
            {"k": ">= 4"},
            {"k": "8, many"},
            "Nova may abort the request",
            "key 'k': comparing '>= 4' with 'many' raises ValueError: could not convert string to "
            "float: 'many'; steelyard: the host passes",
        ),
        (
            {"k": "<or> a b <or> c"},
            {"k": "c"},
            "not known without nova",
            "key 'k': '<or> a b <or> c' is not words separated by '<or>', and Nova reads every "
            "second word; steelyard: the host passes",
        ),
        (
            {"hw:k": "a"},
            {"hw:k": "b"},
            "newly rejected",
            "key 'hw:k': flavor wants 'a', aggregate 'one' offers 'b'",
        ),
    ],
)
def test_compare_reports_other_differences(
    extra_specs: Texts, metadata: Texts, kind: str, cause: str, conf: Any
) -> None:
    found = changes({"f": extra_specs}, {"one": (metadata, "h1")}, conf=conf)
    assert found == [(kind, cause, ["f"], ["h1"])]


def test_changes_are_sorted_by_kind(conf: Any) -> None:
    found = comparison(
        {"f": {"k": ">= 4", "hw:x": "a"}, "g": {"k": "*"}, "h": {"k": "<or> 1 2 <or> 3"}},
        {
            "one": ({"k": "many"}, "h1"),
            "two": ({"k": "many, 8"}, "h2"),
            "three": ({"k": "5", "hw:x": "b"}, "h3 h4"),
        },
        conf=conf,
    ).changes
    kinds = [str(each.kind) for each in found]
    assert list(dict.fromkeys(kinds)) == [
        "newly rejected",
        "not known without nova",
        "Nova aborts the request",
        "Nova may abort the request",
        "newly accepted",
    ]


def test_compare_applies_filter_options(configured: Any) -> None:
    flavors: dict[str, Texts] = {"f": {}}
    described = (flavors, {"one": ({"owner": "me"} | FORCED, "h1")})
    assert [each[0] for each in changes(*described, conf=configured())] == ["newly rejected"]
    assert changes(*described, conf=configured("force_check_ignored_keys = owner")) == []
    # Trial mode has no effect on the comparison.
    assert (
        len(changes(*described, conf=configured("trial_filters = AggregateInstanceTypeFilter")))
        == 1
    )
