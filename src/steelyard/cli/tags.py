"""steelyard tags list|add|remove|replace|clear|exists|register|forget|selftest"""

import abc
import argparse
import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from steelyard import conf as options
from steelyard import errors, extras
from steelyard.cli import os_clouds
from steelyard.cli.app import NOT_THERE, SOME_FAILED, USERS_MISTAKE, Action, Listing, Showing
from steelyard.cli.consumers import existing
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.names import Owner, check_name
from steelyard.tags.selftest import PREFIX, Result, SelfTest, Step, Tags
from steelyard.tags.states import Instance, Status

if TYPE_CHECKING:
    from oslo_config import cfg

    from steelyard.tags.service import TagService
    from steelyard.tags.store import TagStore


class _Operating:
    """Asks the database as a client asks over HTTP; whatever the project, as the operator may."""

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
        self._settle()
        return new

    def delete(self, server: str, tag: str) -> None:
        self.service.delete(self._operator, server, tag)
        self._settle()

    def replace(self, server: str, tags: Iterable[str]) -> dict[str, Any]:
        self.service.replace(self._operator, server, tags)
        self._settle()
        return self.list(server)

    def clear(self, server: str) -> None:
        self.service.clear(self._operator, server)
        self._settle()

    def _settle(self) -> None:
        """Backends of other kinds are there when this process has ended, and so are their jobs."""
        if isinstance(self.service.backend, MemoryBackend):
            self.service.poll()


class _OnServer(Action):
    """A command on one server."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("server", metavar="SERVER", help="its id")
        return parser


class _UsingDatabase(Action):
    """A command that can use the database."""

    def service(
        self, parsed_args: argparse.Namespace, conf: "cfg.ConfigOpts | None" = None
    ) -> "TagService":
        """Return the service over the database at the URL, or over the configured one.

        Another configuration than that of the command line can be given.
        """
        with extras.required("sql", "the tag service"):
            from steelyard.tags import configured  # noqa: PLC0415  (an extra)
        service = configured.service(*self._database(parsed_args, conf))
        self.opened.enter_context(service.store)
        return service

    def store(self, parsed_args: argparse.Namespace) -> "TagStore":
        """Return the store alone, in the same database."""
        with extras.required("sql", "the tag store"):
            from steelyard.tags import configured  # noqa: PLC0415  (an extra)
        return self.opened.enter_context(configured.store(*self._database(parsed_args)))

    def _database(
        self, parsed_args: argparse.Namespace, conf: "cfg.ConfigOpts | None" = None
    ) -> "tuple[cfg.ConfigOpts, str | None]":
        conf, url = conf or self.configuration(), parsed_args.url
        if url is None and options.register_tags(conf).connection is None:
            raise errors.BadRequest(
                f"no service of tags is named: name its database with --url, or a --config-file "
                f"with connection in [{options.TAGS_GROUP}]{self.otherwise}"
            )
        return conf, None if url is None else existing(url)

    otherwise = ""
    """What else can be named."""


class OnTheDatabase(_UsingDatabase):
    """A command of the operator's, on the database and on no other service of tags."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--url",
            help="the database, as a URL of SQLAlchemy's without a password; without it, "
            f"connection in [{options.TAGS_GROUP}] of a --config-file",
        )
        return parser


class _AskingTags(_OnServer, _UsingDatabase):
    """A command that asks over HTTP as a user, or the database as the operator."""

    otherwise = "; or ask over HTTP, with --os-cloud, or with --endpoint, --project and --user"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        source = parser.add_mutually_exclusive_group()
        source.add_argument(
            "--os-cloud",
            metavar="NAME",
            help="ask over HTTP, as the user of a cloud of clouds.yaml, by a token",
        )
        source.add_argument(
            "--endpoint",
            metavar="URL",
            help="ask over HTTP, as a user: the address of a service that trusts this machine",
        )
        source.add_argument(
            "--url",
            help="ask the database, as the operator: a URL of SQLAlchemy's without a password; "
            f"without it, connection in [{options.TAGS_GROUP}] of a --config-file",
        )
        parser.add_argument("--project", metavar="P", help="with --endpoint: the user's project")
        parser.add_argument("--user", metavar="U", help="with --endpoint: the user")
        parser.add_argument(
            "--owner",
            choices=sorted(Owner),
            help=f"in the database: whose tags are meant; {Owner.SYSTEM} unless given",
        )
        return parser

    def tags(self, parsed_args: argparse.Namespace) -> Tags:
        """What to ask."""
        cloud, endpoint, owner = parsed_args.os_cloud, parsed_args.endpoint, parsed_args.owner
        who = (parsed_args.project, parsed_args.user)
        if endpoint is None and who != (None, None):
            raise errors.BadRequest("--project and --user say who asks --endpoint: name it too")
        if endpoint is not None and None in who:
            raise errors.BadRequest("--endpoint has to be told who asks: add --project and --user")
        if cloud is None and endpoint is None:
            return _Operating(self.service(parsed_args), owner or Owner.SYSTEM)
        if owner is not None:
            raise errors.BadRequest(
                "--owner is for the operator, with --url: users have no tags but their own"
            )
        with extras.required("api", "the tags client"):
            from steelyard.tags.client import SERVICE_TYPE, TagsClient  # noqa: PLC0415  (an extra)
        return TagsClient(endpoint or os_clouds.adapter(cloud, SERVICE_TYPE), *who)


class TagsList(_AskingTags, Listing):
    """List the tags of a server, and the status of each."""

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Tag", "Status"

    def content(self, parsed_args: argparse.Namespace) -> Any:
        return _rows(self.tags(parsed_args).list(parsed_args.server))


