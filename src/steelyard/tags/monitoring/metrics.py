"""The metrics of the tag service, in the format of Prometheus.

No label has names of instances, projects, users or tags: each value of a label is a series of its
own at Prometheus, which keeps it for ever.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import prometheus_client
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from steelyard import errors
from steelyard.tags import audit
from steelyard.tags.jobs.observers import DispatcherObserver, Handled, WatchObserver
from steelyard.tags.monitoring.vitals import Vitals

SERVICE = "steelyard_tags"
"""The beginning of the names of all metrics."""

AnswerT = TypeVar("AnswerT")


class ChangeMetrics(audit.Observer, Collector):
    """The counter of changes and failed jobs, which are the lines of the audit log.

    The registry keeps it, so it exists as long as the registry.
    """

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._changes = prometheus_client.Counter(
            f"{SERVICE}_changes_total",
            "The changes and the failed jobs that this process recorded, by the event in the "
            "audit log.",
            ["event"],
            registry=None,
        )
        for event in audit.Event:
            self._changes.labels(event.value)
        registry.register(self)

    def collect(self) -> Iterable[Metric]:
        return self._changes.collect()

    def describe(self) -> Iterable[Metric]:
        """Return the name, without samples."""
        return self._changes.describe()

    def noted(self, entry: audit.Entry) -> None:
        self._changes.labels(entry.event.value).inc()


class WatchMetrics(WatchObserver):
    """The metrics of the watch."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._runs = prometheus_client.Counter(
            f"{SERVICE}_watch_runs_total",
            "The polls of the backend, by their result.",
            ["result"],
            registry=registry,
        )
        for result in ("success", "failure"):
            self._runs.labels(result)
        self._last = prometheus_client.Gauge(
            f"{SERVICE}_watch_last_success_timestamp_seconds",
            "The time of the last successful poll of the backend, 0 before the first one.",
            registry=registry,
        )
        self._published = prometheus_client.Counter(
            f"{SERVICE}_outcomes_published_total",
            "The outcomes of jobs that were published to the broker.",
            registry=registry,
        )

    def looked(self, *, succeeded: bool) -> None:
        self._runs.labels("success" if succeeded else "failure").inc()
        if succeeded:
            self._last.set_to_current_time()

    def published(self) -> None:
        self._published.inc()


class DispatcherMetrics(DispatcherObserver):
    """The metrics of a dispatcher."""

    def __init__(self, registry: prometheus_client.CollectorRegistry) -> None:
        self._messages = prometheus_client.Counter(
            f"{SERVICE}_messages_total",
            "The messages that the dispatcher handled, by their result.",
            ["result"],
            registry=registry,
        )
        for result in Handled:
            self._messages.labels(result.value)

    def handled(self, result: Handled) -> None:
        self._messages.labels(result.value).inc()


class VitalMetrics(Collector):
    """The state of the database and the broker, read on each request for metrics.

    While a system fails, the metrics that need it are missing.
    """

    def __init__(self, vitals: Vitals) -> None:
        self._vitals = vitals

    def describe(self) -> list[GaugeMetricFamily]:
        """Return nothing, so that registering it reads nothing."""
        return []

    def collect(self) -> Iterator[GaugeMetricFamily]:
        passed = GaugeMetricFamily(
            f"{SERVICE}_check_success",
            "Whether the system works: 1 or 0.",
            labels=["check"],
        )
        passed.add_metric(["database"], float(_succeeds(self._vitals.check_database)))
        if self._vitals.has_broker:
            passed.add_metric(["broker"], float(_succeeds(self._vitals.check_broker)))
        yield passed
        backlog = _read(self._vitals.backlog)
        if backlog is not None:
            yield GaugeMetricFamily(
                f"{SERVICE}_pending_operations",
                "The operations whose outcome is not applied yet.",
                backlog.operations,
            )
            if backlog.since is not None:
                yield GaugeMetricFamily(
                    f"{SERVICE}_oldest_pending_operation_timestamp_seconds",
                    "The time when the oldest pending operation began; missing if none is pending.",
                    backlog.since,
                )
        watched = _read(self._vitals.watched)
        if watched is not None and watched.reconciled is not None:
            yield GaugeMetricFamily(
                f"{SERVICE}_last_reconciliation_timestamp_seconds",
                "The time of the last reconciliation of all instances by the watch.",
                watched.reconciled,
            )
        queues = _read(self._vitals.queues)
        if queues is not None:
            yield GaugeMetricFamily(
                f"{SERVICE}_queued_outcomes",
                "The outcomes in the queue of the dispatchers.",
                queues.outcomes,
            )
            yield GaugeMetricFamily(
                f"{SERVICE}_dead_letters",
                "The messages in the queue of dead letters.",
                queues.dead_letters,
            )


def _read(read: Callable[[], AnswerT]) -> AnswerT | None:
    try:
        return read()
    except errors.SteelyardError:  # the check of the system shows it
        return None


def _succeeds(check: Callable[[], None]) -> bool:
    try:
        check()
    except errors.SteelyardError:
        return False
    return True
