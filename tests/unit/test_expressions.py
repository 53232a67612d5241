from typing import Any

import pytest

from steelyard.errors import InvalidExpression, SteelyardError
from steelyard.expressions import Expression


@pytest.mark.parametrize(
    ("text", "admitted", "refused"),
    [
        ("*", ["", "x", "*"], [None]),
        ("~", [None], ["", "x", "~"]),
        ("!", [None], ["", "x", "!"]),
        ("1", ["1"], [None, "1.0", " 1", "11"]),
        ("  a b  ", ["a b"], ["a", "b", "  a b  "]),
        ("", [""], [None, " ", "x"]),
        ("<or> 1 <or> ~", ["1", None], ["2", "~", "<or> 1 <or> ~"]),
        ("<or> * <or> ~", ["x", "", None], []),
        ("<or> a b <or> c", ["a b", "c"], ["a", "b", None]),
        ("<or> 1", ["1"], ["2", None]),
        ("<or> >= 4 <or> ~", ["4", "5e3", None], ["3", "many"]),
        ("<or> s== * <or> b", ["*", "b"], ["a", None]),
        ("= 4", ["4", "4.5", " 5 ", "1_000"], ["3", "four", "", None]),
        (">= 4", ["4", "1e308"], ["3.999", "inf", "nan", "1e309"]),
        ("<= 4", ["4", "-1e308"], ["4.1", "-inf", "nan"]),
        ("== 4", ["4", "4.0", "4e0"], ["5", "4x"]),
        ("!= 4", ["5", "-4"], ["4", "4.0", "many", None]),
        ("s== a", ["a"], ["A", "aa", None]),
        ("s!= a", ["b", ""], ["a", None]),
        ("s< b", ["a", "", "az"], ["b", "c", None]),
        ("s<= b", ["b", "a"], ["b0", "c", None]),
        ("s> b", ["c", "b0"], ["b", "a", None]),
        ("s>= b", ["b", "c"], ["a", None]),
        ("<in> ab", ["ab", "xaby"], ["a b", "", None]),
        ("<all-in> a b", ["ab", "b-a"], ["a", "b", None]),
        ("a <or> b", ["a <or> b"], ["a", "b"]),
        (">=4", [">=4"], ["5"]),
    ],
)
def test_expression_admits_the_values_of_its_text(text: Any, admitted: Any, refused: Any) -> None:
    expression = Expression.parse(text)
    assert [value for value in admitted if not expression.admits(value)] == []
    assert [value for value in refused if expression.admits(value)] == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<or>", "is not followed by a value; write '<or> a <or> b'"),
        ("<or> <or>", "is not followed by a value"),
        ("<or> a <or> <or> b", "is not followed by a value"),
        (">=", "'>=' has no operand; write '>= 4'"),
        ("s==", "'s==' has no operand; write 's== text'"),
        ("<all-in>", "has no operand"),
        ("<or> <in> <or> a", "'<in>' has no operand"),
        (">= many", "'many' is not a finite number; write one, as in '>= 4', or compare text"),
        ("= x", "as in 's>= x'"),
        ("== inf", "not a finite number"),
        ("!= nan", "not a finite number"),
        ("<or> ! <or> a", "'!' cannot be combined"),
        ("<or> ! <or> !", "'!' cannot be combined"),
        ("<or> a <or> >= many", "'many' is not a finite number"),
    ],
)
def test_malformed_text_denotes_the_empty_set_and_has_a_remedy(text: Any, message: Any) -> None:
    expression = Expression.parse(text)
    assert not any(expression.admits(value) for value in (None, "", "a", "4", "many", text))
    assert not expression.compatible(Expression.parse("<or> * <or> ~"))
    assert message in expression.problems[0]
    assert repr(text.strip()) in expression.problems[0] or "'" in expression.problems[0]
    with pytest.raises(InvalidExpression) as caught:
        expression.require_well_formed()
    assert message in str(caught.value)
    assert isinstance(caught.value, SteelyardError)
    assert caught.value.status == 400


