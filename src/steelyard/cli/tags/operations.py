"""The commands on the tags of one server, such as ``tags list`` and ``tags add``."""

import abc
import argparse
import collections
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from steelyard import conf as options
from steelyard import errors, extras
from steelyard.cli.commands import (
    SOME_FAILED,
    TAG_MISSING,
    USERS_MISTAKE,
    Command,
    Listed,
    Listing,
    Showing,
    Shown,
)
from steelyard.cli.consumers import require_tag_database
from steelyard.cli.inputs import os_clouds
from steelyard.cli.outputs import columns
from steelyard.tags.names import Owner, check_name
from steelyard.tags.selftest import PREFIX, AttemptResult, SelfTest, Tags
from steelyard.tags.states.values import Instance, Status

if TYPE_CHECKING:
    from oslo_config import cfg

    from steelyard.tags.database.store import TagStore
    from steelyard.tags.service import TagService


_TIMEOUT = 60.0  # seconds until a tag of the self-test is ACTIVE


class _Operating:
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

    def _finish(self) -> None:
        """Finish the job now if the backend lives only as long as this process."""
        if self.service.backend.in_process:
            self.service.jobs.poll()


class _OnServer(Command):
    """A command on one server."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("server", metavar="SERVER", help="ID of the server")
        return parser


class _UsingDatabase(Command):
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


class OnTheDatabase(_UsingDatabase):
    """A command for operators, which works on the database only."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--url",
            help="SQLAlchemy URL of the database, without a password; default: connection in "
            f"[{options.TAGS_GROUP}] of a --config-file",
        )
        return parser


class _AskingTags(_OnServer, _UsingDatabase):
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

    def tags(self, parsed_args: argparse.Namespace) -> Tags:
        """Return the client or the operations that the arguments choose."""
        cloud, endpoint, owner = parsed_args.os_cloud, parsed_args.endpoint, parsed_args.owner
        who = (parsed_args.project, parsed_args.user)
        if endpoint is None and who != (None, None):
            raise errors.BadRequest("--project and --user need --endpoint: add its URL")
        if endpoint is not None and None in who:
            raise errors.BadRequest("--endpoint needs a user: add --project and --user")
        if cloud is None and endpoint is None:
            return _Operating(self.service(parsed_args), owner or Owner.SYSTEM)
        if owner is not None:
            raise errors.BadRequest(
                "--owner needs the database: over HTTP, users have only their own tags"
            )
        with extras.required("api", "the tags client"):
            from steelyard.tags.http.client import SERVICE_TYPE, TagsClient  # noqa: PLC0415  (an extra)
        return TagsClient(endpoint or os_clouds.connect(cloud).adapter(SERVICE_TYPE), *who)


