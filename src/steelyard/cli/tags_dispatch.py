"""steelyard tags dispatch"""

import argparse
import signal

from steelyard import conf as options
from steelyard import errors, extras
from steelyard.cli.app import Action
from steelyard.cli.tags_serve import ready_service
from steelyard.loops import stopped_by


class TagsDispatch(Action):
    """Settle the outcomes of jobs that come through a broker.

    It takes them from the [steelyard_tags] queue at transport_url, until it is interrupted: then it
    finishes the one that it is at. What is malformed goes into the queue with .dead at the end of
    its name, with the reason in a header. There can be several of these processes at once.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        with extras.required("sql", "the tag service"):
            from steelyard.tags import configured  # noqa: PLC0415  (an extra)
        conf = self.configuration()
        group = options.register_tags(conf)
        url = configured.transport_url(conf)
        if url is None:
            raise errors.BadRequest(
                f"no broker is named: set transport_url in [{options.TAGS_GROUP}] of a "
                f"--config-file; without one, steelyard tags watch settles outcomes by itself"
            )
        with extras.required("amqp", "the message broker"):
            from steelyard.tags.broker import Broker  # noqa: PLC0415  (an extra)
            from steelyard.tags.dispatcher import Dispatcher  # noqa: PLC0415  (as above)
        broker = Broker(url, group.queue)
        service = ready_service(self, conf)
        dispatcher = Dispatcher(broker, service.settle, service.prefixes, prefetch=group.prefetch)
        with stopped_by(signal.SIGTERM, signal.SIGINT) as stop:
            self.app.stdout.write(
                f"outcomes come from {broker}, from the queue {group.queue}; Ctrl-C ends it\n"
            )
            self.app.stdout.flush()
            dispatcher.run(stop)
