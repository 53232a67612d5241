"""The command ``tags serve``."""

from typing import TYPE_CHECKING, Any
from wsgiref.types import WSGIApplication

from oslo_config import cfg

from steelyard import conf as options
from steelyard import extras
from steelyard.cli.api_serving import ServingCommand
from steelyard.cli.commands import Command

if TYPE_CHECKING:
    from steelyard.tags import TagService


class TagsServe(ServingCommand):
    """Serve the HTTP API of instance tags for trial use.

    The command runs until it is interrupted, without TLS. It polls the backend for finished jobs
    every poll_interval seconds, an option in [steelyard_tags]. In production, let a WSGI server run
    steelyard.tags.http.api:application, and run steelyard tags watch beside it.
    """

    examples = (
        "steelyard tags serve --url sqlite:////var/lib/tags.db",
        "steelyard --config-file tags.conf tags serve --port 8781",
    )

    group = options.TAGS_GROUP
    database = "tag"
    port = 8780
    api = "tags"
    trusted = "X-Project-Id and X-User-Id"

    def register(self, conf: cfg.ConfigOpts) -> Any:
        return options.register_tags(conf)

    def application(self, conf: cfg.ConfigOpts, url: str | None) -> WSGIApplication:
        with extras.required("sql", "the tag service"):
            from steelyard.tags.jobs.watch import Watch  # noqa: PLC0415  (an extra)
        with extras.required("api", "the HTTP API of instance tags"):
            from steelyard.tags.http.api import make_application  # noqa: PLC0415  (as above)
        group = self.register(conf)
        service = ready_service(self, conf, url)
        application = make_application(service, conf)
        watch = Watch(service.jobs, group.marks_kept, reconcile_every=group.reconcile_every)
        self.opened.enter_context(watch.every(group.poll_interval).in_background())
        return application


def ready_service(command: Command, conf: cfg.ConfigOpts, url: str | None = None) -> "TagService":
    """Return the service for a command that runs until it is interrupted.

    Raises UpgradeNeeded if the tables are missing or outdated, and WrongBackend if the database
    belongs to another backend or records none.
    """
    with extras.required("sql", "the tag service"):
        from steelyard.tags import configured  # noqa: PLC0415  (an extra)
    with configured.store(conf, url) as store:
        store.require_tables()
    service = configured.service(conf, url)
    command.opened.enter_context(service.store)
    service.administration.refuse_wrong_backend()
    return service
