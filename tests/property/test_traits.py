"""Laws of trait queries, over a vocabulary small enough to try every set of traits."""

import itertools

from hypothesis import assume, given
from hypothesis import strategies as st

from steelyard.errors import InvalidTrait
from steelyard.traits import TraitQuery

VOCABULARY = "ABCDE"
SETS = [
    frozenset(chosen)
    for size in range(len(VOCABULARY) + 1)
    for chosen in itertools.combinations(VOCABULARY, size)
]

names = st.sampled_from(VOCABULARY)
some = st.frozensets(names, max_size=3)
groups = st.frozensets(st.frozensets(names, min_size=1, max_size=3), max_size=3)


@st.composite
def queries(draw: st.DrawFn) -> TraitQuery:
    try:
        return TraitQuery(draw(some), draw(some), draw(groups))
    except InvalidTrait:
        assume(False)
        raise


def satisfying(query: TraitQuery) -> set[frozenset[str]]:
    return {traits for traits in SETS if query.satisfied_by(traits)}


@given(queries())
def test_printing_is_canonical(query: TraitQuery) -> None:
    assert TraitQuery.parse(str(query)) == query
    assert str(TraitQuery.parse(str(query))) == str(query)
    assert TraitQuery.parse(*query.params()) == query


@given(some, some, groups)
def test_exactly_what_nothing_satisfies_is_refused(
    required: frozenset[str], forbidden: frozenset[str], any_of: frozenset[frozenset[str]]
) -> None:
    possible = any(
        required <= traits and not forbidden & traits and all(group & traits for group in any_of)
        for traits in SETS
    )
    try:
        query = TraitQuery(required, forbidden, any_of)
    except InvalidTrait:
        assert not possible
    else:
        assert possible
        assert satisfying(query)


@given(queries(), queries())
def test_both_are_satisfied_by_what_satisfies_each(one: TraitQuery, other: TraitQuery) -> None:
    common = satisfying(one) & satisfying(other)
    assert one.conflicts_with(other) is (not common)
    if common:
        assert satisfying(one & other) == common
        assert one & other == other & one


@given(queries(), queries())
def test_implying_is_being_satisfied_by_less(one: TraitQuery, other: TraitQuery) -> None:
    assert one.implies(other) is (satisfying(one) <= satisfying(other))


@given(queries())
def test_simplifying_changes_no_answer(query: TraitQuery) -> None:
    simplified = query.simplified()
    assert satisfying(simplified) == satisfying(query)
    assert simplified.simplified() == simplified
    assert all(simplified.required.isdisjoint(group) for group in simplified.any_of)
    assert all(simplified.forbidden.isdisjoint(group) for group in simplified.any_of)


@given(queries(), st.sampled_from(SETS))
def test_what_is_unmet_is_why_it_is_not_satisfied(
    query: TraitQuery, traits: frozenset[str]
) -> None:
    assert query.satisfied_by(traits) is not any(query.unmet(traits))
