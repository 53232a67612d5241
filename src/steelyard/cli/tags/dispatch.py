"""The command ``tags dispatch``."""

import argparse
import signal

from steelyard import conf as options
from steelyard import errors, extras
from steelyard.cli.tags.monitored import MonitoredCommand
from steelyard.cli.tags.serve import ready_service
from steelyard.tags.jobs.loops import stopped_by


class TagsDispatch(MonitoredCommand):
    """Apply the outcomes of jobs that arrive through a broker.

    The command reads the queue at transport_url, an option in [steelyard_tags]. When it is
    interrupted, it finishes the current message and exits. With the option exchange, it binds the
    queue to that exchange, so that notifications of Synnefo's snf-ganeti-eventd arrive. Malformed
    messages go to the queue whose name ends in .dead, with the reason in a header. Several
    dispatchers can run at the same time.
    """

    examples = ("steelyard --config-file tags.conf tags dispatch",)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        with extras.required("sql", "the tag service"):
            from steelyard.tags import configured  # noqa: PLC0415  (an extra)
            from steelyard.tags.jobs.reports import Reports  # noqa: PLC0415  (as above)
        conf = self.monitored_configuration(parsed_args)
        group = options.register_tags(conf)
        broker = configured.broker(conf, bound=True)
        if broker is None:
            raise errors.BadRequest(
                f"no broker configured: set transport_url in [{options.TAGS_GROUP}] of a "
                f"--config-file; without one, steelyard tags watch applies outcomes itself"
            )
        with extras.required("amqp", "the message broker"):
            from steelyard.tags.jobs.dispatcher import Dispatcher  # noqa: PLC0415  (as above)
        service = ready_service(self, conf)
        apply = Reports(service.jobs).apply
        dispatcher = Dispatcher(broker, apply, service.prefixes, prefetch=group.prefetch)
        part = self.monitored(conf, service.store, broker)
        if part is not None:
            dispatcher.observer = part.dispatcher_metrics()
        with stopped_by(signal.SIGTERM, signal.SIGINT) as stop:
            self.app.stdout.write(
                f"applying outcomes from the queue {group.queue} of {broker}; "
                "press Ctrl-C to stop\n"
            )
            self.app.stdout.flush()
            dispatcher.run(stop)
