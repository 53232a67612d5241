"""The parts of the tag service that are no HTTP services: the watch and the dispatchers."""

from typing import TYPE_CHECKING
from wsgiref.types import WSGIApplication

import falcon

from steelyard.tags.database.store import TagStore
from steelyard.tags.jobs.observers import DispatcherObserver, WatchObserver
from steelyard.tags.monitoring.metrics import DispatcherMetrics, WatchMetrics
from steelyard.tags.monitoring.resources import add_routes
from steelyard.tags.monitoring.vitals import Vitals
from steelyard.web import metrics
from steelyard.web.requests import Gate

if TYPE_CHECKING:
    from steelyard.tags.jobs.broker import Broker

# The size limit of a request's body in bytes; no request needs one.
_MOST = 1024


class MonitoredPart:
    """The health and the metrics of a watch or a dispatcher, which need the broker if there is one.

    ``application`` answers requests for them.
    """

    application: WSGIApplication

    def __init__(self, store: TagStore, broker: "Broker | None") -> None:
        self._registry = metrics.registry()
        app = falcon.App(middleware=[Gate(_MOST)])
        add_routes(app, Vitals(store, broker), self._registry, needs_broker=True)
        self.application = app

    def watch_metrics(self) -> WatchObserver:
        """Add the metrics of a watch, and return the observer that counts them."""
        return WatchMetrics(self._registry)

    def dispatcher_metrics(self) -> DispatcherObserver:
        """Add the metrics of a dispatcher, and return the observer that counts them."""
        return DispatcherMetrics(self._registry)
