"""A server that forks processes with the modules of tests already imported."""

import multiprocessing
from multiprocessing.context import ForkServerContext

_IMPORTED = [
    "psycopg",
    "pymysql",
    "pytest",
    "steelyard.consumers.store",
    "steelyard.tags.service",
]


def forks() -> ForkServerContext:
    """Return a context whose processes start at once, because they import nothing."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(_IMPORTED)
    return context
