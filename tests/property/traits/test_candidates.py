"""Laws of local answers: they are all choices of providers that meet every condition."""

import collections
import dataclasses
import itertools
from collections.abc import Iterator

from hypothesis import given

from steelyard.traits import (
    Candidate,
    CandidatesRequest,
    ProvidersRequest,
    ProviderTrees,
    RequestGroup,
    ResourceProvider,
)
from steelyard.traits.trees import SHARES
from support.traits import forests

Choice = list[tuple[str, dict[str, int], ResourceProvider]]
"""Parts of a request: the suffix, the resources, and the chosen provider."""


def choices(request: CandidatesRequest, tree: list[ResourceProvider]) -> Iterator[Choice]:
    """Yield all choices of a provider for each group, and for each class without a suffix."""
    parts: list[tuple[str, dict[str, int]]] = []
    for suffix, group in request.groups.items():
        whole = dict(group.resources)
        parts += [(suffix, whole)] if suffix else [("", {name: whole[name]}) for name in whole]
    for chosen in itertools.product(tree, repeat=len(parts)):
        yield [(*part, provider) for part, provider in zip(parts, chosen, strict=True)]


def in_aggregates(provider: ResourceProvider, group: RequestGroup) -> bool:
    return all(several & provider.aggregates for several in group.member_of)


def meets_group(
    group: RequestGroup, suffix: str, chosen: Choice, trees: ProviderTrees[ResourceProvider]
) -> bool:
    """Return whether the providers of a group have its traits, aggregates and tree."""
    its = [provider for of, _, provider in chosen if of == suffix]
    root = trees.root(its[0])
    spanned = [*its] if suffix else [*its, root]
    together = frozenset[str]().union(*(provider.traits for provider in its))
    return (
        group.traits.satisfied_by(together)
        and not any(group.not_member_of & provider.aggregates for provider in spanned)
        and all(
            in_aggregates(provider, group) or (not suffix and in_aggregates(root, group))
            for provider in its
        )
        and (
            group.in_tree is None
            or (not group.resources and trees.root_of(group.in_tree) is not None)
            or trees.root_of(group.in_tree) is root
        )
        and bool(group.resources or group.traits.required or group.traits.any_of or group.member_of)
    )


def meets(
    request: CandidatesRequest, chosen: Choice, trees: ProviderTrees[ResourceProvider]
) -> bool:
    """Return whether the choice meets every condition of the request."""
    taken: collections.Counter[tuple[ResourceProvider, str]] = collections.Counter()
    for _, resources, provider in chosen:
        for name, amount in resources.items():
            if not provider.admits(name, amount):
                return False
            taken[provider, name] += amount
    apart = [provider.uuid for suffix, _, provider in chosen if suffix]
    root = trees.root(chosen[0][2])
    return (
        request.root_required.satisfied_by(root.traits)
        and all(
            amount <= provider.inventories[name].largest
            for (provider, name), amount in taken.items()
        )
        and (request.group_policy != "isolate" or len(set(apart)) == len(apart))
        and all(
            any(
                all(
                    top in trees.above(provider) for suffix, _, provider in chosen if suffix in some
                )
                for suffix, _, top in chosen
                if suffix in some
            )
            for some in request.same_subtree
        )
        and all(
            meets_group(group, suffix, chosen, trees) for suffix, group in request.groups.items()
        )
    )


def candidate(chosen: Choice) -> Candidate:
    amounts: dict[str, collections.Counter[str]] = collections.defaultdict(collections.Counter)
    mappings: dict[str, frozenset[str]] = collections.defaultdict(frozenset)
    for suffix, resources, provider in chosen:
        mappings[suffix] |= {provider.uuid}
        if resources:
            amounts[provider.uuid].update(resources)
    return Candidate(amounts, mappings)


@given(forests.forests, forests.candidates_requests)
def test_candidates_are_all_choices_that_meet_the_request(
    providers: list[ResourceProvider], request: CandidatesRequest
) -> None:
    trees = ProviderTrees(providers)
    every = {
        candidate(chosen)
        for root in trees.roots
        for chosen in choices(request, trees.tree(root))
        if meets(request, chosen, trees)
    }
    found = list(request.candidates(trees))
    assert len(found) == len(set(found)) == min(len(every), request.limit or len(every))
    assert every.issuperset(found)


@given(forests.sharing_forests, forests.candidates_requests)
def test_candidates_of_sharing_providers_are_different(
    providers: list[ResourceProvider], request: CandidatesRequest
) -> None:
    found = list(request.candidates(providers))
    assert len(found) == len(set(found))
    trees = ProviderTrees(providers)
    for each in found:
        assert each.mappings.keys() == request.groups.keys()
        near = {*trees.tree(trees[each.root]), *trees.shared_with(trees[each.root])}
        assert each.providers <= {provider.uuid for provider in near}


@given(forests.sharing_forests, forests.candidates_requests)
def test_supplying_roots_are_in_allocations_of_candidates(
    providers: list[ResourceProvider], request: CandidatesRequest
) -> None:
    trees = ProviderTrees(providers)
    request = dataclasses.replace(request, limit=None)
    expected = set()
    for each in request.candidates(trees):
        for provider in map(trees.__getitem__, each.allocations):
            tree = {other.uuid for other in trees.tree(trees.root(provider))}
            is_alone = each.allocations.keys() <= tree
            if trees.root(provider) is provider and (SHARES not in provider.traits or is_alone):
                expected.add(provider.uuid)
    assert {root.uuid for root in request.supplying_roots(trees)} == expected


@given(forests.sharing_forests, forests.providers_requests)
def test_matching_providers_serve_as_the_only_group(
    providers: list[ResourceProvider], request: ProvidersRequest
) -> None:
    found = request.matching(providers)
    assert found == [each for each in providers if each in found]
    if request.group.resources and request.name is None and request.uuid is None:
        alone = CandidatesRequest({"1": request.group})
        served = [each.providers for each in alone.candidates(providers)]
        assert set(served) == {frozenset([each.uuid]) for each in found}
