"""The command ``consumer serve``."""

from typing import Any
from wsgiref.types import WSGIApplication

from oslo_config import cfg

from steelyard import conf as options
from steelyard import consumers, extras
from steelyard.cli.api_serving import ServingCommand


class ConsumerServe(ServingCommand):
    """Serve the HTTP API of consumers for trial use.

    The API is the part of Placement's at microversion 1.38 that reads and writes allocations and
    usages by consumer type. The command runs until it is interrupted, without TLS. In production,
    let a WSGI server run steelyard.consumers.http.api:application.
    """

    examples = (
        "steelyard consumer serve --url sqlite:////var/lib/consumers.db",
        "steelyard --config-file consumers.conf consumer serve --port 8779",
    )
    group = options.CONSUMERS_GROUP
    database = "consumer"
    port = 8778
    api = "consumers"
    trusted = "X-Project-Id, X-User-Id and X-Roles"

    def register(self, conf: cfg.ConfigOpts) -> Any:
        return options.register_consumers(conf)

    def application(self, conf: cfg.ConfigOpts, url: str | None) -> WSGIApplication:
        with extras.required("sql", "the consumer store"):
            from steelyard.sql.configured import database_url  # noqa: PLC0415  (an extra)
        with extras.required("api", "the HTTP API of consumers"):
            from steelyard.consumers.http.api import make_application  # noqa: PLC0415  (an extra)
        self.warn_of_unknown_options(conf)
        where = database_url(conf, self.group, url)
        store = self.opened.enter_context(consumers.ConsumerStore(where))
        store.require_tables()
        return make_application(store, conf)