class TagsReplace(_AskingTags, Listing):
    """Have the tags of a server be these, and list what they are then.

    Tags that are still PENDADD stay beside them.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("tag", metavar="TAG", nargs="+", help="those that are to be there")
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Tag", "Status"

    def content(self, parsed_args: argparse.Namespace) -> Any:
        return _rows(self.tags(parsed_args).replace(parsed_args.server, parsed_args.tag))


class TagsClear(_AskingTags, Listing):
    """Delete all tags of a server, and list those that are left.

    Tags that are still PENDADD are left.
    """

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Tag", "Status"

    def content(self, parsed_args: argparse.Namespace) -> Any:
        tags = self.tags(parsed_args)
        tags.clear(parsed_args.server)
        return _rows(tags.list(parsed_args.server))


class _OneByOne(_AskingTags, Listing):
    """Does something to each of several tags, until that fails; what is done is listed."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("tag", metavar="TAG", nargs="+", help="its name; there can be several")
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Tag", "Result"

    def run(self, parsed_args: argparse.Namespace) -> int:
        self._stopped: errors.SteelyardError | None = None
        status = super().run(parsed_args)
        return status if self._stopped is None else self.end(self._stopped, USERS_MISTAKE)

    def content(self, parsed_args: argparse.Namespace) -> Any:
        wanted = [check_name(tag) for tag in dict.fromkeys(parsed_args.tag)]
        tags, done = self.tags(parsed_args), []
        for tag in wanted:
            try:
                done.append((tag, self.act(tags, parsed_args.server, tag)))
            except errors.SteelyardError as error:
                if not done:
                    raise
                self._stopped = errors.SteelyardError(f"{error}\n{_unfinished(wanted, len(done))}")
                break
        return done

    @abc.abstractmethod
    def act(self, tags: Tags, server: str, tag: str) -> str:
        """Does it; what has become of the tag."""


class TagsAdd(_OneByOne):
    """Add tags to a server, one after the other.

    If one cannot be added, those after it are not tried.
    """

    def act(self, tags: Tags, server: str, tag: str) -> str:
        return "added" if tags.add(server, tag) else "there already"


class TagsRemove(_OneByOne):
    """Delete tags of a server, one after the other. They must be ACTIVE.

    If one cannot be deleted, those after it are not tried.
    """

    def act(self, tags: Tags, server: str, tag: str) -> str:
        tags.delete(server, tag)
        return "deleted"


class TagsExists(_AskingTags):
    """Say the status of a tag of a server. The exit status is 1 if it is not there."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("tag", metavar="TAG", help="its name")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        status = self.tags(parsed_args).exists(parsed_args.server, parsed_args.tag)
        if status is None:
            return NOT_THERE
        self.app.stdout.write(f"{status}\n")
        return 0


class TagsRegister(_OnServer, OnTheDatabase, Showing):
    """Keep a server that the backend has already, so that it can have tags.

    A backend that is only in memory takes it over.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--name", required=True, help="what the backend calls it")
        parser.add_argument("--project", required=True, metavar="P", help="whose it is")
        parser.add_argument("--user", required=True, metavar="U", help="who has created it")
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Server", "Name", "Project", "User"

    def content(self, parsed_args: argparse.Namespace) -> Any:
        given = (parsed_args.server, parsed_args.name, parsed_args.project, parsed_args.user)
        self.service(parsed_args).register(Instance(*given))
        return given


class TagsForget(_OnServer, OnTheDatabase):
    """Forget a server, its tags and their unfinished operations; the backend changes nothing.

    For a server that is no longer there. Its id and its name can be used again.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.service(parsed_args).store.forget(parsed_args.server)


class TagsSelftest(_AskingTags, Listing):
    __doc__ = f"""Try every operation on the tags of a server, on a live service, and report.

    Its own tags begin with {PREFIX} and a random number; it deletes them when it ends, even when a
    step has failed or it was interrupted. It touches no others: replacing all and deleting all are
    tried only where there are none, so give it a server without tags, and let nobody else set any
    meanwhile. The exit status is 0 if no step has failed, else 1.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--timeout",
            type=float,
            default=60.0,
            metavar="SECONDS",
            help="how long a tag may take to be ACTIVE; %(default)s unless given",
        )
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Step", "Result", "What"

    def run(self, parsed_args: argparse.Namespace) -> int:
        self._steps: list[Step] = []
        status = super().run(parsed_args)
        failed = any(step.result is Result.FAILED for step in self._steps)
        return status or (SOME_FAILED if failed else 0)

    def content(self, parsed_args: argparse.Namespace) -> Any:
        timeout = parsed_args.timeout
        if not (math.isfinite(timeout) and timeout >= 0):
            raise errors.BadRequest(f"--timeout {timeout} is no number of seconds")
        tags = self.tags(parsed_args)
        if isinstance(tags, _Operating):
            tags.service.refuse_wrong_backend()
        test = SelfTest(tags, parsed_args.server, timeout)
        self._steps.extend(test.steps())
        return [(step.name, step.result.value, step.what) for step in self._steps]


def _rows(found: dict[str, Any]) -> list[tuple[str, str]]:
    return [(tag, str(found["statuses"][tag])) for tag in sorted(found["tags"])]


def _unfinished(wanted: Sequence[str], done: int) -> str:
    stopped, *left = wanted[done:]
    more = f"; not tried: {', '.join(map(repr, left))}" if left else ""
    return f"steelyard: stopped at {stopped!r}{more}"
