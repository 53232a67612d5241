"""A database of tags that belongs to a Ganeti cluster."""

from steelyard.tags import TagStore
from steelyard.tags.backends.base import BackendIdentity
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.codec import Tag
from steelyard.tags.states.values import Instance, Kind, Operation, StateChange, Status

CLUSTER = BackendIdentity("ganeti", "cluster.example.org")
MEMORY = MemoryBackend().identity()
USER = "cyclades:user:"
BOTH = "it belongs to backend ganeti 'cluster.example.org', and backend memory 'in-process' is"

OTHER = BackendIdentity("ganeti", "other.example.org")


def fill(store: TagStore) -> None:
    """Register an instance with tags and unfinished jobs, and one that is being created."""
    added = Operation("o1", Kind.ADD, USER, (Tag(USER, "new"),), 1.0, 17)
    deleted = Operation("o2", Kind.DELETE, USER, (Tag(USER, "old"),), 1.0, 18)
    unnumbered = Operation("o3", Kind.ADD, USER, (Tag(USER, "unsure"),), 1.0)
    there = {Tag(USER, "smtp"): Status.ACTIVE}
    pending = {Tag(USER, name): Status.PENDADD for name in ("new", "unsure")}
    begun = (added, deleted, unnumbered)
    store.register(Instance("s1", "vm-1", "p", "u"), StateChange({**there, **pending}, begun=begun))
    creation = Operation("o4", Kind.CREATE, USER, (Tag(USER, "first"),), 1.0, 19)
    created = StateChange({Tag(USER, "first"): Status.PENDADD}, begun=(creation,))
    store.register(Instance("s2", "vm-2", "q", "v"), created)
