"""The command ``consumer serve``."""

import argparse

from steelyard import conf as options
from steelyard import consumers, extras
from steelyard.cli.api_serving import ServingCommand
from steelyard.cli.consumers import require_database


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
    port = 8778
    api = "consumers"
    trusted = "X-Project-Id, X-User-Id and X-Roles"

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        with extras.required("sql", "the consumer store"):
            from steelyard.sql.configured import database_url  # noqa: PLC0415  (an extra)
        with extras.required("api", "the HTTP API of consumers"):
            from steelyard.consumers.http.api import make_application  # noqa: PLC0415  (an extra)
        conf = self.configuration()
        group = options.register_consumers(conf)
        self.warn_of_unknown_options(conf)
        require_database(conf, self.group, "consumer", parsed_args.url)
        told = self.trust_this_machine(conf, parsed_args.host)
        where = database_url(conf, self.group, parsed_args.url)
        store = self.opened.enter_context(consumers.ConsumerStore(where))
        store.require_tables()
        self.serve(parsed_args, make_application(store, conf), told, group.max_body)
