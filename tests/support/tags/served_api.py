"""The HTTP API of tags, and other WSGI applications, over a real socket."""

import contextlib
import socketserver
import threading
from collections.abc import Iterator
from typing import Any
from wsgiref import simple_server

from oslo_config import cfg

from steelyard import conf as options
from steelyard.tags import TagService, TagStore
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.http.api import make_application
from support.tags.databases import upgrade


class _Server(socketserver.ThreadingMixIn, simple_server.WSGIServer):
    pass


class _Quiet(simple_server.WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (its name)
        pass


@contextlib.contextmanager
def served(application: Any) -> Iterator[str]:
    """Serve a WSGI application during the block, and yield its URL."""
    with simple_server.make_server("127.0.0.1", 0, application, _Server, _Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def tag_service(directory: Any) -> TagService:
    """Return a service with its own database and a backend in memory, which runs no jobs."""
    store = TagStore(f"sqlite:///{directory}/tags.db")
    upgrade(store)
    return TagService(store, MemoryBackend())


def trusting(service: TagService, **more: Any) -> Any:
    """Return the HTTP API of the service, which trusts this machine as a proxy."""
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
    options.register_tags(conf)
    for name, value in {"trusted_proxies": ["127.0.0.1"], **more}.items():
        conf.set_override(name, value, group=options.TAGS_GROUP)
    return make_application(service, conf)


@contextlib.contextmanager
def polled(service: TagService) -> Iterator[None]:
    """Poll for finished jobs all the time during the block."""
    stopped = threading.Event()

    def poll() -> None:
        while not stopped.wait(0.05):
            service.jobs.poll()

    thread = threading.Thread(target=poll)
    thread.start()
    try:
        yield
    finally:
        stopped.set()
        thread.join()
