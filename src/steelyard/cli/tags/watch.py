"""The command ``tags watch``."""

import argparse
import signal

from steelyard import conf as options
from steelyard import errors, extras
from steelyard.cli.tags.monitored import MonitoredCommand
from steelyard.cli.tags.serve import ready_service
from steelyard.tags.jobs.loops import stopped_by


class TagsWatch(MonitoredCommand):
    """Poll the backend for finished jobs and publish their results.

    It polls every [steelyard_tags] poll_interval seconds until it is interrupted. It publishes the
    outcomes to the broker at transport_url, for steelyard tags dispatch; without a broker, it
    applies them itself. It also follows the backend's list of jobs, and so learns of changes by
    other clients of the backend. Instances whose jobs the backend has lost are reconciled. Every
    reconcile_every seconds it reconciles all instances. Once an hour, it deletes records of jobs
    that are older than marks_kept seconds.
    """

    examples = ("steelyard --config-file tags.conf tags watch",)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        with extras.required("sql", "the tag service"):
            from steelyard.tags import configured  # noqa: PLC0415  (an extra)
            from steelyard.tags.jobs.watch import Watch  # noqa: PLC0415  (as above)
        conf = self.monitored_configuration(parsed_args)
        group = options.register_tags(conf)
        broker = configured.broker(conf)
        service = ready_service(self, conf)
        if service.backend.in_process:
            driver = service.backend.identity().driver
            raise errors.BadRequest(
                f"cannot watch the backend {driver!r}: it exists only in the process of 'steelyard "
                f"tags serve'; name another backend in [{options.TAGS_GROUP}]"
            )
        watch = Watch(service.jobs, group.marks_kept, broker, reconcile_every=group.reconcile_every)
        part = self.monitored(conf, service.store, broker)
        if part is not None:
            watch.observer = part.watch_metrics()
        doing = "applying outcomes"
        if broker is not None:
            doing = f"publishing outcomes to the queue {group.queue} of {broker}"
        with stopped_by(signal.SIGTERM, signal.SIGINT) as stop:
            self.app.stdout.write(f"{doing}; press Ctrl-C to stop\n")
            self.app.stdout.flush()
            watch.every(group.poll_interval).run(stop)
