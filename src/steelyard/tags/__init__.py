"""Tags of instances: kept here in clear text, and at a backend such as Ganeti in its own.

The store needs the extra ``sql``, the client and the HTTP API ``api``: each is imported when it is
asked for.
"""

from typing import TYPE_CHECKING, Any

from steelyard import extras
from steelyard.tags.codec import decode, encode
from steelyard.tags.plans import plan_reconciliation

if TYPE_CHECKING:
    from steelyard.tags.client import TagsClient
    from steelyard.tags.service import TagService
    from steelyard.tags.store import TagStore

__all__ = ["TagService", "TagStore", "TagsClient", "decode", "encode", "plan_reconciliation"]


def __getattr__(name: str) -> Any:
    """Import the names that need an extra when they are first used."""
    if name == "TagService":
        with extras.required("sql", "the tag service"):
            from steelyard.tags.service import TagService  # noqa: PLC0415  (an extra)
        return TagService
    if name == "TagStore":
        with extras.required("sql", "the tag store"):
            from steelyard.tags.store import TagStore  # noqa: PLC0415  (an extra)
        return TagStore
    if name == "TagsClient":
        with extras.required("api", "the tags client"):
            from steelyard.tags.client import TagsClient  # noqa: PLC0415  (an extra)
        return TagsClient
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
