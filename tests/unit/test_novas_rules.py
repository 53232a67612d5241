"""What steelyard knows of Nova's rules; real Novas judge it in tests/in_nova."""

import pytest

from steelyard.aggregates import SCOPE
from steelyard.desk.novas_rules import OwnRules
from steelyard.desk.rules import NovaVerdict
from steelyard.scheduler import Aggregate


def judge(extra_specs: dict[str, str], *metadata: dict[str, str]) -> NovaVerdict:
    aggregates = tuple(Aggregate(f"a{i}", said, ()) for i, said in enumerate(metadata))
    return OwnRules().judge(extra_specs, aggregates)


@pytest.mark.parametrize(
    ("rule", "extra_specs", "metadata", "outcome"),
    [
        ("no extra specs", {}, {}, "passes"),
        ("a literal", {"k": "a"}, {"k": "a"}, "passes"),
        ("another literal", {"k": "a"}, {"k": "b"}, "rejects"),
        ("no aggregate has the key", {"k": "a"}, {}, "rejects"),
        ("a comma separates values", {"k": "b"}, {"k": "a , b"}, "passes"),
        (
            "white space around a literal is no part of any value",
            {"k": " a "},
            {"k": "a"},
            "rejects",
        ),
        ("white space around an operation is nothing", {"k": " s== a "}, {"k": "a"}, "passes"),
        ("an empty text", {"k": ""}, {"k": ""}, "passes"),
        ("a number of at least", {"k": "= 4"}, {"k": "8"}, "passes"),
        ("a number below", {"k": ">= 4"}, {"k": "3.5"}, "rejects"),
        ("text in an order", {"k": "s< b"}, {"k": "a"}, "passes"),
        ("a part of a text", {"k": "<in> b"}, {"k": "abc"}, "passes"),
        ("all parts of a text", {"k": "<all-in> a x"}, {"k": "abc"}, "rejects"),
        ("an operator without operand", {"k": ">="}, {"k": "4"}, "rejects"),
        ("a junction", {"k": "<or> a <or> b"}, {"k": "b"}, "passes"),
        ("a junction with a loose end", {"k": "<or> a <or>"}, {"k": "a"}, "passes"),
        ("* is a word", {"k": "*"}, {"k": "a"}, "rejects"),
        ("* is the word *", {"k": "*"}, {"k": "*"}, "passes"),
        ("~ is a word", {"k": "~"}, {}, "rejects"),
        ("! is a word", {"k": "!"}, {}, "rejects"),
        ("* is a word in a junction", {"k": "<or> * <or> a"}, {"k": "b"}, "rejects"),
        ("! is a word in a junction", {"k": "<or> ! <or> a"}, {"k": "!"}, "passes"),
        ("a namespaced key is skipped", {"hw:k": "a"}, {"hw:k": "b"}, "passes"),
        ("the scope is stripped", {f"{SCOPE}hw:k": "a"}, {"hw:k": "b"}, "rejects"),
        ("the scope in metadata is not", {"k": "a"}, {f"{SCOPE}k": "a"}, "rejects"),
        ("with and without the scope", {"k": "a", f"{SCOPE}k": "b"}, {"k": "a"}, "rejects"),
        ("nothing is forced", {}, {"k": "a", "force_metadata_check": "true"}, "passes"),
        (
            "metadata is literal in a forced aggregate",
            {"k": "a"},
            {"k": "*", "force_metadata_check": "true"},
            "rejects",
        ),
        ("the flag is a key of a flavor", {"force_metadata_check": "true"}, {}, "rejects"),
        (
            "the flag is a key of both",
            {"force_metadata_check": "true"},
            {"force_metadata_check": "true"},
            "passes",
        ),
        ("metadata that is no number", {"k": ">= 4"}, {"k": "many"}, "aborts"),
        ("an operand that is no number", {"k": ">= many"}, {"k": "4"}, "aborts"),
        ("an empty junction", {"k": "<or>"}, {"k": "4"}, "aborts"),
        ("nothing raises where there is no value", {"k": ">= many"}, {}, "rejects"),
        ("what matches may come before what raises", {"k": ">= 4"}, {"k": "8,many"}, "may abort"),
        ("what differs ends no search", {"k": ">= 4"}, {"k": "2,many"}, "aborts"),
        ("another key may be rejected first", {"k": ">= 4", "x": "a"}, {"k": "many"}, "may abort"),
        ("another key that matches", {"k": ">= 4", "x": "a"}, {"k": "many", "x": "a"}, "aborts"),
        ("numbers that are infinite", {"k": ">= 4"}, {"k": "inf"}, "not known"),
        ("operands that are no numbers", {"k": "!= nan"}, {"k": "4"}, "not known"),
        ("an infinite operand, and no number", {"k": ">= inf"}, {"k": "many"}, "aborts"),
        ("two words in a junction", {"k": "<or> a b <or> c"}, {"k": "c"}, "not known"),
        ("an operator in a junction", {"k": "<or> >= 4 <or> a"}, {"k": "a"}, "not known"),
        ("a junction for nobody", {"k": "<or> a b <or> c"}, {}, "rejects"),
        ("not known and in vain", {"k": "<or> a b", "x": "a"}, {"k": "a"}, "rejects"),
        ("not known beside a match", {"k": ">= 4"}, {"k": "inf, 8"}, "passes"),
        (
            "not known beside what raises",
            {"k": ">= 4", "x": "<or> a b"},
            {"k": "many", "x": "a"},
            "not known",
        ),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_a_rule(
    rule: str, extra_specs: dict[str, str], metadata: dict[str, str], outcome: str
) -> None:
    verdict = judge(extra_specs, metadata)
    assert verdict.outcome == outcome
    assert bool(verdict.why) == (outcome not in ("passes", "rejects"))


def test_any_aggregate_will_do() -> None:
    assert judge({"k": "a", "x": "b"}, {"k": "a"}, {"k": "c", "x": "b"}).outcome == "passes"


@pytest.mark.parametrize(
    ("text", "value", "why"),
    [
        (">= 4", "many", "could not convert string to float: 'many'"),
        (">= 4 ", "many", "could not convert string to float: 'many'"),
        (">= few", "4", "could not convert string to float: 'few'"),
    ],
)
def test_what_raises_is_said(text: str, value: str, why: str) -> None:
    said = judge({"x": "a", "k": text}, {"k": value, "x": "a"}).why
    assert said == f"key 'k': {text!r} against {value!r} ends in ValueError: {why}"


def test_what_is_not_known_is_said() -> None:
    assert judge({"k": ">= 4"}, {"k": "3, inf"}).why == "key 'k': 'inf' is no finite number"
    said = judge({f"{SCOPE}k": "<or> a b <or> c"}, {"k": "c"}).why
    assert said == (
        f"key '{SCOPE}k': '<or> a b <or> c' has other than one word between two '<or>', and Nova "
        f"reads every second word"
    )
