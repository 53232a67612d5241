"""Work on many servers that is done in parts, with a progress bar."""

import dataclasses
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import tqdm
from oslo_log import log as logging

from steelyard import errors
from steelyard.cli.commands import INTERRUPTED, USERS_MISTAKE
from steelyard.cli.outputs import progress

LOG = logging.getLogger(__name__)

PartT = TypeVar("PartT")


@dataclasses.dataclass(frozen=True)
class EarlyEnd:
    """The error that ended the work early, with the exit status."""

    error: errors.SteelyardError
    status: int


def worked_through(
    parts: Iterable[PartT],
    total: int,
    size: Callable[[PartT], int],
    show: Callable[[PartT], None],
) -> tuple[int, EarlyEnd | None]:
    """Show each part of the work as it is done, and count its servers in a progress bar.

    Returns the number of servers, and the cause of an early stop or None.
    """
    done = 0
    try:
        with _progress(total) as bar:
            for part in parts:
                done += size(part)
                bar.update(size(part))
                show(part)
    except KeyboardInterrupt:
        return done, EarlyEnd(errors.SteelyardError("interrupted"), INTERRUPTED)
    except errors.SteelyardError as error:
        return done, EarlyEnd(error, USERS_MISTAKE)
    except Exception as error:  # a third-party backend can raise anything
        LOG.exception("Backend failed")
        why = f"the backend failed: {type(error).__name__}: {error}"
        return done, EarlyEnd(errors.SteelyardError(why), USERS_MISTAKE)
    return done, None


def _progress(total: int) -> "tqdm.tqdm[Any]":
    """Return a progress bar, shown on a terminal after ``progress.DELAY`` seconds."""
    bar: tqdm.tqdm[Any] = tqdm.tqdm(
        desc="servers",
        total=total,
        delay=progress.DELAY,
        leave=False,
        disable=not progress.visible(),
    )
    return bar
