"""A test of a live tag service: every operation on tags, with randomly named tags.

Other tags of the server are never changed: the steps that replace or delete all tags are skipped if
the server has others.
"""

import dataclasses
import enum
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from steelyard import errors
from steelyard.tags.states.values import Status

PREFIX = "steelyard-selftest-"
"""The beginning of the names of the test's tags."""

# Characters that URLs, HTTP headers or the backend encode.
_SPECIAL = "é ~_%2B+☃:"
_LONGEST_PAUSE = 2.0


class Tags(Protocol):
    """The operations under test: a client, or an object with the same methods over a database."""

    def list(self, server: str) -> dict[str, Any]: ...

    def exists(self, server: str, tag: str) -> Status | None: ...

    def add(self, server: str, tag: str) -> bool: ...

    def delete(self, server: str, tag: str) -> None: ...

    def replace(self, server: str, tags: Iterable[str]) -> dict[str, Any]: ...

    def clear(self, server: str) -> None: ...


class AttemptResult(enum.StrEnum):
    """The result of one step."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclasses.dataclass(frozen=True, slots=True)
class Attempt:
    """A step of the test, with its result and details of it."""

    name: str
    result: AttemptResult
    what: str


class _Wrong(Exception):
    """An unexpected answer of the service."""


class _Skip(Exception):
    """A step that would touch other tags of the server."""


def pauses(timeout: float) -> Iterator[float]:
    """Yield the seconds so far, after pauses of increasing length, until the timeout."""
    began, pause, spent = time.monotonic(), 0.05, 0.0
    yield spent
    while spent < timeout:
        time.sleep(min(pause, timeout - spent))
        pause = min(2 * pause, _LONGEST_PAUSE)
        spent = time.monotonic() - began
        yield spent


class SelfTest:
    """The test of one server.

    ``patience`` is the number of seconds to wait until tags are ACTIVE.
    """

    def __init__(self, tags: Tags, server: str, patience: float) -> None:
        self._tags = tags
        self._server = server
        self._patience = patience
        self._marker = PREFIX + secrets.token_hex(4)
        self._plain, self._special = f"{self._marker}-a", f"{self._marker}-{_SPECIAL}"

    def steps(self) -> Iterator[Attempt]:
        """Run and yield each step; after a failure, skip all steps but the cleaning up."""
        failed = ""
        try:
            for name, work in self._works():
                if failed:
                    yield Attempt(name, AttemptResult.SKIPPED, f"step {failed!r} failed")
                    continue
                step = _tried(name, work)
                failed = name if step.result is AttemptResult.FAILED else ""
                yield step
        finally:
            last = _tried("clean up", self._clean_up)
        if last.result is AttemptResult.FAILED:
            hint = f"{last.what}; delete the tags that begin with {self._marker!r}"
            last = dataclasses.replace(last, what=hint)
        yield last

    def _works(self) -> list[tuple[str, Callable[[], str]]]:
        return [
            ("list", self._list),
            ("get a missing tag", self._absent),
            ("delete a missing tag", self._delete_absent),
            ("add", lambda: self._add(self._plain)),
            ("add one with special characters", lambda: self._add(self._special)),
            ("wait until both are ACTIVE", lambda: self._wait(self._plain, self._special)),
            ("add again", self._add_again),
            ("get each", self._get_each),
            ("delete", self._delete),
            ("replace all", self._replace),
            ("delete all", self._clear),
        ]

    def _list(self) -> str:
        return f"tags: {len(self._listed())}"

    def _absent(self) -> str:
        _expect(self._tags.exists(self._server, self._plain), None, "status")
        return "not found"

    def _delete_absent(self) -> str:
        try:
            self._tags.delete(self._server, self._plain)
        except errors.NotFound as error:
            return f"rejected: {error}"
        raise _Wrong("the service reports success, expected an error")

    def _add(self, tag: str) -> str:
        _expect(self._tags.add(self._server, tag), True, "answer")
        status = self._listed().get(tag)
        if status is None:
            raise _Wrong(f"{tag!r} is missing in the list")
        return f"{tag!r} is {status}"

    def _add_again(self) -> str:
        _expect(self._tags.add(self._server, self._plain), False, "answer")
        return "already present"

    def _wait(self, *tags: str) -> str:
        for there, spent in self._polls():
            missing = [tag for tag in tags if tag not in there]
            if missing:
                raise _Wrong(f"{missing[0]!r} is missing: the backend could not add it")
            waiting = [tag for tag in tags if there[tag] != Status.ACTIVE]
            if not waiting:
                return f"after {spent:.1f} s"
        raise _Wrong(f"{waiting[0]!r} is still {Status.PENDADD} after {spent:.1f} s")

    def _polls(self) -> Iterator[tuple[dict[str, str], float]]:
        """Yield the tags with their statuses and the seconds so far, until the timeout."""
        return ((self._listed(), spent) for spent in pauses(self._patience))

    def _get_each(self) -> str:
        for tag in (self._plain, self._special):
            _expect(self._tags.exists(self._server, tag), Status.ACTIVE, f"status of {tag!r}")
        return f"both are {Status.ACTIVE}"

    def _delete(self) -> str:
        self._tags.delete(self._server, self._plain)
        _expect(self._tags.exists(self._server, self._plain), None, "status")
        return "deleted"

    def _replace(self) -> str:
        self._skip_if_others()
        wanted = sorted([self._special, f"{self._marker}-b"])
        _expect(sorted(self._tags.replace(self._server, wanted)["tags"]), wanted, "answer")
        self._wait(*wanted)
        return "added: 1, kept: 1"

    def _clear(self) -> str:
        self._skip_if_others()
        self._tags.clear(self._server)
        _expect(list(self._listed()), [], "list")
        return "no tags left"

    def _clean_up(self) -> str:
        """Delete the test's tags, each as soon as it is ACTIVE."""
        deleted = 0
        for there, _ in self._polls():
            mine = {tag: status for tag, status in there.items() if self._is_mine(tag)}
            active = [tag for tag, status in mine.items() if status == Status.ACTIVE]
            for tag in active:
                self._tags.delete(self._server, tag)
            deleted += len(active)
            if len(active) == len(mine):
                return f"tags deleted: {deleted}"
        raise _Wrong(f"tags still {Status.PENDADD}: {len(mine) - len(active)}")

    def _is_mine(self, tag: str) -> bool:
        return tag.startswith(self._marker)

    def _skip_if_others(self) -> None:
        others = [tag for tag in self._listed() if not self._is_mine(tag)]
        if others:
            raise _Skip(f"the step would change other tags: {len(others)}")

    def _listed(self) -> dict[str, str]:
        statuses: dict[str, str] = self._tags.list(self._server)["statuses"]
        return statuses


def _tried(name: str, work: Callable[[], str]) -> Attempt:
    try:
        return Attempt(name, AttemptResult.OK, work())
    except _Skip as reason:
        return Attempt(name, AttemptResult.SKIPPED, str(reason))
    except (errors.SteelyardError, _Wrong) as error:
        return Attempt(name, AttemptResult.FAILED, str(error))
    except KeyboardInterrupt:
        return Attempt(name, AttemptResult.FAILED, "interrupted")


def _expect(found: object, wanted: object, what: str) -> None:
    if found != wanted:
        raise _Wrong(f"{what} is {found!r:.200}, expected {wanted!r:.200}")
