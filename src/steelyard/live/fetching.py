"""Reading a live cloud, and messages about data that the credentials do not show."""

import contextlib
import functools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from steelyard import errors, microversions
from steelyard.clients import sessions
from steelyard.clients.compute import Compute
from steelyard.clients.placement import Placement
from steelyard.live import answers
from steelyard.live.answers import (
    Hypervisor,
    ListedProvider,
    Observed,
    Provider,
    SeenAggregate,
    SeenFlavor,
    SeenGroup,
    SeenServer,
)
from steelyard.live.at_once import each_answered
from steelyard.text.wording import counted
from steelyard.traits import ResourceProvider

PLACEMENTS_MICROVERSION = "1.14"
"""The oldest microversion with root providers; Placement supports it since Queens."""

DETAILS_OF_SERVERS = {
    "2.100": "scheduler hints",
    "2.98": "image properties",
    "2.96": "pinned availability zones",
}
"""The data of servers that Nova shows only from a microversion on, the newest first."""

_AMOUNTS_OF_NOVA = (
    "the file has the totals and used amounts that Nova reports, without reserved amounts and "
    "allocation ratios; the options apply instead"
)
_NO_TRAITS = "the file has no traits, so flavors that require traits fit no host"
_HIDDEN = {
    "inventories": f"Placement does not show inventories: {_AMOUNTS_OF_NOVA}",
    "usages": "Placement does not show usages: the file has the used amounts that Nova reports",
    "traits": _NO_TRAITS,
}

ValueT = TypeVar("ValueT")


class Progress(Protocol):
    """A function that returns the items unchanged and displays the progress through them."""

    def __call__(
        self, items: Iterable[ValueT], what: str, total: int | None = None, /
    ) -> Iterable[ValueT]: ...


def look(compute: Compute, placement: Placement | None, watch: Progress) -> Observed:
    """Return everything that the credentials show of the cloud.

    Raises NoAccess if they do not show hypervisors. Other data that they do not show is left out,
    with a message in ``unseen``.
    """
    unseen: list[str] = []
    hypervisors = _hypervisors(compute, watch)
    nova = _Nova(compute, watch, unseen)
    aggregates = nova.aggregates()
    return Observed(
        hypervisors,
        aggregates,
        nova.flavors(),
        nova.groups(),
        nova.servers(),
        _providers(placement, hypervisors, aggregates, watch, unseen),
        unseen,
    )


def _hypervisors(compute: Compute, watch: Progress) -> list[Hypervisor]:
    pages = compute.by_marker("/os-hypervisors/detail", "hypervisors", Hypervisor.of)
    try:
        return list(watch(pages, "hosts"))
    except errors.Forbidden as error:
        raise errors.NoAccess(
            f"cannot list hosts, which the import needs: {error}; use credentials with the role "
            f"admin, or allow os_compute_api:os-hypervisors:list-detail in Nova's policy"
        ) from error


def _providers(
    placement: Placement | None,
    hypervisors: Sequence[Hypervisor],
    aggregates: Sequence[SeenAggregate],
    watch: Progress,
    unseen: list[str],
) -> dict[str, Provider] | None:
    if placement is not None:
        try:
            return _Providers(placement, watch, unseen).of(hypervisors, aggregates)
        except errors.Forbidden:
            why = "shows its resource providers only to the role admin"
        except errors.NotFound:
            why = "is not at its address in the service catalog"
    else:
        why = "is not in the service catalog for this region and interface"
    unseen.append(f"Placement {why}: {_AMOUNTS_OF_NOVA}; {_NO_TRAITS}")
    return None


