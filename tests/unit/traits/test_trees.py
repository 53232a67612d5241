"""Trees of resource providers: roots, ancestors, sharing providers, and mistakes in them."""

from types import SimpleNamespace
from typing import Any

import pytest

from steelyard.errors import InvalidProvider
from steelyard.traits import ProviderTrees, ResourceProvider
from steelyard.traits.trees import SHARES

A, B, C, D, AGGREGATE = (f"00000000-0000-4000-8000-00000000000{digit}" for digit in "abcde")


def provider(uuid: str, parent: str | None = None, **fields: Any) -> ResourceProvider:
    return ResourceProvider(uuid, parent=parent, **fields)


def test_trees_have_roots_and_members_in_the_given_order() -> None:
    trees = ProviderTrees([provider(C, B), provider(D), provider(B, A), provider(A)])
    assert [root.uuid for root in trees.roots] == [D, A]
    assert [each.uuid for each in trees.tree(trees[A])] == [C, B, A]
    assert trees.root_of(C) is trees[A]
    assert trees.root_of(C.upper()) is trees[A]
    assert trees.root_of(C.replace("-", "")) is None
    assert [each.uuid for each in trees.above(trees[C])] == [C, B, A]


def test_trees_keep_the_given_objects() -> None:
    record = SimpleNamespace(uuid=A, name="", parent=None, inventories={}, traits=(), aggregates=())
    ((value, given),) = ProviderTrees([record]).pairs
    assert value == provider(A)
    assert given is record


def test_sharing_providers_share_with_other_trees_of_their_aggregates() -> None:
    together = frozenset([AGGREGATE])
    trees = ProviderTrees(
        [
            provider(A, traits=[SHARES], aggregates=together),
            provider(B),
            provider(C, B, aggregates=together),
            provider(D, traits=[SHARES]),
        ]
    )
    assert trees.shared_with(trees[B]) == [trees[A]]
    assert trees.shared_with(trees[A]) == []
    assert trees.shared_with(trees[D]) == []


@pytest.mark.parametrize(
    ("providers", "why"),
    [
        (lambda: [provider(A), provider(A.upper())], f"providers: duplicate UUID {A}"),
        (lambda: [provider(A, B)], f"provider {A}: no provider has the UUID of its parent, {B}"),
        (lambda: [provider(A, A)], f"provider {A}: its parent {A} is below it; expected a tree"),
        (lambda: [provider(A, B), provider(B, A)], f"its parent {A} is below it"),
        (lambda: "ab", "providers: expected resource providers, not 'ab'"),
        (lambda: [None], "a provider: expected an object with the attributes"),
    ],
)
def test_trees_reject_providers_that_form_no_trees(providers: Any, why: str) -> None:
    with pytest.raises(InvalidProvider, match=why):
        ProviderTrees(providers())
