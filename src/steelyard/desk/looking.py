"""What a real cloud is asked before it is described, and what it does not show to everybody."""

import collections
import concurrent.futures
import contextlib
import functools
import threading
from collections.abc import Callable, Generator, Iterable, Sequence
from typing import Any, Protocol, TypeVar

from steelyard import errors, sessions
from steelyard.desk import observed
from steelyard.desk.compute import Compute
from steelyard.desk.observed import (
    Hypervisor,
    Observed,
    Provider,
    SeenAggregate,
    SeenFlavor,
    SeenGroup,
    SeenServer,
)
from steelyard.desk.wording import counted
from steelyard.placement import Placement

PLACEMENTS_MICROVERSION = "1.14"
"""The oldest in which providers say what is above them; Queens' Placement speaks it."""

_AT_ONCE = 8

_AS_NOVA_HAS_IT = (
    "what hosts have and use is as Nova reports it: neither what is reserved nor how far hosts are "
    "overcommitted is in the file, where the options apply"
)
_NO_TRAITS = "no traits of hosts are in the file: in it, none can be required"
_KEPT_BACK = {
    "inventories": f"Placement does not show inventories: {_AS_NOVA_HAS_IT}",
    "usages": "Placement does not show usages: what hosts use is as Nova reports it",
    "traits": _NO_TRAITS,
}

ValueT = TypeVar("ValueT")


class Watch(Protocol):
    """Passes on what it is given, and shows how far that is."""

    def __call__(
        self, items: Iterable[ValueT], what: str, total: int | None = None, /
    ) -> Iterable[ValueT]: ...


def look(compute: Compute, placement: Placement | None, watch: Watch) -> Observed:
    """All of the cloud that is shown. Only hosts are indispensable: without them, NoAccess."""
    unseen: list[str] = []
    hypervisors = _hypervisors(compute, watch)
    nova = _Nova(compute, watch, unseen)
    return Observed(
        hypervisors,
        nova.aggregates(),
        nova.flavors(),
        nova.groups(),
        nova.servers(),
        _providers(placement, hypervisors, watch, unseen),
        unseen,
    )


def _hypervisors(compute: Compute, watch: Watch) -> list[Hypervisor]:
    pages = compute.by_marker("/os-hypervisors/detail", "hypervisors", Hypervisor.of)
    try:
        return list(watch(pages, "hosts"))
    except errors.Forbidden as error:
        raise errors.NoAccess(
            f"these credentials do not see hosts, and without hosts there is no cloud to describe: "
            f"use others that have the role admin, or what os_compute_api:os-hypervisors:"
            f"list-detail asks for in Nova's policy ({error})"
        ) from error


def _providers(
    placement: Placement | None,
    hypervisors: Sequence[Hypervisor],
    watch: Watch,
    unseen: list[str],
) -> dict[str, Provider] | None:
    if placement is not None:
        try:
            return _Providers(placement, watch, unseen).of(hypervisors)
        except errors.Forbidden:
            why = "does not show its resource providers; it does to the role admin"
        except errors.NotFound:
            why = "is not where the catalogue of services says"
    else:
        why = "is not in the catalogue of services, for this region and interface"
    unseen.append(f"Placement {why}: {_AS_NOVA_HAS_IT}; {_NO_TRAITS}")
    return None


class _Nova:
    """What Nova shows besides hosts. What it keeps back is added to ``unseen``."""

    def __init__(self, compute: Compute, watch: Watch, unseen: list[str]) -> None:
        self._compute = compute
        self._watch = watch
        self._unseen = unseen

    def aggregates(self) -> list[SeenAggregate]:
        def ask() -> list[SeenAggregate]:
            return self._compute.listing("/os-aggregates", "aggregates", SeenAggregate.of)

        return self._shown(
            ask,
            "no aggregates are in the file: nothing in it keeps flavors from hosts by their "
            "metadata; Nova shows them to who may os_compute_api:os-aggregates:index",
        )

    def flavors(self) -> list[SeenFlavor]:
        public, others = self._flavors
        found = list({**public, **others}.values())
        if not self.is_admin:
            self._unseen.append(
                "private flavors are not in the file, unless they are shared with the project or "
                "servers have them; Nova shows them to the role admin"
            )
        if any(flavor.extra_specs is None for flavor in found):
            self._unseen.append(
                "no extra specs are in the file: in it, flavors ask nothing of aggregates and "
                "traits; Nova shows them to who may os_compute_api:os-flavor-extra-specs:index"
            )
        return found

    @property
    def is_admin(self) -> bool:
        """Whether Nova shows what it shows to admins alone, and does not mention to others.

        Others see the same flavors, whichever they ask for: public ones, and those that are shared
        with their project. So does an admin where there are no more than the latter.
        """
        public, others = self._flavors
        return public.keys() != others.keys()

    @functools.cached_property
    def _flavors(self) -> tuple[dict[str, SeenFlavor], dict[str, SeenFlavor]]:
        """By UUID: what Nova shows to who asks for public ones, and for the others."""

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
        # To who is no admin, Nova shows those of the project then, and does not mention it.
        if found is None or not self.is_admin:
            self._unseen.append(
                "server groups of other projects are not in the file: their servers are in no "
                "group there; Nova shows them to the role admin, if it may "
                "os_compute_api:os-server-groups:index:all_projects"
            )
        if found is not None:
            return found
        return self._shown(
            ask,
            "no server groups are in the file; Nova shows them to who may "
            "os_compute_api:os-server-groups:index",
        )

    def servers(self) -> list[SeenServer]:
        def ask(**query: str) -> list[SeenServer]:
            found = self._compute.by_marker("/servers/detail", "servers", SeenServer.of, **query)
            return list(self._watch(found, "servers"))

        try:
            return ask(all_tenants="1")
        except errors.Forbidden:
            self._unseen.append(
                "servers of other projects are not in the file: what they use counts as used, "
                "but nothing there says by whom; Nova shows them to who may "
                "os_compute_api:servers:detail:get_all_tenants"
            )
        return self._shown(
            ask,
            "no servers are in the file: what they use counts as used; Nova shows them to who may "
            "os_compute_api:servers:detail",
        )

    def _shown(self, ask: Callable[[], list[ValueT]], unseen: str) -> list[ValueT]:
        """What is answered; nothing, and a word about that, where it is kept back."""
        try:
            return ask()
        except errors.Forbidden:
            self._unseen.append(unseen)
            return []


