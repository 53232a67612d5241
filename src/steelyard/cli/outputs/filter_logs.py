"""The log of filters, for commands whose results contain what the filters would log."""

import contextlib
import logging
from collections.abc import Iterator

from steelyard import filters


@contextlib.contextmanager
def suppressed() -> Iterator[None]:
    """Suppress warnings of filters in the block, because the findings contain them."""
    logger = logging.getLogger(filters.__name__)
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