class _Nova:
    """Nova's data besides hypervisors. Adds a message to ``unseen`` for data that is not shown."""

    def __init__(self, compute: Compute, watch: Progress, unseen: list[str]) -> None:
        self._compute = compute
        self._watch = watch
        self._unseen = unseen

    def aggregates(self) -> list[SeenAggregate]:
        def ask() -> list[SeenAggregate]:
            return self._compute.listing("/os-aggregates", "aggregates", SeenAggregate.of)

        return self._shown(
            ask,
            "the file has no aggregates, so metadata rejects no hosts; listing them needs the "
            "policy rule os_compute_api:os-aggregates:index",
        )

    def flavors(self) -> list[SeenFlavor]:
        public, others = self._flavors
        found = list({**public, **others}.values())
        if not self.is_admin:
            self._unseen.append(
                "the file has no private flavors, except those that are shared with the project or "
                "used by servers; listing them needs the role admin"
            )
        if any(flavor.extra_specs is None for flavor in found):
            self._unseen.append(
                "the file has no extra specs, so flavors require no metadata or traits; reading "
                "them needs the policy rule os_compute_api:os-flavor-extra-specs:index"
            )
        return found

    @property
    def is_admin(self) -> bool:
        """Whether the credentials see everything that Nova shows to admins only.

        Nova does not report this, so its lists of public and of private flavors are compared.
        Without admin rights both are the same: the public flavors and those shared with the
        project. An admin's lists are the same only if all flavors are private and shared with the
        admin's project.
        """
        public, others = self._flavors
        return public.keys() != others.keys()

    @functools.cached_property
    def _flavors(self) -> tuple[dict[str, SeenFlavor], dict[str, SeenFlavor]]:
        """Nova's responses to queries for public and for private flavors, by UUID."""

        def ask(is_public: str) -> dict[str, SeenFlavor]:
            found = self._compute.by_marker(
                "/flavors/detail", "flavors", SeenFlavor.of, is_public=is_public
            )
            return {flavor.uuid: flavor for flavor in self._watch(found, "flavors")}

        return ask("True"), ask("False")

    def groups(self) -> list[SeenGroup]:
        def ask(**query: str) -> list[SeenGroup]:
            path, key = "/os-server-groups", "server_groups"
            return list(self._compute.by_offset(path, key, SeenGroup.of, **query))

        found = None
        with contextlib.suppress(errors.Forbidden):
            found = ask(all_projects="True")
        # Without admin rights, Nova lists only the groups of the project, without an error.
        if found is None or not self.is_admin:
            self._unseen.append(
                "the file has no server groups of other projects, and their servers are in no "
                "group; listing them needs the role admin and the policy rule "
                "os_compute_api:os-server-groups:index:all_projects"
            )
        if found is not None:
            return found
        return self._shown(
            ask,
            "the file has no server groups; listing them needs the policy rule "
            "os_compute_api:os-server-groups:index",
        )

    def servers(self) -> list[SeenServer]:
        microversion = self._compute.newest(list(DETAILS_OF_SERVERS))
        self._report_details(microversion)

        def ask(**query: str) -> list[SeenServer]:
            path, key = "/servers/detail", "servers"
            found = self._compute.by_marker(path, key, _server, microversion, **query)
            seen = list(self._watch(found, "servers"))
            self._report_unreachable(seen.count(None))
            return [each for each in seen if each is not None]

        try:
            return ask(all_tenants="1")
        except errors.Forbidden:
            self._unseen.append(
                "the file has no servers of other projects; the amounts that they use count as "
                "used; listing them needs the policy rule "
                "os_compute_api:servers:detail:get_all_tenants"
            )
        return self._shown(
            ask,
            "the file has no servers; the amounts that they use count as used; listing them needs "
            "the policy rule os_compute_api:servers:detail",
        )

    def _report_details(self, microversion: str) -> None:
        hidden = [
            f"{what} (microversion {needed})"
            for needed, what in DETAILS_OF_SERVERS.items()
            if not microversions.reaches(microversion, needed)
        ]
        if hidden:
            self._unseen.append(
                f"not in the file: data of servers that only a newer Nova shows: "
                f"{', '.join(reversed(hidden))}"
            )

    def _report_unreachable(self, servers: int) -> None:
        if servers:
            self._unseen.append(
                f"not in the file: {counted(servers, 'server')} in cells that are unreachable from "
                f"Nova's API; the amounts that they use count as used"
            )

    def _shown(self, ask: Callable[[], list[ValueT]], unseen: str) -> list[ValueT]:
        """Return the response, or an empty list and add the message if access is forbidden."""
        try:
            return ask()
        except errors.Forbidden:
            self._unseen.append(unseen)
            return []


def _server(record: Mapping[str, Any]) -> SeenServer | None:
    """Return the server, or None if Nova cannot reach the cell that has its data."""
    if record.get("status") == "UNKNOWN" and "flavor" not in record:
        return None
    return SeenServer.of(record)


