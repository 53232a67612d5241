"""Metrics of an HTTP service in the format of Prometheus."""

import os
import time
from collections.abc import Callable, Sequence

import falcon
import prometheus_client
from prometheus_client import multiprocess
from prometheus_client.registry import Collector

from steelyard.web.error_answers import HttpFault, RefusedRequest

PATH = "/metrics"

MULTIPROCESS = "PROMETHEUS_MULTIPROC_DIR"
"""The environment variable with the folder in which several processes share their metrics."""

_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
_OTHER = "other"
# Seconds. The last ones are around the time limits of requests to backends.
_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 100.0)


def registry() -> prometheus_client.CollectorRegistry:
    """Return a registry with the metrics of this process, such as its memory and open files.

    Processes that share their metrics have no metrics of their own.
    """
    made = prometheus_client.CollectorRegistry()
    if MULTIPROCESS not in os.environ:
        prometheus_client.ProcessCollector(registry=made)
    return made


class Metrics:
    """A resource with all metrics of a registry. It needs no identity of the caller.

    ``collectors`` are asked for more metrics on each request, in one process for all of them.
    """

    def __init__(
        self, own: prometheus_client.CollectorRegistry, collectors: Sequence[Collector] = ()
    ) -> None:
        self._own = own
        self._more = prometheus_client.CollectorRegistry()
        for each in collectors:
            self._more.register(each)

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        found = map(prometheus_client.generate_latest, (self._whole(req), self._more))
        resp.data = b"".join(found)
        resp.content_type = prometheus_client.CONTENT_TYPE_LATEST
        resp.set_header("Cache-Control", "no-store")

    on_head = on_get

    def _whole(self, req: falcon.Request) -> prometheus_client.CollectorRegistry:
        """Return the registry with the metrics of all processes of the server."""
        if MULTIPROCESS in os.environ:
            shared = prometheus_client.CollectorRegistry()
            multiprocess.MultiProcessCollector(shared)  # type: ignore[no-untyped-call]
            return shared
        if req.env.get("wsgi.multiprocess"):
            raise RefusedRequest(
                HttpFault(
                    500,
                    f"no metrics: the server has several processes; set {MULTIPROCESS} to an "
                    f"empty folder in the environment of the server",
                )
            )
        return self._own


class RequestMetrics:
    """The middleware that counts requests and measures how long they take.

    Labels have few values: routes stand for paths, so they have no names from requests.
    """

    def __init__(
        self,
        service: str,
        registry: prometheus_client.CollectorRegistry,
        clock: Callable[[], float] = time.perf_counter,
    ) -> None:
        self._clock = clock
        self._requests = prometheus_client.Counter(
            f"{service}_http_requests_total",
            "The HTTP requests that were answered.",
            ["method", "route", "status"],
            registry=registry,
        )
        self._seconds = prometheus_client.Histogram(
            f"{service}_http_request_duration_seconds",
            "The time from the arrival of an HTTP request to its answer.",
            ["method", "route"],
            buckets=_BUCKETS,
            registry=registry,
        )

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        req.context.began = self._clock()

    def process_response(
        self,
        req: falcon.Request,
        resp: falcon.Response,
        resource: object,
        req_succeeded: bool,  # noqa: FBT001  (Falcon's signature)
    ) -> None:
        method = req.method if req.method in _METHODS else _OTHER
        route = req.uri_template or _OTHER
        self._requests.labels(method, route, resp.status_code).inc()
        # Falcon rejects some methods before any middleware sees the request.
        began = getattr(req.context, "began", None)
        if began is not None:
            self._seconds.labels(method, route).observe(self._clock() - began)
