"""The sources of tags for commands: the HTTP API as a user, or the database as the operator."""

import argparse
import dataclasses
import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from steelyard import conf as options
from steelyard import errors, extras
from steelyard.cli.commands import Command
from steelyard.cli.consumers import require_tag_database
from steelyard.cli.inputs import os_clouds
from steelyard.tags.names import ANY_TAGS, Owner, TagFilter, check_name
from steelyard.tags.states.values import Status

if TYPE_CHECKING:
    from oslo_config import cfg

    from steelyard.tags.database.listing import TaggedInstance
    from steelyard.tags.database.store import TagStore
    from steelyard.tags.http.client import TagsClient
    from steelyard.tags.service import TagService


class Operating:
    """The methods of the tags client, on the database and with access to all projects."""

    def __init__(self, service: "TagService", owner: str) -> None:
        with extras.required("sql", "the tag service"):
            from steelyard.tags.service import Operator  # noqa: PLC0415  (an extra)
        self.service = service
        self._operator = Operator(Owner(owner))

    def list(self, server: str) -> dict[str, Any]:
        statuses = self.service.tags(self._operator, server)
        return {"tags": [*statuses], "statuses": statuses}

    def exists(self, server: str, tag: str) -> Status | None:
        return self.service.tags(self._operator, server).get(check_name(tag))

    def status(self, server: str, tag: str) -> Status:
        return self.service.status(self._operator, server, tag)

    def add(self, server: str, tag: str) -> bool:
        new = self.service.add(self._operator, server, tag)
        self._finish()
        return new

    def delete(self, server: str, tag: str) -> None:
        self.service.delete(self._operator, server, tag)
        self._finish()

    def replace(self, server: str, tags: Iterable[str]) -> dict[str, Any]:
        self.service.replace(self._operator, server, tags)
        self._finish()
        return self.list(server)

    def clear(self, server: str) -> None:
        self.service.clear(self._operator, server)
        self._finish()

    def servers(
        self, wanted: TagFilter = ANY_TAGS, limit: int | None = None, after: str | None = None
    ) -> Iterator[dict[str, Any]]:
        for each in self.tagged([self._operator.owner], wanted, limit, after):
            tags = each.statuses
            yield {**dataclasses.asdict(each.instance), "tags": [*tags], "statuses": tags}

    def tagged(
        self,
        owners: Iterable[Owner],
        wanted: TagFilter = ANY_TAGS,
        limit: int | None = None,
        after: str | None = None,
    ) -> "Iterator[TaggedInstance]":
        """Yield the instances of all projects that the filter accepts, with these owners' tags."""
        with extras.required("sql", "the tag store"):
            from steelyard.tags.database.listing import LARGEST_PAGE, Page  # noqa: PLC0415  (an extra)
        prefixes, last = [self.service.prefixes.of(owner) for owner in owners], after or ""
        left = math.inf if limit is None else limit
        while left:
            size = int(min(left, LARGEST_PAGE))
            found = self.service.store.tagged(Page(prefixes, size, last, wanted))
            yield from found
            if len(found) < size:
                return
            last, left = found[-1].instance.id, left - size

    def unregister(self, server: str) -> None:
        self.service.unregister(self._operator, server)

    def _finish(self) -> None:
        """Finish the job now if the backend lives only as long as this process."""
        if self.service.backend.in_process:
            self.service.jobs.poll()


class OnServer(Command):
    """A command on one server."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("server", metavar="SERVER", help="ID of the server")
        return parser


class UsingDatabase(Command):
    """A command that can use the database."""

    def service(
        self, parsed_args: argparse.Namespace, conf: "cfg.ConfigOpts | None" = None
    ) -> "TagService":
        """Return the service over the database at the URL, or over the configured one.

        ``conf`` replaces the configuration of the command line.
        """
        with extras.required("sql", "the tag service"):
            from steelyard.tags import configured  # noqa: PLC0415  (an extra)
        service = configured.service(*self._database(parsed_args, conf))
        self.opened.enter_context(service.store)
        return service

    def store(self, parsed_args: argparse.Namespace) -> "TagStore":
        """Return only the store, over the same database."""
        with extras.required("sql", "the tag store"):
            from steelyard.tags import configured  # noqa: PLC0415  (an extra)
        conf, url = self._database(parsed_args)
        self.warn_of_unknown_options(conf)
        return self.opened.enter_context(configured.store(conf, url))

    def _database(
        self, parsed_args: argparse.Namespace, conf: "cfg.ConfigOpts | None" = None
    ) -> "tuple[cfg.ConfigOpts, str | None]":
        conf, url = conf or self.configuration(), parsed_args.url
        require_tag_database(conf, url, self.otherwise)
        return conf, url

    otherwise = ""
    """The end of the error about a missing database: the alternatives."""


class OnTheDatabase(UsingDatabase):
    """A command for operators, which works on the database only."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--url",
            help="SQLAlchemy URL of the database, without a password; default: connection in "
            f"[{options.TAGS_GROUP}] of a --config-file",
        )
        return parser


class AskingService(UsingDatabase):
    """A command that works over HTTP as a user, or on the database as the operator."""

    otherwise = "; for the HTTP API, add --os-cloud, or --endpoint, --project and --user"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        source = parser.add_mutually_exclusive_group()
        source.add_argument(
            "--os-cloud",
            metavar="NAME",
            help="cloud in clouds.yaml with the tag service to use over HTTP, as the cloud's user",
        )
        source.add_argument(
            "--endpoint",
            metavar="URL",
            help="URL of a tag service that trusts this machine, to use over HTTP; needs --project "
            "and --user",
        )
        source.add_argument(
            "--url",
            help="SQLAlchemy URL of the database to use instead of HTTP, without a password; "
            f"default: connection in [{options.TAGS_GROUP}] of a --config-file",
        )
        parser.add_argument(
            "--project", metavar="P", help="with --endpoint: ID of the user's project"
        )
        parser.add_argument("--user", metavar="U", help="with --endpoint: ID of the user")
        parser.add_argument(
            "--owner",
            choices=sorted(Owner),
            help=f"without HTTP: owner of the tags; default: {Owner.SYSTEM}",
        )
        return parser

    def tags(self, parsed_args: argparse.Namespace) -> "Operating | TagsClient":
        """Return the client or the operations that the arguments choose."""
        cloud, endpoint, owner = parsed_args.os_cloud, parsed_args.endpoint, parsed_args.owner
        who = (parsed_args.project, parsed_args.user)
        if endpoint is None and who != (None, None):
            raise errors.BadRequest("--project and --user need --endpoint: add its URL")
        if endpoint is not None and None in who:
            raise errors.BadRequest("--endpoint needs a user: add --project and --user")
        if cloud is None and endpoint is None:
            return Operating(self.service(parsed_args), owner or Owner.SYSTEM)
        if owner is not None:
            raise errors.BadRequest(
                "--owner needs the database: over HTTP, users have only their own tags"
            )
        with extras.required("api", "the tags client"):
            from steelyard.tags.http.client import SERVICE_TYPE, TagsClient  # noqa: PLC0415  (an extra)
        return TagsClient(endpoint or os_clouds.connect(cloud).adapter(SERVICE_TYPE), *who)


class AskingTags(OnServer, AskingService):
    """A command on the tags of one server."""
