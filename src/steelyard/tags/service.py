"""What can be done with the tags of an instance, by users and by the system itself.

Each operation writes what it is about to do, then asks the backend, then writes down the number of
the job. No lock is held while the backend is asked. What becomes of the job is told later.
"""

import dataclasses
import functools
import time
import uuid
from collections.abc import Callable, Collection, Iterable, Sequence

from oslo_log import log as logging

from steelyard import errors
from steelyard.tags import states
from steelyard.tags.backends.base import BackendIdentity, JobStatus, TagBackend
from steelyard.tags.codec import encode
from steelyard.tags.names import (
    DEFAULT_PREFIXES,
    MOST,
    NO_CLASHES,
    Clashes,
    Owner,
    Prefixes,
    check_name,
)
from steelyard.tags.ownership import Writer, check_free_for
from steelyard.tags.plans import Action
from steelyard.tags.reconciliation import Reconciliation, progress
from steelyard.tags.states import Change, Instance, Kind, Operation, Outcome, Rules, State, Status
from steelyard.tags.store import TagStore, check_instance

LOG = logging.getLogger(__name__)

GIVE_UP_AFTER = 3600.0
"""Seconds after which an operation whose job nobody knows the number of is taken to be over."""

# Instances of which the backend must have one before it is recorded.
_SAMPLE = 500

_ENDED = (JobStatus.SUCCEEDED, JobStatus.FAILED)


@dataclasses.dataclass(frozen=True, slots=True)
class Caller:
    """Who asks, and whose tags are meant. Nothing a user says makes the owner the system."""

    project: str
    user: str
    owner: Owner = Owner.USER


@dataclasses.dataclass(frozen=True, slots=True)
class Over:
    """Which jobs are over."""

    outcomes: tuple[tuple[Instance, Outcome], ...]
    lost: frozenset[str]
    """The ids of instances about whose jobs the backend will say no more."""


@dataclasses.dataclass(frozen=True, slots=True)
class Operator:
    """Who may ask about the instances of every project."""

    owner: Owner = Owner.SYSTEM


Asking = Caller | Operator