class _ListingTags(_AskingTags, Listing):
    """A command that lists the tags of a server."""

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Tag", "Status"

    def result(self, parsed_args: argparse.Namespace) -> Listed:
        found = self.found(self.tags(parsed_args), parsed_args)
        return Listed(
            kind="tags",
            rows=[(tag, str(found["statuses"][tag])) for tag in sorted(found["tags"])],
            summary={"server": parsed_args.server, "tags": len(found["tags"])},
        )

    @abc.abstractmethod
    def found(self, tags: Tags, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Do the command's work and return the resulting tags."""


class TagsList(_ListingTags):
    """List the tags of a server and their status."""

    examples = (
        "steelyard tags list 3d4c9b1e --os-cloud mycloud",
        "steelyard tags list 3d4c9b1e --url sqlite:////var/lib/tags.db",
    )

    def found(self, tags: Tags, parsed_args: argparse.Namespace) -> dict[str, Any]:
        return tags.list(parsed_args.server)


class TagsReplace(_ListingTags):
    """Replace all tags of a server and list the result.

    Tags with the status PENDADD are kept.
    """

    examples = (
        "steelyard tags replace 3d4c9b1e smtp always_failover --os-cloud mycloud",
        "steelyard tags replace 3d4c9b1e smtp always_failover --url sqlite:////var/lib/tags.db",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "tag", metavar="TAG", nargs="+", help="tag that the server has afterwards"
        )
        return parser

    def found(self, tags: Tags, parsed_args: argparse.Namespace) -> dict[str, Any]:
        return tags.replace(parsed_args.server, parsed_args.tag)


class TagsClear(_ListingTags):
    """Delete all tags of a server and list the remaining ones.

    Tags with the status PENDADD are kept.
    """

    examples = (
        "steelyard tags clear 3d4c9b1e --os-cloud mycloud",
        "steelyard tags clear 3d4c9b1e --url sqlite:////var/lib/tags.db",
    )

    def found(self, tags: Tags, parsed_args: argparse.Namespace) -> dict[str, Any]:
        tags.clear(parsed_args.server)
        return tags.list(parsed_args.server)


class _OneByOne(_AskingTags, Listing):
    """A command that handles tags in turn until one fails, and lists those it has handled."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("tag", metavar="TAG", nargs="+", help="name of the tag")
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Tag", "Result"

    def result(self, parsed_args: argparse.Namespace) -> Listed:
        wanted = [check_name(tag) for tag in dict.fromkeys(parsed_args.tag)]
        tags, done = self.tags(parsed_args), []
        stopped = None
        for tag in wanted:
            try:
                done.append((tag, self.act(tags, parsed_args.server, tag)))
            except errors.SteelyardError as error:
                if not done:
                    raise
                error.add_note(_unfinished(wanted, len(done)))
                stopped = error
                break
        return Listed(
            kind="tags",
            rows=done,
            summary={"server": parsed_args.server, "tags": len(wanted), "done": len(done)},
            status=0 if stopped is None else USERS_MISTAKE,
            error=stopped,
        )

    @abc.abstractmethod
    def act(self, tags: Tags, server: str, tag: str) -> str:
        """Handle the tag and return the result to list."""


class TagsAdd(_OneByOne):
    """Add tags to a server, one after the other.

    The command stops at the first tag that cannot be added.
    """

    examples = (
        "steelyard tags add 3d4c9b1e smtp always_failover --os-cloud mycloud",
        "steelyard tags add 3d4c9b1e smtp always_failover --url sqlite:////var/lib/tags.db",
    )

    def act(self, tags: Tags, server: str, tag: str) -> str:
        return "added" if tags.add(server, tag) else "unchanged"


class TagsRemove(_OneByOne):
    """Delete tags of a server, one after the other.

    The tags must be ACTIVE. The command stops at the first tag that cannot be deleted.
    """

    examples = (
        "steelyard tags remove 3d4c9b1e smtp --os-cloud mycloud",
        "steelyard tags remove 3d4c9b1e smtp --url sqlite:////var/lib/tags.db",
    )

    def act(self, tags: Tags, server: str, tag: str) -> str:
        tags.delete(server, tag)
        return "deleted"


class TagsExists(_AskingTags):
    """Show the status of a tag of a server.

    If the server does not have the tag, nothing is printed and the exit status is 1.
    """

    examples = (
        "steelyard tags exists 3d4c9b1e smtp --os-cloud mycloud",
        "steelyard tags exists 3d4c9b1e smtp --url sqlite:////var/lib/tags.db",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("tag", metavar="TAG", help="name of the tag")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        status = self.tags(parsed_args).exists(parsed_args.server, parsed_args.tag)
        if status is None:
            return TAG_MISSING
        self.app.stdout.write(f"{status}\n")
        return 0


class TagsRegister(_OnServer, OnTheDatabase, Showing):
    """Register a server of the backend, so that it can have tags.

    The backend must have an instance with the name in --name. The backend memory has no instances
    of its own and accepts every name.
    """

    examples = (
        "steelyard tags register 3d4c9b1e --name snf-1042 --project shop --user ada --url sqlite:////var/lib/tags.db",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--name", required=True, help="name of the instance at the backend")
        parser.add_argument(
            "--project", required=True, metavar="P", help="ID of the project that owns the server"
        )
        parser.add_argument(
            "--user", required=True, metavar="U", help="ID of the user who created the server"
        )
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Server", "Name", "Project", "User"

    def result(self, parsed_args: argparse.Namespace) -> Shown:
        given = (parsed_args.server, parsed_args.name, parsed_args.project, parsed_args.user)
        service = self.service(parsed_args)
        if service.backend.in_process:
            service.backend.adopt({parsed_args.name: ()})
        service.register(Instance(*given))
        return Shown(values=given)


class TagsForget(_OnServer, OnTheDatabase):
    """Forget a server, its tags and their unfinished operations.

    Nothing changes at the backend. The command is for servers that no longer exist. Their IDs and
    names can be used again.
    """

    examples = ("steelyard tags forget 3d4c9b1e --url sqlite:////var/lib/tags.db",)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.service(parsed_args).forget(parsed_args.server)


class TagsSelftest(_AskingTags, Listing):
    __doc__ = f"""Test all operations on the tags of a server.

    The command works on a live service. Its tags begin with {PREFIX} and a random number, and it
    deletes them at the end, even after a failure or an interruption. It does not touch other tags:
    it tests the replacement and the deletion of all tags only if there are no others. So name a
    server without tags, and add none to it during the test. The exit status is 0 if no step
    failed, else 1.
    """

    examples = (
        "steelyard tags selftest 3d4c9b1e --os-cloud mycloud",
        "steelyard tags selftest 3d4c9b1e --url sqlite:////var/lib/tags.db",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--timeout",
            type=float,
            default=_TIMEOUT,
            metavar="SECONDS",
            help=f"longest time until a tag is ACTIVE; default: {_TIMEOUT}",
        )
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Step", "Result", "Observed"

    def result(self, parsed_args: argparse.Namespace) -> Listed:
        timeout = parsed_args.timeout
        if not (math.isfinite(timeout) and timeout >= 0):
            raise errors.BadRequest(
                f"invalid --timeout '{timeout}': expected a number of seconds from 0 up"
            )
        tags = self.tags(parsed_args)
        if isinstance(tags, _Operating):
            tags.service.administration.refuse_wrong_backend()
        steps = list(SelfTest(tags, parsed_args.server, timeout).steps())
        results = collections.Counter(step.result for step in steps)
        return Listed(
            kind="steps",
            rows=[(step.name, step.result.value, step.what) for step in steps],
            summary={
                "server": parsed_args.server,
                **{columns.key(result.value): results[result] for result in AttemptResult},
            },
            status=SOME_FAILED if results[AttemptResult.FAILED] else 0,
        )


def _unfinished(wanted: Sequence[str], done: int) -> str:
    stopped, *left = wanted[done:]
    more = f"; not tried: {', '.join(map(repr, left))}" if left else ""
    return f"stopped at {stopped!r}{more}"
