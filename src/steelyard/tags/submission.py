"""The submission of recorded operations to the backend."""

import time

from oslo_log import log as logging

from steelyard import errors
from steelyard.tags import audit, deadlines
from steelyard.tags.backends.base import GREATEST_JOB, TagBackend
from steelyard.tags.database.store import TagStore
from steelyard.tags.jobs.loops import Pauses
from steelyard.tags.states.values import Instance, Kind, Operation

LOG = logging.getLogger(__name__)


def submit(
    store: TagStore,
    backend: TagBackend,
    instance: Instance,
    operation: Operation,
    record_for: float,
) -> None:
    """Submit the operation to the backend, and record the number of its job.

    Recording is retried for up to ``record_for`` seconds. Raises BackendRefused if the backend
    refuses the operation, and OutcomeUnknown if it may still apply it.
    """
    try:
        job = _job(backend, instance.name, operation)
    except (errors.BackendRefused, errors.OutcomeUnknown) as error:
        refused = isinstance(error, errors.BackendRefused)
        event = audit.Event.REFUSED if refused else audit.Event.UNANSWERED
        audit.write([audit.of_operation(event, instance, operation, reason=str(error))])
        raise
    audit.write([audit.of_operation(audit.Event.SUBMITTED, instance, operation, job)])
    _record(store, operation, job, record_for)


def _job(backend: TagBackend, instance: str, operation: Operation) -> int:
    """Submit the operation to the backend, and return the number of the job."""
    run = {
        Kind.CREATE: backend.create,
        Kind.ADD: backend.add,
        Kind.DELETE: backend.delete,
    }[operation.kind]
    try:
        job = run(instance, [tag.encoded for tag in operation.tags])
    except (errors.BackendRefused, errors.OutcomeUnknown):
        raise
    except Exception as error:  # a third-party backend can raise anything
        raise errors.OutcomeUnknown(
            f"the backend failed, and may still apply the request: {type(error).__name__}: {error}"
        ) from error
    if type(job) is not int or not 1 <= job <= GREATEST_JOB:
        raise errors.OutcomeUnknown(
            f"invalid job number {job!r:.100} of the backend: expected a whole number from 1 "
            f"to {GREATEST_JOB}; the backend may still apply the request"
        )
    return job


def _record(store: TagStore, operation: Operation, job: int, record_for: float) -> None:
    """Record the number of the job, with retries for some seconds if the database fails.

    If it cannot be recorded, the job runs anyway, and its outcome is recognised by its tags.
    """
    deadline = time.monotonic() + record_for + min(deadlines.left(), 0.0)
    pauses = Pauses(0.2, longest=1.0)
    while True:
        try:
            store.record_job(operation.id, job)
        except errors.ServiceError as error:
            if time.monotonic() >= deadline:
                LOG.warning("Cannot record job %s: %s", job, error)
                return
        else:
            return
        time.sleep(pauses.next())