class _Providers:
    """What Placement knows of hosts. What it keeps back is added to ``unseen``."""

    def __init__(self, placement: Placement, watch: Watch, unseen: list[str]) -> None:
        self._placement = placement
        self._watch = watch
        self._unseen = unseen

    def of(self, hypervisors: Sequence[Hypervisor]) -> dict[str, Provider]:
        """The providers that are hosts, by UUID."""
        roots = self._ask("/resource_providers", observed.roots)
        uuids = [each.uuid for each in hypervisors if each.uuid in roots]
        self._remark_on_others(set(roots.values()).difference(uuids))
        inventories = self._of_each(uuids, "inventories", observed.inventories)
        usages = self._of_each(uuids, "usages", observed.usages)
        traits = self._of_each(uuids, "traits", observed.traits)
        nested = {root for uuid, root in roots.items() if uuid != root}
        return {
            uuid: Provider(
                inventories.get(uuid), usages.get(uuid), traits.get(uuid), uuid in nested
            )
            for uuid in uuids
        }

    def _remark_on_others(self, roots: set[str]) -> None:
        if roots:
            self._unseen.append(
                f"not in the file: {counted(len(roots), 'resource provider')} in Placement, such "
                f"as {min(roots)}, that Nova lists no host for: shared storage, or hosts whose "
                f"compute service is gone"
            )

    def _of_each(
        self, uuids: Sequence[str], kind: str, parse: Callable[[Any], ValueT]
    ) -> dict[str, ValueT | None]:
        """What each of the providers has of the kind; nothing at all where it is kept back."""

        def ask(uuid: str) -> ValueT | None:
            try:
                return self._ask(f"/resource_providers/{uuid}/{kind}", parse)
            except errors.NotFound:  # it has gone since
                return None

        with contextlib.closing(_each_answered(ask, uuids)) as answers:
            watched = self._watch(answers, kind, len(uuids))
            try:
                return dict(zip(uuids, watched, strict=True))
            except errors.Forbidden:
                self._unseen.append(f"{_KEPT_BACK[kind]}; Placement shows them to the role admin")
                return {}

    def _ask(self, path: str, parse: Callable[[Any], ValueT]) -> ValueT:
        answer = self._placement.send("GET", path, PLACEMENTS_MICROVERSION)
        try:
            return parse(answer)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise errors.ServiceError(
                f"what is asked answers to {path} with something else than a Placement would "
                f"({type(error).__name__}: {sessions.line(error)}); is this a Placement?"
            ) from error


def _each_answered(ask: Callable[[str], ValueT], uuids: Sequence[str]) -> Generator[ValueT]:
    """The answers, in order, of which some are waited for at once.

    Who stops before the end does not wait: the threads go with the process. An executor's do not.
    """
    asked = [(uuid, concurrent.futures.Future[ValueT]()) for uuid in uuids]
    waiting = collections.deque(asked)

    def work() -> None:
        while waiting:
            with contextlib.suppress(IndexError):  # another thread has taken the last one
                _answer(ask, *waiting.popleft())

    for _ in range(_AT_ONCE):
        threading.Thread(target=work, daemon=True).start()
    try:
        for _, answer in asked:
            yield answer.result()
    finally:
        waiting.clear()


def _answer(
    ask: Callable[[str], ValueT], uuid: str, answer: concurrent.futures.Future[ValueT]
) -> None:
    try:
        answer.set_result(ask(uuid))
    except BaseException as error:  # noqa: BLE001  (it is raised where the answer is read)
        answer.set_exception(error)
