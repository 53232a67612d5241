"""Steelyard's own knowledge of Nova's rules; tests/in_nova compares it with a real Nova."""

import pytest

from steelyard.aggregates import SCOPE
from steelyard.analysis.novas_rules import OwnRules
from steelyard.cloud import Aggregate
from steelyard.scheduler.rules import NovaVerdict


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
            "white space around a literal counts",
            {"k": " a "},
            {"k": "a"},
            "rejects",
        ),
        ("white space around an operation is ignored", {"k": " s== a "}, {"k": "a"}, "passes"),
        ("an empty text", {"k": ""}, {"k": ""}, "passes"),
        ("a number of at least", {"k": "= 4"}, {"k": "8"}, "passes"),
        ("a number below", {"k": ">= 4"}, {"k": "3.5"}, "rejects"),
        ("ordered text", {"k": "s< b"}, {"k": "a"}, "passes"),
        ("a substring", {"k": "<in> b"}, {"k": "abc"}, "passes"),
        ("a missing substring", {"k": "<all-in> a x"}, {"k": "abc"}, "rejects"),
        ("an operator without operand", {"k": ">="}, {"k": "4"}, "rejects"),
        ("a junction", {"k": "<or> a <or> b"}, {"k": "b"}, "passes"),
        ("a junction with a trailing operator", {"k": "<or> a <or>"}, {"k": "a"}, "passes"),
        ("* is literal", {"k": "*"}, {"k": "a"}, "rejects"),
        ("* equals a literal *", {"k": "*"}, {"k": "*"}, "passes"),
        ("~ is literal", {"k": "~"}, {}, "rejects"),
        ("! is literal", {"k": "!"}, {}, "rejects"),
        ("* is literal in a junction", {"k": "<or> * <or> a"}, {"k": "b"}, "rejects"),
        ("! is literal in a junction", {"k": "<or> ! <or> a"}, {"k": "!"}, "passes"),
        ("a namespaced key is skipped", {"hw:k": "a"}, {"hw:k": "b"}, "passes"),
        ("the scope is stripped", {f"{SCOPE}hw:k": "a"}, {"hw:k": "b"}, "rejects"),
        ("the scope in metadata is kept", {"k": "a"}, {f"{SCOPE}k": "a"}, "rejects"),
        ("key with and without the scope", {"k": "a", f"{SCOPE}k": "b"}, {"k": "a"}, "rejects"),
        ("forcing has no effect", {}, {"k": "a", "force_metadata_check": "true"}, "passes"),
        (
            "metadata is literal in a forced aggregate",
            {"k": "a"},
            {"k": "*", "force_metadata_check": "true"},
            "rejects",
        ),
        ("flag in a flavor only", {"force_metadata_check": "true"}, {}, "rejects"),
        (
            "flag in flavor and aggregate",
            {"force_metadata_check": "true"},
            {"force_metadata_check": "true"},
            "passes",
        ),
        ("metadata without a number", {"k": ">= 4"}, {"k": "many"}, "aborts"),
        ("an operand without a number", {"k": ">= many"}, {"k": "4"}, "aborts"),
        ("an empty junction", {"k": "<or>"}, {"k": "4"}, "aborts"),
        ("no value to compare", {"k": ">= many"}, {}, "rejects"),
        ("match may come before error", {"k": ">= 4"}, {"k": "8,many"}, "may abort"),
        ("mismatch does not prevent error", {"k": ">= 4"}, {"k": "2,many"}, "aborts"),
        ("other key may be rejected first", {"k": ">= 4", "x": "a"}, {"k": "many"}, "may abort"),
        ("other key matches", {"k": ">= 4", "x": "a"}, {"k": "many", "x": "a"}, "aborts"),
        ("infinite number", {"k": ">= 4"}, {"k": "inf"}, "not known"),
        ("operand nan", {"k": "!= nan"}, {"k": "4"}, "not known"),
        ("infinite operand and text", {"k": ">= inf"}, {"k": "many"}, "aborts"),
        ("two words in a junction", {"k": "<or> a b <or> c"}, {"k": "c"}, "not known"),
        ("an operator in a junction", {"k": "<or> >= 4 <or> a"}, {"k": "a"}, "not known"),
        ("malformed junction without values", {"k": "<or> a b <or> c"}, {}, "rejects"),
        ("not known but rejected by other key", {"k": "<or> a b", "x": "a"}, {"k": "a"}, "rejects"),
        ("not known but other value matches", {"k": ">= 4"}, {"k": "inf, 8"}, "passes"),
        (
            "not known beside an error",
            {"k": ">= 4", "x": "<or> a b"},
            {"k": "many", "x": "a"},
            "not known",
        ),
    ],
    ids=lambda value: value.replace(" ", "-") if isinstance(value, str) else "",
)
def test_judge_follows_novas_rule(
    rule: str, extra_specs: dict[str, str], metadata: dict[str, str], outcome: str
) -> None:
    verdict = judge(extra_specs, metadata)
    assert verdict.outcome == outcome
    assert bool(verdict.why) == (outcome not in ("passes", "rejects"))


def test_judge_accepts_values_from_different_aggregates() -> None:
    assert judge({"k": "a", "x": "b"}, {"k": "a"}, {"k": "c", "x": "b"}).outcome == "passes"


@pytest.mark.parametrize(
    ("text", "value", "why"),
    [
        (">= 4", "many", "could not convert string to float: 'many'"),
        (">= 4 ", "many", "could not convert string to float: 'many'"),
        (">= few", "4", "could not convert string to float: 'few'"),
    ],
)
def test_aborting_verdict_names_the_error(text: str, value: str, why: str) -> None:
    said = judge({"x": "a", "k": text}, {"k": value, "x": "a"}).why
    assert said == f"key 'k': comparing {text!r} with {value!r} raises ValueError: {why}"


def test_unknown_verdict_has_reason() -> None:
    assert judge({"k": ">= 4"}, {"k": "3, inf"}).why == "key 'k': 'inf' is not a finite number"
    said = judge({f"{SCOPE}k": "<or> a b <or> c"}, {"k": "c"}).why
    assert said == (
        f"key '{SCOPE}k': '<or> a b <or> c' is not words separated by '<or>', and Nova reads every "
        f"second word"
    )
