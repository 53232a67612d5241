"""Short ways to write states of tags, operations on them and outcomes of their jobs."""

from steelyard.tags.codec import Tag
from steelyard.tags.states import outcomes, requests
from steelyard.tags.states.values import Kind, Operation, Outcome, State, Status

USER, SYSTEM = "cyclades:user:", "cyclades:system:"
ACTIVE, PENDADD = Status.ACTIVE, Status.PENDADD
ADD, DELETE, CREATE = Kind.ADD, Kind.DELETE, Kind.CREATE


def key(name: str, prefix: str = USER) -> Tag:
    return Tag(prefix, name)


def tags(prefix: str = USER, **statuses: Status) -> dict[Tag, Status]:
    return {key(name, prefix): status for name, status in statuses.items()}


def operation(kind: Kind, *names: str, job: int | None = None, prefix: str = USER) -> Operation:
    return Operation(
        f"{kind} {names} {job}", kind, prefix, tuple(key(name, prefix) for name in names), 0.0, job
    )


def begun(state: State, *operations: Operation) -> State:
    return requests.beginning(*operations).applied(state)


def outcome_of(
    job: int, kind: Kind, *names: str, succeeded: bool = True, prefix: str = USER
) -> Outcome:
    return Outcome(job, "vm", kind, frozenset(key(name, prefix) for name in names), succeeded)


def applied(state: State, *results: Outcome) -> State:
    for outcome in results:
        state = outcomes.applying(state, outcome).applied(state)
    return state


def failed(job: int, kind: Kind, *names: str) -> Outcome:
    return outcome_of(job, kind, *names, succeeded=False)
