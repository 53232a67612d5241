"""The tag service: the operations of users and of the system on the tags of an instance.

Each operation is recorded, then submitted to the backend, then the number of its job is recorded.
No lock is held during requests to the backend. ``jobs.tracking`` applies the job's outcome later.
"""

import dataclasses
import functools
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from typing import ClassVar, Concatenate, ParamSpec, TypeVar

from steelyard import errors
from steelyard.tags import audit, deadlines
from steelyard.tags.administration import Administration
from steelyard.tags.backends.base import TagBackend
from steelyard.tags.codec import Tag
from steelyard.tags.database.listing import Page, TaggedInstance
from steelyard.tags.database.ownership import Writer
from steelyard.tags.database.store import TagStore
from steelyard.tags.inventory import BackendInventory
from steelyard.tags.jobs.tracking import GIVE_UP_AFTER, JobTracker
from steelyard.tags.names import (
    DEFAULT_PREFIXES,
    MOST,
    NO_CLASHES,
    Clashes,
    Owner,
    Prefixes,
    TagFilter,
    check_name,
)
from steelyard.tags.states import outcomes, requests
from steelyard.tags.states.requests import TagRules
from steelyard.tags.states.values import Instance, Kind, Operation, State, StateChange, Status
from steelyard.tags.submission import submit


@dataclasses.dataclass(frozen=True, slots=True)
class Caller:
    """The project and the user that send a request, and the owner of the tags that it accesses.

    Set ``owner`` to the system only in trusted code, never because of a user's input.
    """

    project: str
    user: str
    owner: Owner = Owner.USER


@dataclasses.dataclass(frozen=True, slots=True)
class Operator:
    """An operator, who may access the instances of every project."""

    owner: Owner = Owner.SYSTEM


Asking = Caller | Operator

ParamsT = ParamSpec("ParamsT")
ReturnT = TypeVar("ReturnT")


def _within_request_timeout(
    method: "Callable[Concatenate[TagService, ParamsT], ReturnT]",
) -> "Callable[Concatenate[TagService, ParamsT], ReturnT]":
    """Limit the total time of the method's requests to the backend."""

    @functools.wraps(method)
    def limited(self: "TagService", /, *args: ParamsT.args, **kwargs: ParamsT.kwargs) -> ReturnT:
        with deadlines.within(self.request_timeout):
            return method(self, *args, **kwargs)

    return limited


