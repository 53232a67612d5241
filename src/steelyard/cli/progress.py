"""How far a command is, for somebody who waits for it."""

import sys
from collections.abc import Iterable
from typing import TypeVar

import tqdm

ItemT = TypeVar("ItemT")


def watched(items: Iterable[ItemT], what: str, total: int | None = None) -> "tqdm.tqdm[ItemT]":
    """The same with a progress bar, where somebody sees it and it takes long."""
    return tqdm.tqdm(
        items, desc=what, total=total, delay=1, leave=False, disable=not sys.stderr.isatty()
    )
