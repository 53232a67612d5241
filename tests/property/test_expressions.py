"""Laws of the value language."""

import math
import sys

from hypothesis import example, given
from hypothesis import strategies as st

from steelyard._string_sets import Containing, Literal, Numbers, Texts, finite_number
from steelyard.expressions import Expression
from support.filters import strategies

texts = st.one_of(strategies.scribble, strategies.words, st.text(max_size=4))


@given(strategies.scribble)
def test_parse_never_raises_and_faults_denote_the_empty_set(text: str) -> None:
    for expression in (Expression.parse(text), Expression.parse_list(text)):
        assert all(isinstance(problem, str) and problem for problem in expression.problems)
        if expression.faults:
            assert not expression.admits(None)
            assert not expression.admits(text)
            assert not expression.alternatives


@given(strategies.scribble)
def test_parse_of_a_printed_expression_is_equal(text: str) -> None:
    expression = Expression.parse(text)
    again = Expression.parse(str(expression))
    assert again == expression
    assert hash(again) == hash(expression)
    assert again.problems == expression.problems
    assert str(again) == str(expression)


@given(strategies.well_formed)
def test_well_formed_text_denotes_a_non_empty_set(text: str) -> None:
    expression = Expression.parse(text)
    assert not expression.faults
    assert expression.compatible(expression)


@given(st.lists(strategies.alternatives, min_size=1, max_size=4), texts)
def test_junction_is_the_union_of_its_alternatives(parts: list[str], value: str) -> None:
    junction = Expression.parse("".join(f"<or> {part} " for part in parts))
    alone = [Expression.parse(part) for part in parts]
    assert junction.admits(value) == any(part.admits(value) for part in alone)
    assert junction.admits(None) == any(part.admits(None) for part in alone)


@given(st.lists(strategies.well_formed, min_size=1, max_size=3), texts)
def test_list_is_the_union_of_its_parts(parts: list[str], value: str) -> None:
    union = Expression.parse_list(", ".join(parts))
    alone = [Expression.parse(part) for part in parts]
    exclusive = len(parts) > 1 and "!" in parts
    assert union.admits(value) == (not exclusive and any(part.admits(value) for part in alone))
    assert union.admits(None) == (not exclusive and any(part.admits(None) for part in alone))


@given(st.permutations(["<or> a", "<or> >= 4", "<or> ~", "<or> s< b"]), texts)
def test_order_of_alternatives_does_not_matter(parts: list[str], value: str) -> None:
    assert Expression.parse(" ".join(parts)) == Expression.parse(
        "<or> a <or> >= 4 <or> ~ <or> s< b"
    )


@given(strategies.numeric_operators, strategies.numbers, texts)
def test_numeric_operators_compare_numbers(operator: str, operand: str, value: str) -> None:
    relation = {
        "=": float.__ge__,
        "==": float.__eq__,
        "!=": float.__ne__,
        ">=": float.__ge__,
        "<=": float.__le__,
    }[operator]
    try:
        number = float(value)
        expected = math.isfinite(number) and relation(number, float(operand))
    except ValueError:
        expected = False
    assert Expression.parse(f"{operator} {operand}").admits(value) == expected


@given(strategies.textual_operators, strategies.words, texts)
def test_textual_operators_compare_text(operator: str, operand: str, value: str) -> None:
    relation = {
        "s==": str.__eq__,
        "s!=": str.__ne__,
        "s<": str.__lt__,
        "s<=": str.__le__,
        "s>": str.__gt__,
        "s>=": str.__ge__,
    }[operator]
    assert Expression.parse(f"{operator} {operand}").admits(value) == relation(value, operand)


@given(strategies.scribble, strategies.scribble)
def test_compatible_is_symmetric(one: str, other: str) -> None:
    first, second = Expression.parse(one), Expression.parse(other)
    assert first.compatible(second) == second.compatible(first)
    assert first.undecided(second) == second.undecided(first)


def candidates(*expressions: Expression) -> list[str | None]:
    """Return values that include a common one of the expressions, if they have any."""
    found: list[str | None] = [None, "", "no such value"]
    contained: list[str] = []
    numbers = [0.0, sys.float_info.max, -sys.float_info.max]
    for part in (part for expression in expressions for part in expression.alternatives):
        match part:
            case Literal(text):
                found.append(text)
            case Numbers(low, high, hole):
                numbers += [low, high, *([] if hole is None else [hole])]
            case Texts(low, end, hole):
                found += [
                    edge + more
                    for edge in (low, end or "", hole or "")
                    for more in ("", "\0", "\0\0")
                ]
            case Containing(words):
                contained.append("".join(sorted(words)))
    for number in numbers:
        found += map(
            repr, (number, math.nextafter(number, math.inf), math.nextafter(number, -math.inf))
        )
    return found + contained + [one + other for one in contained for other in contained]


@given(strategies.well_formed, strategies.well_formed)
@example("s< a", "s!= ")
@example("<or> ~ <or> <in> a", "<or> ~ <or> = 4")
@example("<or> s<= a <or> <in> a <or> s< a", "<in> b")
@example("s<= a", "s> ")
@example(">= 1.7976931348623157e308", "!= 1.7976931348623157e308")
def test_compatible_agrees_with_a_search_for_a_common_value(one: str, other: str) -> None:
    first, second = Expression.parse(one), Expression.parse(other)
    common = [
        value for value in candidates(first, second) if first.admits(value) and second.admits(value)
    ]
    if first.undecided(second):
        # Undecided expressions count as disjoint, but both may admit absence.
        assert not first.meets(second)
        assert first.compatible(second) == (first.admits(None) and second.admits(None))
    else:
        assert first.compatible(second) == bool(common)


@given(st.text(max_size=8))
def test_number_is_a_finite_float(text: str) -> None:
    number = finite_number(text)
    assert number is None or (math.isfinite(number) and number == float(text))
