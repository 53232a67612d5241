"""steelyard tags watch"""

import argparse
import signal

from steelyard import conf as options
from steelyard import errors, extras
from steelyard.cli.app import Action
from steelyard.cli.tags_serve import ready_service
from steelyard.loops import stopped_by
from steelyard.tags.backends.memory import MemoryBackend


class TagsWatch(Action):
    """Look again and again at what has become of the jobs at the backend.

    Every [steelyard_tags] poll_interval seconds, until it is interrupted. How they have ended it
    publishes to the broker at transport_url, for steelyard tags dispatch; where none is named, it
    settles them itself. What the backend has lost is settled by what is there. Once an hour, marks
    older than marks_kept are forgotten.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        with extras.required("sql", "the tag service"):
            from steelyard.tags import configured  # noqa: PLC0415  (an extra)
            from steelyard.tags.watch import Watch  # noqa: PLC0415  (as above)
        conf = self.configuration()
        group = options.register_tags(conf)
        url = configured.transport_url(conf)
        broker = None
        if url is not None:
            with extras.required("amqp", "the message broker"):
                from steelyard.tags.broker import Broker  # noqa: PLC0415  (an extra)
            broker = Broker(url, group.queue)
        service = ready_service(self, conf)
        if isinstance(service.backend, MemoryBackend):
            raise errors.BadRequest(
                f"the backend 'memory' is within the process that has it, and steelyard tags serve "
                f"looks after it there: name another one, as backend in [{options.TAGS_GROUP}]"
            )
        watch = Watch(service, group.marks_kept, broker)
        then = "are settled" if broker is None else f"go to {broker}, into the queue {group.queue}"
        with stopped_by(signal.SIGTERM, signal.SIGINT) as stop:
            self.app.stdout.write(f"outcomes {then}; Ctrl-C ends it\n")
            self.app.stdout.flush()
            watch.every(group.poll_interval).run(stop)
