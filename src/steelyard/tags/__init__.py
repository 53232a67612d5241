"""Tags of instances: kept here in clear text, and at a backend such as Ganeti in its own.

The store needs the extra ``sql``, the client and the HTTP API ``api``: each is imported when it is
asked for.
"""

from typing import TYPE_CHECKING

from steelyard.extras import lazily
from steelyard.tags.codec import decode, encode
from steelyard.tags.plans import plan_reconciliation

if TYPE_CHECKING:
    from steelyard.tags.client import TagsClient
    from steelyard.tags.service import TagService
    from steelyard.tags.store import TagStore

__all__ = ["TagService", "TagStore", "TagsClient", "decode", "encode", "plan_reconciliation"]

__getattr__ = lazily(
    __name__,
    {
        "TagService": ("service", "sql"),
        "TagStore": ("store", "sql"),
        "TagsClient": ("client", "api"),
    },
)
