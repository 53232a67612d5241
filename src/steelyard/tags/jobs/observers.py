"""Observers of the watch and of dispatchers, which metrics are made of."""

import enum


class WatchObserver:
    """An observer of a watch. This one ignores everything."""

    def looked(self, *, succeeded: bool) -> None:
        """Record that the watch has run all its steps."""

    def published(self) -> None:
        """Record that the watch has published an outcome."""


class Handled(enum.StrEnum):
    """The result of handling a message."""

    APPLIED = "applied"
    """Its outcome was applied, or is older than what is recorded."""

    IGNORED = "ignored"
    """It has no outcome of a job on tags."""

    DEAD_LETTER = "dead_letter"
    """It was moved to the dead letters."""

    RETRIED = "retried"
    """It returned to the queue, because the database or the backend failed."""


class DispatcherObserver:
    """An observer of a dispatcher. This one ignores everything."""

    def handled(self, result: Handled) -> None:
        """Record that the dispatcher has handled a message."""