class _Providers:
    """Placement's data on hosts. Adds a message to ``unseen`` for data that is not shown."""

    def __init__(self, placement: Placement, watch: Progress, unseen: list[str]) -> None:
        self._placement = placement
        self._watch = watch
        self._unseen = unseen

    def of(
        self, hypervisors: Sequence[Hypervisor], aggregates: Sequence[SeenAggregate]
    ) -> dict[str, Provider]:
        """Return the hypervisors' providers, by UUID. Hypervisors without one are left out.

        Sends three requests for each provider of the hypervisors' trees, and one for each
        aggregate: Placement lists the members of an aggregate, but not the aggregates of all
        providers.
        """
        listed = self._ask("/resource_providers", answers.listed)
        hosts = [each.uuid for each in hypervisors if each.uuid in listed]
        self._report_others({each.root for each in listed.values()}.difference(hosts))
        trees: dict[str, list[ListedProvider]] = {uuid: [] for uuid in hosts}
        for each in sorted(listed.values(), key=lambda each: (each.name, each.uuid)):
            if each.root in trees and each.uuid not in trees:
                trees[each.root].append(each)
        uuids = [*hosts, *(each.uuid for tree in trees.values() for each in tree)]
        inventories = self._of_each(uuids, "inventories", answers.inventories)
        usages = self._of_each(uuids, "usages", answers.usages)
        traits = self._of_each(uuids, "traits", answers.traits)
        member_of = self._member_of([each.uuid for each in aggregates])

        def nested(provider: ListedProvider, others: Collection[str]) -> ResourceProvider:
            used = usages.get(provider.uuid) or {}
            return ResourceProvider(
                provider.uuid,
                provider.name,
                provider.parent if provider.parent in others else None,
                {
                    name: each.with_used(used.get(name, 0))
                    for name, each in (inventories.get(provider.uuid) or {}).items()
                },
                traits.get(provider.uuid) or frozenset(),
                member_of.get(provider.uuid, frozenset()),
            )

        return {
            uuid: Provider(
                inventories.get(uuid),
                usages.get(uuid),
                traits.get(uuid),
                frozenset(member_of.get(uuid, ())),
                tuple(nested(each, {other.uuid for other in tree}) for each in tree),
            )
            for uuid, tree in trees.items()
        }

    def _member_of(self, aggregates: Sequence[str]) -> dict[str, set[str]]:
        """Return those of the aggregates that each provider is in, by the provider's UUID."""

        def ask(aggregate: str) -> Collection[str]:
            path = f"/resource_providers?member_of={aggregate}"
            return self._ask(path, answers.listed).keys()

        found: dict[str, set[str]] = {}
        with contextlib.closing(each_answered(ask, aggregates)) as answered:
            for aggregate, members in zip(aggregates, answered, strict=True):
                for uuid in members:
                    found.setdefault(uuid, set()).add(aggregate)
        return found

    def _report_others(self, roots: set[str]) -> None:
        if roots:
            self._unseen.append(
                f"not in the file: {counted(len(roots), 'resource provider')} in Placement, such "
                f"as {min(roots)}, without a host in Nova: shared storage, or hosts whose compute "
                f"service was deleted"
            )

    def _of_each(
        self, uuids: Sequence[str], kind: str, parse: Callable[[Any], ValueT]
    ) -> dict[str, ValueT | None]:
        """Return each provider's data of one kind; an empty dict if access is forbidden.

        The value is None for a provider that was deleted meanwhile.
        """

        def ask(uuid: str) -> ValueT | None:
            try:
                return self._ask(f"/resource_providers/{uuid}/{kind}", parse)
            except errors.NotFound:  # deleted since it was listed
                return None

        with contextlib.closing(each_answered(ask, uuids)) as answered:
            watched = self._watch(answered, kind, len(uuids))
            try:
                return dict(zip(uuids, watched, strict=True))
            except errors.Forbidden:
                self._unseen.append(f"{_HIDDEN[kind]}; Placement shows them to the role admin")
                return {}

    def _ask(self, path: str, parse: Callable[[Any], ValueT]) -> ValueT:
        answer = self._placement.send("GET", path, PLACEMENTS_MICROVERSION)
        try:
            return parse(answer)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise errors.ServiceError(
                f"unexpected answer from Placement: invalid content in {path} "
                f"({type(error).__name__}: {sessions.line(error)}); check its endpoint"
            ) from error