class TagService:
    """The operations on tags, over a store and a backend.

    Operations on a server raise NotFound if it is unknown or belongs to another project than the
    caller's. ``jobs`` tracks the jobs that the operations submit. ``administration`` upgrades the
    database and records the backend that it belongs to. ``inventory`` registers many instances.
    """

    request_timeout = deadlines.REQUEST_TIMEOUT
    """The greatest total time of one call's requests to the backend, in seconds."""

    instances_per_project: int | None = None
    """The greatest number of instances of a project; None if there is no limit."""

    # Seconds for which recording a job is retried, and by which a request may exceed its timeout.
    _record_for: ClassVar[float] = 10.0

    def __init__(
        self,
        store: TagStore,
        backend: TagBackend,
        prefixes: Prefixes = DEFAULT_PREFIXES,
        clashes: Clashes = NO_CLASHES,
        give_up_after: float = GIVE_UP_AFTER,
    ) -> None:
        if store.inside_a_transaction:
            raise ValueError(
                "cannot use a store inside the caller's transaction: each operation must be "
                "committed before it is submitted; give the store a URL or an engine"
            )
        writer = Writer(backend)
        self._backend = backend
        self._store = store.written_by(writer)
        self._prefixes = prefixes
        self._clashes = clashes
        self.administration = Administration(self._store, writer)
        self.inventory = BackendInventory(self._store, backend)
        self.jobs = JobTracker(self._store, backend, prefixes, give_up_after)

    @property
    def backend(self) -> TagBackend:
        """The backend that takes the jobs."""
        return self._backend

    @property
    def store(self) -> TagStore:
        """The store, which changes nothing in a database of another backend."""
        return self._store

    @property
    def prefixes(self) -> Prefixes:
        """The prefixes of the owners' tags."""
        return self._prefixes

    @_within_request_timeout
    def create(
        self, asking: Caller, name: str, tags: Iterable[str] = (), server: str | None = None
    ) -> tuple[Instance, dict[str, Status]]:
        """Record an instance with these tags, and have the backend create it.

        ``name`` is the instance's name at the backend. ``server`` is its id, by default a new UUID.
        Returns the instance and the statuses of its tags, which are all PENDADD. Raises Conflict if
        the id or the name is taken, and OverQuota if the project has too many instances. Forgets
        the instance if the backend refuses; keeps it if OutcomeUnknown is raised.
        """
        instance = Instance(
            str(uuid.uuid4()) if server is None else server, name, asking.project, asking.user
        )
        self.inventory.check_new(instance)
        rules = self._rules(asking)
        wanted = requests.wanted(rules, tags)
        operation = self._operation(asking, Kind.CREATE, rules, wanted)
        if self._backend.tags([name]):
            raise errors.Conflict(f"cannot create instance {name!r}: the backend has it already")
        begun = requests.beginning(operation)
        begun = dataclasses.replace(begun, horizon=self.inventory.begins_after())
        self._store.register(instance, begun, self.instances_per_project)
        try:
            submit(self._store, self._backend, instance, operation, self._record_for)
        except errors.BackendRefused:
            self._undo(instance.id, [operation])
            raise
        return instance, dict.fromkeys(sorted(operation.names), Status.PENDADD)

    @_within_request_timeout
    def register(self, instance: Instance) -> None:
        """Record an instance that the backend has.

        Raises BadRequest for an invalid id or name, Conflict if one is taken, OverQuota if the
        project has too many instances, and NotFound if the backend does not have the instance.
        Outcomes of earlier jobs are ignored, because they may
        be about another instance of the name. Reconciliation records the instance's tags.
        """
        self.inventory.check_new(instance)
        self._store.check_backend()
        if not self._backend.tags([instance.name]):
            raise errors.NotFound(
                f"cannot register {instance.id!r}: the backend has no instance {instance.name!r}; "
                f"create it there first, or give the full name that the backend lists"
            )
        begins = StateChange(horizon=self.inventory.begins_after())
        self._store.register(instance, begins, self.instances_per_project)
        audit.write([audit.Entry(audit.Event.REGISTERED, instance, caller=audit.OPERATOR)])

    def forget(self, server: str) -> None:
        """Delete an instance and everything recorded about its tags; the backend is not changed."""
        instance = self._store.instance(server)
        self._store.forget(server)
        audit.write([audit.Entry(audit.Event.FORGOTTEN, instance, caller=audit.OPERATOR)])

    @_within_request_timeout
    def unregister(self, asking: Asking, server: str) -> None:
        """Forget an instance that the backend no longer has.

        Raises Conflict if the backend has it, or while its creation is pending.
        """
        instance = self.instance(asking, server)
        if self._backend.tags([instance.name]):
            raise errors.Conflict(
                f"cannot unregister {server!r}: the backend has instance {instance.name!r}; remove "
                f"it there first"
            )

        def decide(state: State) -> tuple[StateChange, None]:
            requests.check_created(state)
            return StateChange(forgotten=True), None

        self._retried(instance, decide)
        audit.write([audit.Entry(audit.Event.FORGOTTEN, instance, caller=_name(asking))])

    def servers(
        self, asking: Caller, wanted: TagFilter, size: int, after: str = ""
    ) -> list[TaggedInstance]:
        """Return up to ``size`` instances of the caller's project that the filter accepts.

        They are sorted by id, and begin with the first id after ``after``. Each has the tags of
        the caller's owner, which are those that the filter is about.
        """
        prefixes = [self._rules(asking).prefix]
        return self._store.tagged(Page(prefixes, size, after, wanted, asking.project))

    def tags(self, asking: Asking, server: str) -> dict[str, Status]:
        """Return the owner's tags on the server with their statuses."""
        instance = self.instance(asking, server)
        return self._store.tags(server, self._rules(asking).prefix, being=instance)

    def status(self, asking: Asking, server: str, name: str) -> Status:
        """Return the status of one tag; raise NotFound if it is missing.

        If the backend could not add it within the last hour, this is AdditionFailed, with the
        reason.
        """
        instance = self.instance(asking, server)
        tag = Tag(self._rules(asking).prefix, name)
        there = self._store.tags(server, tag.prefix, being=instance)
        if name in there:
            return there[name]
        check_name(name)
        reason = self._store.failure(server, tag, being=instance)
        if reason is not None:
            raise errors.AdditionFailed(f"no tag {name!r}: the backend could not add it: {reason}")
        raise errors.NotFound(f"no tag {name!r}")

    def add(self, asking: Asking, server: str, name: str) -> bool:
        """Add a tag; return whether it was missing before.

        Raises Conflict if the tag is incompatible with another one or still being deleted, and
        BadRequest if the server has too many tags.
        """
        rules = self._rules(asking)
        wanted = requests.wanted(rules, [name])
        begun, _ = self._change(
            asking,
            server,
            lambda state: self._begun(asking, rules, requests.adding(state, rules, wanted), ()),
        )
        return bool(begun)

    def delete(self, asking: Asking, server: str, name: str) -> None:
        """Delete a tag; raise NotFound if it is missing, and Conflict if it is PENDADD."""
        rules = self._rules(asking)

        def begin(state: State) -> list[Operation]:
            return self._begun(asking, rules, (), [requests.deleting(state, rules, name)])

        self._change(asking, server, begin)

    def replace(self, asking: Asking, server: str, names: Iterable[str]) -> dict[str, Status]:
        """Replace the owner's ACTIVE tags with these, and return the tags that result.

        PENDADD tags stay.
        """
        rules = self._rules(asking)
        wanted = requests.wanted(rules, names)
        _, then = self._change(
            asking,
            server,
            lambda state: self._begun(asking, rules, *requests.replacing(state, rules, wanted)),
        )
        return then.of(rules.prefix)

    def clear(self, asking: Asking, server: str) -> None:
        """Delete all ACTIVE tags of the owner; PENDADD ones stay."""
        rules = self._rules(asking)
        self._change(
            asking,
            server,
            lambda state: self._begun(asking, rules, (), requests.clearing(state, rules)),
        )

    def _rules(self, asking: Asking) -> TagRules:
        most = MOST if asking.owner == Owner.USER else None
        return TagRules(self._prefixes.of(asking.owner), self._clashes, most)

    def instance(self, asking: Asking, server: str) -> Instance:
        """Return the instance; raise NotFound if it is unknown or another project's."""
        instance = self._store.instance(server)
        if isinstance(asking, Caller) and instance.project != asking.project:
            raise errors.NotFound(f"no instance {server!r:.100}")
        return instance

    def _begun(
        self, asking: Asking, rules: TagRules, new: Sequence[Tag], gone: Sequence[Tag]
    ) -> list[Operation]:
        """Return the operations; additions come first, so that no tags are lost if they fail."""
        return [
            self._operation(asking, kind, rules, tags)
            for kind, tags in ((Kind.ADD, new), (Kind.DELETE, gone))
            if tags
        ]

    def _operation(
        self, asking: Asking, kind: Kind, rules: TagRules, tags: Sequence[Tag]
    ) -> Operation:
        return Operation(
            str(uuid.uuid4()),
            kind,
            rules.prefix,
            tuple(tags),
            time.time(),
            caller=_name(asking),
        )

    @_within_request_timeout
    def _change(
        self, asking: Asking, server: str, begin: Callable[[State], list[Operation]]
    ) -> tuple[list[Operation], State]:
        """Record the operations that ``begin`` returns, submit them, and undo the refused ones.

        Returns the operations, and the state after recording them.
        """
        instance = self.instance(asking, server)

        def decide(state: State) -> tuple[StateChange, tuple[list[Operation], State]]:
            requests.check_created(state)
            begun = self._in_batches(instance.name, begin(state))
            change = requests.beginning(*begun)
            return change, (begun, change.applied(state))

        begun, then = self._retried(instance, decide)
        for index, operation in enumerate(begun):
            try:
                submit(self._store, self._backend, instance, operation, self._record_for)
            except errors.OutcomeUnknown:
                # The backend may still apply this one. The later ones were never submitted.
                self._undo(server, begun[index + 1 :])
                raise
            except errors.BackendRefused as error:
                self._undo(server, begun[index:])
                if index and isinstance(error, errors.BackendUnreachable):
                    raise errors.OutcomeUnknown(
                        f"the backend became unreachable after it accepted some changes: {error}"
                    ) from error
                raise
        return begun, then

    def _retried(
        self, instance: Instance, decide: Callable[[State], tuple[StateChange, ReturnT]]
    ) -> ReturnT:
        """Change the instance's state; if its pending operations prevent this, poll and retry."""
        try:
            return self._store.change(instance.id, decide, being=instance)
        except errors.InvalidTag:
            raise
        except (errors.BadRequest, errors.Conflict):
            self.jobs.poll_instance(instance)
            # Retry even if the poll changed nothing: another process may have applied an outcome.
            return self._store.change(instance.id, decide, being=instance)

    def _in_batches(self, name: str, begun: Iterable[Operation]) -> list[Operation]:
        """Split the operations so that each fits into one job of the backend."""
        batched = []
        for operation in begun:
            by_text = {tag.encoded: tag for tag in operation.tags}
            for batch in self._backend.batches(name, list(by_text)):
                tags = tuple(by_text[text] for text in batch)
                batched.append(dataclasses.replace(operation, id=str(uuid.uuid4()), tags=tags))
        return batched

    def _undo(self, server: str, begun: Sequence[Operation]) -> None:
        for operation in begun:
            self._store.change(server, functools.partial(_undone, operation))


def _name(asking: Asking) -> str:
    """Return the caller's name for the audit log."""
    return asking.user if isinstance(asking, Caller) else audit.OPERATOR


def _undone(operation: Operation, state: State) -> tuple[StateChange, None]:
    return outcomes.failing(state, [operation]), None
