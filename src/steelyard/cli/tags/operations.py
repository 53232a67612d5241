"""The commands on the tags of one server, such as ``tags list`` and ``tags add``."""

import abc
import argparse
import collections
import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from steelyard import errors
from steelyard.cli.commands import (
    SOME_FAILED,
    TAG_MISSING,
    USERS_MISTAKE,
    Listed,
    Listing,
)
from steelyard.cli.outputs import columns
from steelyard.cli.tags.sources import AskingTags, Operating
from steelyard.tags.names import check_name
from steelyard.tags.selftest import PREFIX, AttemptResult, SelfTest, Tags, pauses
from steelyard.tags.states.values import Status

if TYPE_CHECKING:
    from steelyard.tags.http.client import TagsClient

_TIMEOUT = 60.0  # seconds until a tag of the self-test is ACTIVE


def tags_of(server: str, found: Mapping[str, Any]) -> Listed:
    """Return the list of the tags of one server."""
    return Listed(
        kind="tags",
        rows=[(tag, str(found["statuses"][tag])) for tag in sorted(found["tags"])],
        summary={"server": server, "tags": len(found["tags"])},
    )


class _ListingTags(AskingTags, Listing):
    """A command that lists the tags of a server."""

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Tag", "Status"

    def result(self, parsed_args: argparse.Namespace) -> Listed:
        return tags_of(parsed_args.server, self.found(self.tags(parsed_args), parsed_args))

    @abc.abstractmethod
    def found(self, tags: Tags, parsed_args: argparse.Namespace) -> dict[str, Any]:
        """Do the command's work and return the resulting tags."""


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


class _OneByOne(AskingTags, Listing):
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

    The command stops at the first tag that cannot be added. With --wait, it then waits until all
    tags are ACTIVE. If the backend cannot add one, or not in time, the exit status is 1.
    """

    examples = (
        "steelyard tags add 3d4c9b1e smtp always_failover --wait --os-cloud mycloud",
        "steelyard tags add 3d4c9b1e smtp always_failover --url sqlite:////var/lib/tags.db",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--wait", action="store_true", help="wait until the backend has added the tags"
        )
        _add_timeout(parser, "with --wait: ")
        return parser

    def result(self, parsed_args: argparse.Namespace) -> Listed:
        timeout = _timeout(parsed_args)
        listed = super().result(parsed_args)
        if not parsed_args.wait or listed.error is not None:
            return listed
        tags, server = self.tags(parsed_args), parsed_args.server
        waiting, failed = [tag for tag, _ in listed.rows], dict[str, errors.SteelyardError]()
        for _ in pauses(timeout):
            waiting = [tag for tag in waiting if _is_pending(tags, server, tag, failed)]
            if not waiting:
                break
        for tag in waiting:
            failed[tag] = errors.SteelyardError(
                f"tag {tag!r} is still {Status.PENDADD} after {timeout:g} s; see whether "
                f"'steelyard tags watch' runs"
            )
        if not failed:
            return dataclasses.replace(listed, rows=[(tag, "active") for tag, _ in listed.rows])
        first, *others = failed.values()
        for other in others:
            first.add_note(str(other))
        rows = [
            (tag, "pending" if tag in waiting else "failed" if tag in failed else "active")
            for tag, _ in listed.rows
        ]
        return dataclasses.replace(listed, rows=rows, status=SOME_FAILED, error=first)

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


class TagsExists(AskingTags):
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


class TagsSelftest(AskingTags, Listing):
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
        _add_timeout(parser)
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Step", "Result", "Observed"

    def result(self, parsed_args: argparse.Namespace) -> Listed:
        timeout = _timeout(parsed_args)
        tags = self.tags(parsed_args)
        if isinstance(tags, Operating):
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


def _add_timeout(parser: argparse.ArgumentParser, condition: str = "") -> None:
    parser.add_argument(
        "--timeout",
        type=float,
        default=_TIMEOUT,
        metavar="SECONDS",
        help=f"{condition}longest time until a tag is ACTIVE; default: {_TIMEOUT}",
    )


def _timeout(parsed_args: argparse.Namespace) -> float:
    timeout: float = parsed_args.timeout
    if not (math.isfinite(timeout) and timeout >= 0):
        raise errors.BadRequest(
            f"invalid --timeout '{timeout}': expected a number of seconds from 0 up"
        )
    return timeout


def _is_pending(
    tags: "Operating | TagsClient", server: str, tag: str, failed: dict[str, errors.SteelyardError]
) -> bool:
    """Return whether the tag is PENDADD; if it is missing, add the reason to ``failed``."""
    try:
        return tags.status(server, tag) is Status.PENDADD
    except errors.NotFound as error:
        failed[tag] = error
        return False


def _unfinished(wanted: Sequence[str], done: int) -> str:
    stopped, *left = wanted[done:]
    more = f"; not tried: {', '.join(map(repr, left))}" if left else ""
    return f"stopped at {stopped!r}{more}"