@pytest.mark.parametrize(
    ("text", "same", "message"),
    [
        ("<or> a <or>", "<or> a", "the last '<or>' is not followed by a value and is ignored"),
        (">= 4 GB", ">= 4", "'GB' is ignored; write '>= 4'"),
        ("<in> a b", "<in> a", "'b' is ignored"),
        ("<or> s== a b <or> c", "<or> a <or> c", "'b' is ignored"),
    ],
)
def test_ignored_words_are_noted(text: Any, same: Any, message: Any) -> None:
    expression = Expression.parse(text)
    assert expression == Expression.parse(same)
    assert message in expression.problems[0]
    assert expression.require_well_formed() is expression


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (">=4", "put a space after it"),
        ("> 4", "'>' is not an operator; the operators are =, ==, !="),
        ("=> 4", "'=>' is not an operator"),
        ("s= x", "'s=' is not an operator"),
        ("<OR> a <OR> b", "'<OR>' is not an operator"),
        ("<or>1<or>2", "if '<or>' was meant to be an operator"),
        ("!gpu", "write 's!= gpu'"),
        ("1 <or> 2", "a junction begins with '<or>': write '<or> 1 <or> 2'"),
    ],
)
def test_literal_that_resembles_an_operator_is_noted(text: Any, message: Any) -> None:
    expression = Expression.parse(text)
    assert expression.admits(text)
    assert message in expression.problems[0]


@pytest.mark.parametrize("text", ["1", "*", "~", "!", "<or> 1 <or> ~", ">= 4", "<all-in> a b", ""])
def test_well_formed_text_has_no_problems(text: Any) -> None:
    assert Expression.parse(text).problems == ()


@pytest.mark.parametrize(
    ("one", "other", "meet"),
    [
        ("a", "a", True),
        ("a", "b", False),
        ("~", "!", True),
        ("~", "*", False),
        ("<or> 1 <or> ~", "!", True),
        ("<or> 1 <or> 2", "<or> 2 <or> 3", True),
        (">= 4", "<= 8", True),
        (">= 9", "<= 8", False),
        (">= 8", "<= 8", True),
        ("== 8", "!= 8", False),
        (">= 1.7976931348623157e308", "!= 1.7976931348623157e308", False),
        ("!= 4", "!= 5", True),
        (">= 4", "5", True),
        (">= 4", "s== 5", True),
        (">= 4", "five", False),
        ("s> a", "s< b", True),
        ("s>= b", "s< b", False),
        ("s> b", "s<= b", False),
        ("s!= b", "s== b", False),
        ("s!= a", "s!= b", True),
        ("s<= b", "s!= b", True),
        ("<in> a", "<in> b", True),
        ("<in> a", "<all-in> b c", True),
        ("<in> a", "cab", True),
        ("<in> a", "*", True),
        ("s> a", "*", True),
    ],
)
def test_compatible_expressions_share_a_value(one: Any, other: Any, meet: Any) -> None:
    first, second = Expression.parse(one), Expression.parse(other)
    assert first.compatible(second) is meet
    assert second.compatible(first) is meet
    assert not first.undecided(second)


@pytest.mark.parametrize(
    ("one", "other"),
    [(">= 4", "s> a"), (">= 4", "<in> a"), ("s!= a", "<in> b"), ("s< x", "<all-in> a b")],
)
def test_undecided_expressions_count_as_incompatible(one: Any, other: Any) -> None:
    first, second = Expression.parse(one), Expression.parse(other)
    assert not first.compatible(second)
    assert first.undecided(second)
    assert second.undecided(first)


def test_parse_list_splits_at_commas() -> None:
    offered = Expression.parse_list("ssd, >= 4,~")
    assert offered.admits("ssd")
    assert offered.admits("5")
    assert offered.admits(None)
    assert not offered.admits("ssd, >= 4,~")


@pytest.mark.parametrize("text", ["!, a", "a,!", "<or> !, a", "!, !", ">= many, a"])
def test_parse_list_with_a_malformed_part_denotes_the_empty_set(text: Any) -> None:
    offered = Expression.parse_list(text)
    assert offered.problems
    assert not offered.compatible(Expression.parse("<or> * <or> ~"))


def test_expression_prints_its_text() -> None:
    assert str(Expression.parse("  <or> b <or> a ")) == "<or> b <or> a"


def test_expressions_are_equal_hashable_and_immutable() -> None:
    assert Expression.parse("<or> a <or> b") == Expression.parse("<or> b <or> a <or> a")
    assert hash(Expression.parse(">= 4")) == hash(Expression.parse("= 4.0"))
    assert Expression.parse("a") != Expression.parse("b")
    with pytest.raises(AttributeError):
        Expression.parse("a").text = "b"  # type: ignore[misc]  # immutable
