"""Progress bars."""

import contextvars
import logging
import operator
import sys
from collections.abc import Iterable
from typing import TypeVar

import tqdm

LOG = logging.getLogger(__name__)

ItemT = TypeVar("ItemT")

quiet: contextvars.ContextVar[bool] = contextvars.ContextVar("quiet", default=False)
"""Whether --quiet was given."""


DELAY = 2
"""The seconds after which a progress bar is shown."""


def visible() -> bool:
    """Return whether standard error is a terminal and --quiet was not given."""
    return sys.stderr.isatty() and not quiet.get()


def watched(items: Iterable[ItemT], what: str, total: int | None = None) -> "tqdm.tqdm[ItemT]":
    """Return the items with a progress bar, shown on a terminal after ``DELAY`` seconds."""
    count = operator.length_hint(items) if total is None else total
    LOG.info("Working through %s", f"{count} {what}" if count else what)
    return tqdm.tqdm(items, desc=what, total=total, delay=DELAY, leave=False, disable=not visible())
