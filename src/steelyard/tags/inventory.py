"""The registration of many instances that the backend has."""

import fnmatch
from collections.abc import Iterator, Sequence

from steelyard import errors
from steelyard.tags import audit
from steelyard.tags.backends.base import TagBackend
from steelyard.tags.database.registering import Registered
from steelyard.tags.database.rows import check_instance
from steelyard.tags.database.store import TagStore
from steelyard.tags.names import check_server_id
from steelyard.tags.states.values import Instance

# Instances that are registered in one transaction.
_AT_ONCE = 500


class BackendInventory:
    """The instances of the backend, and their registration."""

    def __init__(self, store: TagStore, backend: TagBackend) -> None:
        self._store = store
        self._backend = backend

    def names(self, pattern: str = "*") -> list[str]:
        """Return the sorted names of the backend's instances that match a shell pattern.

        Raises BackendRefused if the backend cannot list its instances.
        """
        self._store.check_backend()
        found = set(self._backend.instances())
        return sorted(name for name in found if fnmatch.fnmatchcase(name, pattern))

    def register(
        self, names: Sequence[str], project: str, user: str, most: int | None = None
    ) -> Iterator[Registered]:
        """Register the instances with these names, a few hundred at once, and yield the results.

        The id of each is its name. ``most`` is the greatest number of instances of the project.
        Repeating this registers those that are still missing.
        """
        last = self._store.last_job()  # reads all instances, so not for each part
        for start in range(0, len(names), _AT_ONCE):
            some = names[start : start + _AT_ONCE]
            wanted = [Instance(name, name, project, user) for name in some]
            yield self._register(wanted, last, most)

    def _register(self, wanted: Sequence[Instance], last_job: int, most: int | None) -> Registered:
        valid, invalid = [], {}
        for instance in wanted:
            try:
                self.check_new(instance)
            except errors.BadRequest:
                invalid[instance.name] = "its name cannot be the ID of a server"
            else:
                valid.append(instance)
        if not valid:
            return Registered([], [], invalid)
        horizon = max(self._backend.horizon(), last_job)
        done = self._store.register_all(valid, horizon, most)
        audit.write(
            audit.Entry(audit.Event.REGISTERED, each, caller=audit.OPERATOR) for each in done.new
        )
        return Registered(done.new, done.known, {**done.refused, **invalid})

    def check_new(self, instance: Instance) -> None:
        """Raise BadRequest if the instance cannot be registered."""
        check_server_id(instance.id)
        check_instance(instance)
        self._backend.check_name(instance.name)

    def begins_after(self) -> int:
        """Return the last job that can be about an earlier instance of a name.

        The backend may have forgotten it, so the recorded jobs count, too.
        """
        return max(self._backend.horizon(), self._store.last_job())
