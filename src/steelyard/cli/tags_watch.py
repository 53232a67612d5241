"""steelyard tags watch"""

import argparse
import signal

# The service, and what speaks to a broker, need extras, which the other commands do without.
from steelyard import conf as options
from steelyard import errors, extras
from steelyard.cli.app import Action
from steelyard.cli.tags_serve import require_tables
from steelyard.loops import stopped_by
from steelyard.tags.backends.memory import MemoryBackend

_load = extras.lazily(
    "steelyard.tags",
    {
        "Broker": ("broker", "amqp"),
        "Watch": ("watch", "sql"),
        "service": ("configured", "sql"),
        "store": ("configured", "sql"),
        "transport_url": ("configured", "sql"),
    },
)


class TagsWatch(Action):
    """Look again and again at what has become of the jobs at the backend.

    Every [steelyard_tags] poll_interval seconds, until it is interrupted. How they have ended it
    publishes to the broker at transport_url, for steelyard tags dispatch; where none is named, it
    settles them itself. What the backend has lost is settled by what is there. Once an hour, marks
    older than marks_kept are forgotten.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        conf = self.configuration()
        group = options.register_tags(conf)
        url = _load("transport_url")(conf)
        broker = None if url is None else _load("Broker")(url, group.queue)
        with _load("store")(conf) as store:
            require_tables(store)
        service = _load("service")(conf)
        self.opened.enter_context(service.store)
        if isinstance(service.backend, MemoryBackend):
            raise errors.BadRequest(
                f"the backend 'memory' is within the process that has it, and steelyard tags serve "
                f"looks after it there: name another one, as backend in [{options.TAGS_GROUP}]"
            )
        watch = _load("Watch")(service, group.marks_kept, broker)
        then = "are settled" if broker is None else f"go to {broker}, into the queue {group.queue}"
        with stopped_by(signal.SIGTERM, signal.SIGINT) as stop:
            self.app.stdout.write(f"outcomes {then}; Ctrl-C ends it\n")
            self.app.stdout.flush()
            watch.every(group.poll_interval).run(stop)
