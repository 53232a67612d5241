from collections.abc import Mapping
from typing import Any

import pytest

from steelyard.desk.comparison import Comparison, compare
from steelyard.desk.novas_rules import OwnRules
from steelyard.desk.rules import NovaVerdict, Outcome, Rules
from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter
from steelyard.scheduler import Aggregate, Cloud, Flavor, Host

Texts = Mapping[str, str]

FORCED = {"force_metadata_check": "true"}


def cloud(flavors: Mapping[str, Texts], aggregates: Mapping[str, tuple[Texts, str]]) -> Cloud:
    """Flavors by extra specs, aggregates by metadata and hosts; h0 is in none."""
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
    rules: Rules | None = None,
    conf: Any = None,
) -> Comparison:
    ours = AggregateInstanceTypeFilter(conf)
    return compare(cloud(flavors, aggregates), ours, rules or OwnRules())


def changes(*args: Any, **kwargs: Any) -> list[tuple[str, str, list[str], list[str]]]:
    return [
        (str(each.kind), each.cause, each.flavors, each.hosts)
        for each in comparison(*args, **kwargs).changes
    ]


def test_nothing_changes_where_both_read_alike(conf: Any) -> None:
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


def test_what_has_one_cause_is_one_change(conf: Any) -> None:
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


def test_a_change_counts_its_pairs(conf: Any) -> None:
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
            "key 'force_metadata_check' of the flavor, which Nova looks for in aggregates",
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
def test_why_a_host_is_newly_accepted(
    extra_specs: Texts, metadata: Texts, cause: str, conf: Any
) -> None:
    found = changes({"f": extra_specs}, {"one": (metadata, "h1")}, conf=conf)
    (accepted,) = [each for each in found if each[3][-1:] == ["h1"]]
    assert accepted[:2] == ("newly accepted", cause)


class Strict:
    """Rules that reject whatever has a key."""

    name = "strict"

    def judge(self, extra_specs: Texts, aggregates: tuple[Aggregate, ...]) -> NovaVerdict:
        return NovaVerdict(Outcome.REJECTS if extra_specs else Outcome.PASSES)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        (
            "<or> a b <or> c",
            "junction '<or> a b <or> c' in key 'k', of which Nova reads every second word",
        ),
        ("c", "key 'k': 'c' is satisfied here, and not in Nova"),
    ],
)
def test_why_a_host_is_newly_accepted_by_the_rules_of_others(
    text: str, cause: str, conf: Any
) -> None:
    found = changes({"f": {"k": text}}, {"one": ({"k": "c"}, "h1")}, rules=Strict(), conf=conf)
    assert found == [("newly accepted", cause, ["f"], ["h1"])]


@pytest.mark.parametrize(
    ("extra_specs", "metadata", "kind", "cause"),
    [
        (
            {"k": ">= 4"},
            {"k": "many"},
            "Nova aborts the request",
            "key 'k': '>= 4' against 'many' ends in ValueError: could not convert string to "
            "float: 'many'; here: key 'k': flavor wants '>= 4', aggregate 'one' "
            "offers 'many'",
        ),
        (
            {"k": ">= 4"},
            {"k": "8, many"},
            "Nova may abort the request",
            "key 'k': '>= 4' against 'many' ends in ValueError: could not convert string to "
            "float: 'many'; here: the host passes",
        ),
        (
            {"k": "<or> a b <or> c"},
            {"k": "c"},
            "not known without nova",
            "key 'k': '<or> a b <or> c' has other than one word between two '<or>', and Nova "
            "reads every second word; here: the host passes",
        ),
        (
            {"hw:k": "a"},
            {"hw:k": "b"},
            "newly rejected",
            "key 'hw:k': flavor wants 'a', aggregate 'one' offers 'b'",
        ),
    ],
)
def test_other_changes(
    extra_specs: Texts, metadata: Texts, kind: str, cause: str, conf: Any
) -> None:
    found = changes({"f": extra_specs}, {"one": (metadata, "h1")}, conf=conf)
    assert found == [(kind, cause, ["f"], ["h1"])]


def test_what_is_worst_comes_first(conf: Any) -> None:
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


def test_the_options_of_our_filter_count(configured: Any) -> None:
    flavors: dict[str, Texts] = {"f": {}}
    described = (flavors, {"one": ({"owner": "me"} | FORCED, "h1")})
    assert [each[0] for each in changes(*described, conf=configured())] == ["newly rejected"]
    assert changes(*described, conf=configured("force_check_ignored_keys = owner")) == []
    # Trying it out changes what is enforced, and not what is compared.
    assert len(changes(*described, conf=configured("enforce = false"))) == 1
