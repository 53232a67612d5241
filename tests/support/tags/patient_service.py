"""A tag service whose backend runs its jobs only on demand."""

from steelyard.tags import TagService, TagStore
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.codec import Tag, encode
from steelyard.tags.names import Clashes
from steelyard.tags.service import Caller
from steelyard.tags.states.values import Instance, StateChange, Status

CALLER = Caller("p", "u")
USER = "cyclades:user:"
ACTIVE, PENDADD = Status.ACTIVE, Status.PENDADD


def made(store: TagStore, *servers: str) -> tuple[TagService, MemoryBackend]:
    """Return a service for the store, and its backend, with these instances."""
    backend = MemoryBackend(patient=True)
    service = TagService(store, backend, clashes=Clashes.parse(["fast, safe"]))
    backend.adopt({f"{server}.example.org": () for server in servers})
    for server in servers:
        service.register(Instance(server, f"{server}.example.org", "p", "u"))
    return service, backend


def done(service: TagService, backend: MemoryBackend) -> None:
    """Run the jobs of the backend, and apply their outcomes."""
    backend.run()
    service.jobs.poll()


def put(store: TagStore, server: str, **tags: Status) -> None:
    """Write tags of the user directly to the store."""
    change = StateChange({Tag(USER, name): status for name, status in tags.items()})
    store.change(server, lambda state: (change, None))


def ours(name: str) -> str:
    """Return the encoded tag of the user."""
    return encode(name, USER)
