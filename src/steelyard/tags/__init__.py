"""Instance tags: recorded in a database, and applied by a backend such as Ganeti.

The store and the service need the extra ``sql``, and the client needs ``api``: each is imported
when it is first used.
"""

from typing import TYPE_CHECKING, Any

from steelyard import extras
from steelyard.tags.backends.base import BackendIdentity, JobStatus, TagBackend
from steelyard.tags.codec import decode, encode
from steelyard.tags.names import TagFilter
from steelyard.tags.plans import Look, plan_reconciliation
from steelyard.tags.states.values import Instance, State, Status

if TYPE_CHECKING:
    from steelyard.tags.database.store import TagStore, include_name
    from steelyard.tags.http.client import TagsClient
    from steelyard.tags.service import Caller, TagService

__all__ = [
    "BackendIdentity",
    "Caller",
    "Instance",
    "JobStatus",
    "Look",
    "State",
    "Status",
    "TagBackend",
    "TagFilter",
    "TagService",
    "TagStore",
    "TagsClient",
    "decode",
    "encode",
    "include_name",
    "plan_reconciliation",
]


def __getattr__(name: str) -> Any:
    """Import the names that need an extra when they are first used."""
    if name in {"Caller", "TagService"}:
        with extras.required("sql", "the tag service"):
            from steelyard.tags import service  # noqa: PLC0415  (an extra)
        return getattr(service, name)
    if name in {"TagStore", "include_name"}:
        with extras.required("sql", "the tag store"):
            from steelyard.tags.database import store  # noqa: PLC0415  (an extra)
        return getattr(store, name)
    if name == "TagsClient":
        with extras.required("api", "the tags client"):
            from steelyard.tags.http.client import TagsClient  # noqa: PLC0415  (an extra)
        return TagsClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