class TagService:
    """The operations on tags, over a store and a backend."""

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
                "the store works inside a transaction of the caller's: what the backend is asked "
                "for is written down before, for good; give the store a URL or an engine"
            )
        self.backend = backend
        self._writer = Writer(backend)
        self.store = store.written_by(self._writer)
        self.prefixes = prefixes
        self._clashes = clashes
        self._give_up_after = give_up_after

    def identity(self) -> BackendIdentity:
        """Ask the backend for its identity."""
        return self._writer.ask()

    def upgrade(self) -> None:
        """Upgrade the tables, and record the backend as the one that the database belongs to.

        Changes nothing if another backend is recorded.
        """
        check_free_for(self.store.backend(), self.identity())
        self.store.upgrade()
        self.record_backend()

    def record_backend(self) -> None:
        """Record the backend as the one that the database belongs to.

        Raises WrongBackend if another one is recorded. If none is recorded and the database has
        instances, raises Conflict unless the backend has them.
        """
        identity = self.identity()
        if self.store.backend() is None:
            self._check_has_the_instances(identity)
        self.store.record_backend(identity)

    def _check_has_the_instances(self, identity: BackendIdentity) -> None:
        """Raise Conflict unless the database can have been written for the backend.

        The backend must have each instance with an unfinished operation, and one of the others. It
        must know the jobs that create instances.
        """
        pending = self.store.pending()
        creations = [each for _, each in pending if each.kind is Kind.CREATE]
        creating = {each.name for each, operation in pending if operation.kind is Kind.CREATE}
        changing = {each.name for each, _ in pending} - creating
        others = {each.instance.name for each in self.store.snapshots(_SAMPLE)} - creating
        there = self.backend.tags(changing | others)
        missing = sorted(changing - there.keys()) or (sorted(others) if not there else [])
        if missing:
            raise errors.Conflict(_not_its_database(identity, f"has no instance {missing[0]!r}"))
        numbers = [each.job for each in creations if each.job is not None]
        for number, status in self.backend.jobs(numbers).items() if numbers else ():
            if status is JobStatus.LOST:
                raise errors.Conflict(_not_its_database(identity, f"knows no job {number}"))

    def refuse_wrong_backend(self) -> None:
        """Raise WrongBackend if the database belongs to another backend, or records none.

        If the backend or the database cannot be asked, log a warning: each change checks again.
        """
        try:
            self.store.check_backend()
        except errors.WrongBackend:
            raise
        except errors.ServiceError as error:
            LOG.warning("Cannot check yet which backend the database belongs to: %s", error)

    def create(
        self, asking: Caller, name: str, tags: Iterable[str] = (), server: str | None = None
    ) -> tuple[Instance, dict[str, Status]]:
        """Has the backend create an instance with these tags, and keeps both."""
        instance = Instance(server or str(uuid.uuid4()), name, asking.project, asking.user)
        check_instance(instance)
        rules = self._rules(asking)
        names = states.wanted(rules, tags)
        operation = self._operation(Kind.CREATE, rules, names)
        if self.backend.tags([name]):
            raise errors.Conflict(f"the backend has an instance {name!r} already")
        begun = states.beginning(operation)
        self.store.register(instance, dataclasses.replace(begun, horizon=self._begins_after()))
        try:
            self._submit(instance.name, operation)
        except errors.BackendRefused:
            self._undo(instance.id, [operation])
            raise
        return instance, dict.fromkeys(sorted(names), Status.PENDADD)

    def register(self, instance: Instance) -> None:
        """Keeps an instance that the backend has already.

        What was done before is another one's that had the name, or shows by reconciliation.
        """
        self.store.register(instance, Change(horizon=self._begins_after()))

    def _begins_after(self) -> int:
        """The last job that can be about another instance of the same name.

        A backend may have forgotten those that are long over.
        """
        return max(self.backend.horizon(), self.store.last_job())

    def tags(self, asking: Asking, server: str) -> dict[str, Status]:
        """The owner's tags on the server, with what is known of each."""
        instance = self._instance(asking, server)
        return self.store.tags(server, self._rules(asking).prefix, being=instance)

    def status(self, asking: Asking, server: str, name: str) -> Status:
        """What is known of one tag; NotFound if it is not there."""
        there = self.tags(asking, server)
        if name not in there:
            check_name(name)
            raise errors.NotFound(f"there is no tag {name!r}")
        return there[name]

    def add(self, asking: Asking, server: str, name: str) -> bool:
        """Adds a tag; False if it is there already."""
        rules = self._rules(asking)
        states.wanted(rules, [name])
        begun, _ = self._change(
            asking,
            server,
            lambda state: self._begun(rules, states.adding(state, rules, [name]), ()),
        )
        return bool(begun)

    def delete(self, asking: Asking, server: str, name: str) -> None:
        """Deletes a tag."""
        rules = self._rules(asking)

        def begin(state: State) -> list[Operation]:
            states.deleting(state, rules, name)
            return self._begun(rules, (), (name,))

        self._change(asking, server, begin)

    def replace(self, asking: Asking, server: str, names: Iterable[str]) -> dict[str, Status]:
        """Has the owner's tags be these, beside those that are still being added."""
        rules = self._rules(asking)
        wanted = states.wanted(rules, names)
        _, then = self._change(
            asking,
            server,
            lambda state: self._begun(rules, *states.replacing(state, rules, wanted)),
        )
        return then.of(rules.prefix)

    def clear(self, asking: Asking, server: str) -> None:
        """Deletes all of the owner's tags, beside those that are still being added."""
        rules = self._rules(asking)
        self._change(
            asking, server, lambda state: self._begun(rules, (), states.clearing(state, rules))
        )

    def settle(self, outcome: Outcome, being: Instance | None = None) -> None:
        """Writes what a job has done, whenever and however often one is told of it.

        It is about the instance that has the name now, or about the given one if that is there.
        """
        if being is None:
            known = self.store.change_named(
                outcome.instance, lambda state: states.settling(state, outcome)
            )
        else:
            known = self._settle_of(being, outcome)
        if not known:
            LOG.info("Job %s is about %r, which is not known here", outcome.job, outcome.instance)

    def _settle_of(self, instance: Instance, outcome: Outcome) -> bool:
        try:
            self.store.change(
                instance.id, lambda state: (states.settling(state, outcome), None), being=instance
            )
        except errors.NotFound:  # it has been forgotten meanwhile
            return False
        return True

    def poll(self) -> int:
        """Asks about every job that is under way, and settles those that are over; how many."""
        return self._settle_what_is_over(self.store.pending())

    def over(self) -> Over:
        """Asks the same, for somebody else to settle."""
        return self._over(self.store.pending())

    def reconciliation(self, owners: Collection[Owner] = tuple(Owner)) -> Reconciliation:
        """What brings the tags of these owners in line with what the backend has."""
        return Reconciliation(self.store, self.backend, self.prefixes, self._give_up_after, owners)

    def settle_lost(self, servers: Collection[str]) -> int:
        """Settles what is under way for instances by what the backend has; how much of it."""
        plans = self.reconciliation().carried_out_for(servers)
        for plan in plans:
            for step in plan.steps:
                if step.action is not Action.LEFT:
                    LOG.info(
                        "%(instance)r: %(tag)a of %(prefix)r: %(action)s, for %(why)s",
                        {
                            "instance": plan.instance.name,
                            "tag": step.tag,
                            "prefix": step.prefix,
                            "action": step.action.value,
                            "why": step.why,
                        },
                    )
        return sum(len(plan.change.ended) for plan in plans)

    def _settle_what_may_be_over(self, instance: Instance) -> None:
        """Settles what others wait for: that it is created, that there is room.

        What is being added is left alone: that it is, is what the caller is told.
        """
        found = self.store.state(instance.id, being=instance).operations
        waited_for = [(instance, each) for each in found if each.kind is not Kind.ADD]
        try:
            self._settle_what_is_over(waited_for)
        except errors.SteelyardError as error:
            LOG.warning("What has become of jobs cannot be asked: %s", error)
        except Exception:  # a backend of somebody's can raise anything
            LOG.exception("What has become of jobs cannot be asked")

    def _settle_what_is_over(self, pending: Iterable[tuple[Instance, Operation]]) -> int:
        """Of what the backend knows nothing any more, it shows in what is there.

        One that cannot be settled holds up no others, and is told of in the end.
        """
        over = self._over(pending)
        failures = []
        for instance, outcome in over.outcomes:
            try:
                self.settle(outcome, being=instance)
            except errors.SteelyardError as error:
                failures.append(error)
        lost = self.settle_lost(over.lost)
        if failures:
            raise failures[0]
        return len(over.outcomes) + lost

    def _over(self, pending: Iterable[tuple[Instance, Operation]]) -> Over:
        under_way = list(pending)
        found = progress(self.backend, [each for _, each in under_way], self._give_up_after)
        if any(status is not JobStatus.RUNNING for status in found.values()):
            # Another backend knows nothing of these jobs, or mistakes them for its own.
            self.store.check_backend()
        return Over(
            tuple(
                (instance, _outcome(instance, each, found[each.id]))
                for instance, each in under_way
                if found[each.id] in _ENDED
            ),
            frozenset(i.id for i, each in under_way if found[each.id] is JobStatus.LOST),
        )

    def _rules(self, asking: Asking) -> Rules:
        most = MOST if asking.owner is Owner.USER else None
        return Rules(self.prefixes.of(asking.owner), self._clashes, most)

    def _instance(self, asking: Asking, server: str) -> Instance:
        """The instance, unless it is another project's: then it is as if it were not there."""
        instance = self.store.instance(server)
        if isinstance(asking, Caller) and instance.project != asking.project:
            raise errors.NotFound(f"there is no instance {server!r:.100}")
        return instance

    def _begun(self, rules: Rules, new: Sequence[str], gone: Sequence[str]) -> list[Operation]:
        """What the backend is to do: first what is added, so that nothing is lost if that fails."""
        return [
            self._operation(kind, rules, names)
            for kind, names in ((Kind.ADD, new), (Kind.DELETE, gone))
            if names
        ]

    def _operation(self, kind: Kind, rules: Rules, names: Sequence[str]) -> Operation:
        operation = Operation(str(uuid.uuid4()), kind, rules.prefix, tuple(names), time.time())
        self._encoded(operation)  # raises before anything is written if a name becomes too long
        return operation

    def _encoded(self, operation: Operation) -> list[str]:
        return [encode(name, operation.prefix) for name in operation.names]

    def _change(
        self, asking: Asking, server: str, begin: Callable[[State], list[Operation]]
    ) -> tuple[list[Operation], State]:
        """Writes what is begun, has the backend do it, and undoes what that refuses.

        What has been begun, and the state that it leaves.
        """
        instance = self._instance(asking, server)

        def decide(state: State) -> tuple[Change, tuple[list[Operation], State]]:
            states.check_created(state)
            begun = self._in_batches(instance.name, begin(state))
            change = states.beginning(*begun)
            return change, (begun, change.applied(state))

        try:
            begun, then = self.store.change(server, decide, being=instance)
        except errors.InvalidTag:
            raise
        except (errors.BadRequest, errors.Conflict):
            self._settle_what_may_be_over(instance)
            # Even if nothing was: somebody else may have settled it just before.
            begun, then = self.store.change(server, decide, being=instance)
        for index, operation in enumerate(begun):
            try:
                self._submit(instance.name, operation)
            except errors.OutcomeUnknown:
                # Of this one nobody knows; those behind it have never been asked for.
                self._undo(server, begun[index + 1 :])
                raise
            except errors.BackendRefused:
                self._undo(server, begun[index:])
                raise
        return begun, then

    def _in_batches(self, name: str, begun: Iterable[Operation]) -> list[Operation]:
        """The operations with no more tags each than the backend takes at once."""
        batched = []
        for operation in begun:
            by_tag = dict(zip(self._encoded(operation), operation.names, strict=True))
            for batch in self.backend.batches(name, list(by_tag)):
                names = tuple(by_tag[tag] for tag in batch)
                batched.append(dataclasses.replace(operation, id=str(uuid.uuid4()), names=names))
        return batched

    def _submit(self, instance: str, operation: Operation) -> None:
        ask = {
            Kind.CREATE: self.backend.create,
            Kind.ADD: self.backend.add,
            Kind.DELETE: self.backend.delete,
        }[operation.kind]
        try:
            job = ask(instance, self._encoded(operation))
        except (errors.BackendRefused, errors.OutcomeUnknown):
            raise
        except Exception as error:  # a backend of somebody's can raise anything: who knows
            raise errors.OutcomeUnknown(
                f"the backend has failed, and what it was asked may happen yet: "
                f"{type(error).__name__}: {error}"
            ) from error
        try:
            self.store.record_job(operation.id, job)
        except errors.ServiceError as error:
            # The job is under way; its outcome is recognised by what it does.
            LOG.warning("Job %s cannot be written down: %s", job, error)

    def _undo(self, server: str, begun: Sequence[Operation]) -> None:
        for operation in begun:
            self.store.change(server, functools.partial(_undone, operation))


def _outcome(instance: Instance, operation: Operation, status: JobStatus) -> Outcome:
    assert operation.job is not None  # noqa: S101  (it is how the status has been asked for)
    succeeded = status is JobStatus.SUCCEEDED
    return Outcome(operation.job, instance.name, operation.kind, operation.keys, succeeded)


def _not_its_database(identity: BackendIdentity, why: str) -> str:
    return (
        f"cannot record backend {identity}: it {why}, which the database has; use the "
        f"configuration of the backend that has the instances, or 'steelyard tags backend set "
        f"{identity.driver} --moved' if they were moved"
    )


def _undone(operation: Operation, state: State) -> tuple[Change, None]:
    return states.failing(state, [operation]), None
