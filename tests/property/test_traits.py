"""Laws of trait queries, over a vocabulary small enough to try every set of traits."""

import copy
import functools
import itertools
import operator
import pickle
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from steelyard.errors import InvalidTrait
from steelyard.traits import CandidatesRequest, ProvidersRequest, RequestGroup, TraitQuery

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


AGGREGATES = ["5e08ea53-c4c6-448e-9334-ac4953de3cfa", "42896e0d-205d-4fe3-bd1e-100924931787"]
aggregates = st.sampled_from([frozenset[str](), *map(frozenset, [AGGREGATES[:1], AGGREGATES])])
amounts = st.sampled_from([{"VCPU": 1}, {"VCPU": 2, "MEMORY_MB": 512}, {"DISK_GB": 9}])

request_groups = st.builds(
    RequestGroup,
    amounts,
    queries(),
    st.frozensets(aggregates.filter(bool)),
    aggregates,
    st.none() | st.sampled_from(AGGREGATES),
)
suffixed = st.dictionaries(st.sampled_from(["", "1", "_NET"]), request_groups, min_size=1)
requests = st.one_of(
    st.builds(ProvidersRequest, request_groups),
    st.builds(CandidatesRequest, suffixed, st.just("none"), st.none() | st.integers(1, 9)),
)


def satisfying(query: TraitQuery) -> set[frozenset[str]]:
    return {traits for traits in SETS if query.satisfied_by(traits)}


@given(queries())
def test_printed_query_is_canonical(query: TraitQuery) -> None:
    assert TraitQuery.parse(str(query)) == query
    assert str(TraitQuery.parse(str(query))) == str(query)
    assert TraitQuery.parse(*query.params()) == query


@given(some, some, groups)
def test_query_is_rejected_if_and_only_if_unsatisfiable(
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
def test_conjunction_is_satisfied_by_sets_that_satisfy_both(
    one: TraitQuery, other: TraitQuery
) -> None:
    common = satisfying(one) & satisfying(other)
    assert one.conflicts_with(other) is (not common)
    if common:
        assert satisfying(one & other) == common
        assert one & other == other & one


@given(queries(), queries())
def test_implies_is_inclusion_of_satisfying_sets(one: TraitQuery, other: TraitQuery) -> None:
    assert one.implies(other) is (satisfying(one) <= satisfying(other))


@given(queries())
def test_simplified_query_has_the_same_satisfying_sets(query: TraitQuery) -> None:
    simplified = query.simplified()
    assert satisfying(simplified) == satisfying(query)
    assert simplified.simplified() == simplified
    assert all(simplified.required.isdisjoint(group) for group in simplified.any_of)
    assert all(simplified.forbidden.isdisjoint(group) for group in simplified.any_of)


@given(queries(), st.sampled_from(SETS))
def test_unmet_is_empty_if_and_only_if_satisfied(query: TraitQuery, traits: frozenset[str]) -> None:
    assert query.satisfied_by(traits) is not any(query.unmet(traits))


@given(st.one_of(queries(), request_groups, requests), st.integers(0, pickle.HIGHEST_PROTOCOL))
def test_copies_are_equal_and_have_the_same_hash(value: Any, protocol: int) -> None:
    pickled = pickle.loads(pickle.dumps(value, protocol))
    for made in (pickled, copy.copy(value), copy.deepcopy(value)):
        assert made == value
        assert hash(made) == hash(value)


@given(requests, st.randoms())
def test_of_reads_back_the_pairs_of_a_request(request: Any, chance: Any) -> None:
    pairs = request.params()
    chance.shuffle(pairs)
    assert type(request).of(iter(pairs)) == request


@given(st.lists(queries(), min_size=1, max_size=6))
def test_parse_marks_the_first_parameter_that_contradicts(parts: list[TraitQuery]) -> None:
    params = [param for part in parts for param in part.params()]
    for count in range(1, len(params) + 1):
        try:
            functools.reduce(operator.and_, map(TraitQuery.parse, params[:count]))
        except InvalidTrait as error:
            why = error.message
            break
    else:
        assert TraitQuery.parse(*params) == functools.reduce(operator.and_, parts)
        return
    with pytest.raises(InvalidTrait) as caught:
        TraitQuery.parse(*params)
    found = caught.value
    assert found.message.partition(" is ")[2] == why.partition(" is ")[2]
    assert found.text == "&".join(params[:count])
    assert found.position is not None
    assert found.text[slice(*found.position)] == params[count - 1]
