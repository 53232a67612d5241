"""The paths ``/health`` and ``/metrics`` of the parts of the tag service."""

import time
from collections.abc import Callable
from typing import Any

import falcon
import prometheus_client

from steelyard.tags import audit
from steelyard.tags.monitoring.metrics import ChangeMetrics, VitalMetrics
from steelyard.tags.monitoring.vitals import Vitals
from steelyard.web import health, metrics

AGE = "oldest_pending_seconds"
"""The key of the age of the oldest pending operation in the answer about the health."""


def add_routes(
    app: "falcon.App[Any, Any]",
    vitals: Vitals,
    registry: prometheus_client.CollectorRegistry,
    *,
    needs_broker: bool,
) -> None:
    """Add the two paths to the application of a part of the service.

    The registry gets the metrics of changes. If the part ``needs_broker``, it is unhealthy while
    the broker is unreachable.
    """
    audit.observe(ChangeMetrics(registry))
    needed: dict[str, Callable[[], None]] = {"database": vitals.check_database}
    others: dict[str, Callable[[], None]] = {}
    if vitals.has_broker:
        (needed if needs_broker else others)["broker"] = vitals.check_broker

    def age() -> float:
        since = vitals.backlog().since
        return 0.0 if since is None else max(time.time() - since, 0.0)

    app.add_route(health.PATH, health.Health(needed, others, {AGE: age}))
    app.add_route(metrics.PATH, metrics.Metrics(registry, [VitalMetrics(vitals)]))
