"""Resource providers as trees."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Generic, TypeVar

from steelyard import errors
from steelyard.traits import arguments
from steelyard.traits.providers import ProviderLike, ResourceProvider

ProviderT = TypeVar("ProviderT", bound=ProviderLike)

SHARES = "MISC_SHARES_VIA_AGGREGATE"
"""The trait of providers that share their inventories with other trees in their aggregates."""


class ProviderTrees(Generic[ProviderT]):
    """Resource providers as trees, to answer several requests from.

    They stay in the given order. Raises InvalidProvider if a provider is malformed, if two have the
    same UUID, or if a parent is missing or below its own child.
    """

    def __init__(self, providers: Iterable[ProviderT]) -> None:
        given = arguments.members(
            "providers", providers, "resource providers", errors.InvalidProvider
        )
        self.pairs: list[tuple[ResourceProvider, ProviderT]] = [
            (ResourceProvider.like(each), each) for each in given
        ]
        """Each provider as a value, and the object that was given for it."""
        self._by_uuid: dict[str, ResourceProvider] = {}
        for provider, _ in self.pairs:
            if provider.uuid in self._by_uuid:
                raise errors.InvalidProvider(
                    f"providers: duplicate UUID {provider.uuid}; pass each provider once",
                    provider.uuid,
                )
            self._by_uuid[provider.uuid] = provider
        self._roots = _roots(self._by_uuid)
        self._trees: dict[str, list[ResourceProvider]] = {}
        for provider, _ in self.pairs:
            if provider.parent is None:
                self._trees[provider.uuid] = []
        for provider, _ in self.pairs:
            self._trees[self._roots[provider.uuid]].append(provider)
        self._shared = self._sharing()

    @classmethod
    def like(
        cls, providers: "ProviderTrees[ProviderT] | Iterable[ProviderT]"
    ) -> "ProviderTrees[ProviderT]":
        """Return the providers as trees; trees are returned unchanged."""
        return providers if isinstance(providers, ProviderTrees) else cls(providers)

    def __getitem__(self, uuid: str) -> ResourceProvider:
        return self._by_uuid[uuid]

    @property
    def roots(self) -> list[ResourceProvider]:
        """The root providers, in the given order."""
        return [self._by_uuid[uuid] for uuid in self._trees]

    def tree(self, root: ResourceProvider) -> list[ResourceProvider]:
        """Return the providers of the tree with this root, in the given order."""
        return self._trees[root.uuid]

    def shared_with(self, root: ResourceProvider) -> list[ResourceProvider]:
        """Return the providers of other trees that share their inventories with this tree."""
        return self._shared.get(root.uuid, [])

    def root_of(self, uuid: str) -> ResourceProvider | None:
        """Return the root of the tree with this provider; None if the provider is missing."""
        # Placement compares the texts, so dashes count.
        root = self._roots.get(uuid.lower())
        return None if root is None else self._by_uuid[root]

    def root(self, provider: ResourceProvider) -> ResourceProvider:
        """Return the root of the provider's tree."""
        return self._by_uuid[self._roots[provider.uuid]]

    def above(self, provider: ResourceProvider) -> Iterator[ResourceProvider]:
        """Yield the provider and its ancestors, up to the root."""
        yield provider
        while provider.parent is not None:
            provider = self._by_uuid[provider.parent]
            yield provider

    def _sharing(self) -> dict[str, list[ResourceProvider]]:
        """Return the sharing providers of other trees, by root."""
        sharing = [provider for provider in self._by_uuid.values() if SHARES in provider.traits]
        members: dict[str, list[str]] = {}
        for provider in self._by_uuid.values() if sharing else ():
            for aggregate in provider.aggregates:
                members.setdefault(aggregate, []).append(self._roots[provider.uuid])
        found: dict[str, list[ResourceProvider]] = {}
        for provider in sharing:
            roots = {root for aggregate in provider.aggregates for root in members[aggregate]}
            for root in roots - {self._roots[provider.uuid]}:
                found.setdefault(root, []).append(provider)
        return found


def _roots(providers: Mapping[str, ResourceProvider]) -> dict[str, str]:
    """Return the UUID of each provider's root."""
    found: dict[str, str] = {}
    for start in providers:
        path: dict[str, None] = {}
        uuid = start
        while uuid not in found:
            path[uuid] = None
            parent = providers[uuid].parent
            if parent is None:
                found[uuid] = uuid
                break
            if parent not in providers:
                raise errors.InvalidProvider(
                    f"provider {_called(providers[uuid])}: no provider has the UUID of its "
                    f"parent, {parent}; pass the whole tree",
                    parent,
                )
            if parent in path:
                raise errors.InvalidProvider(
                    f"provider {_called(providers[uuid])}: its parent "
                    f"{_called(providers[parent])} is below it; expected a tree",
                    parent,
                )
            uuid = parent
        found.update(dict.fromkeys(path, found[uuid]))
    return found


def _called(provider: ResourceProvider) -> str:
    """Return the name of the provider in quotes, or its UUID if it has no name."""
    return repr(provider.name) if provider.name else provider.uuid
