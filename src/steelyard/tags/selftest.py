"""Every operation on tags, tried on a live service, with tags that nobody else would name so.

What is there already is never touched. Replacing and deleting all would: they are tried only where
there is nothing else.
"""

import dataclasses
import enum
import secrets
import time
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Protocol

from steelyard import errors
from steelyard.tags.states import Status

PREFIX = "steelyard-selftest-"
"""What the names of its tags begin with."""

# What has to be encoded on its way, in one place or another.
_ODD = "é ~_%2B+☃:"
_LONGEST_PAUSE = 2.0


class Tags(Protocol):
    """What is tested: a client, or what asks a database as one would."""

    def list(self, server: str) -> dict[str, Any]: ...

    def exists(self, server: str, tag: str) -> Status | None: ...

    def add(self, server: str, tag: str) -> bool: ...

    def delete(self, server: str, tag: str) -> None: ...

    def replace(self, server: str, tags: Iterable[str]) -> dict[str, Any]: ...

    def clear(self, server: str) -> None: ...


class Result(enum.StrEnum):
    """How a step has ended."""

    OK = "ok"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclasses.dataclass(frozen=True, slots=True)
class Step:
    """One thing that was tried, and what came of it."""

    name: str
    result: Result
    what: str


class _Wrong(Exception):
    """The service has done something else than it should."""


class _Skip(Exception):
    """The step would touch what is not ours."""


class SelfTest:
    """The steps, on one server. ``patience`` is how many seconds a tag may take to be ACTIVE."""

    def __init__(self, tags: Tags, server: str, patience: float) -> None:
        self._tags = tags
        self._server = server
        self._patience = patience
        self._marker = PREFIX + secrets.token_hex(4)
        self._plain, self._odd = f"{self._marker}-a", f"{self._marker}-{_ODD}"

    def steps(self) -> Iterator[Step]:
        """Tries one after the other; what comes after a failure is skipped, except tidying up."""
        failed = ""
        try:
            for name, work in self._works():
                if failed:
                    yield Step(name, Result.SKIPPED, f"{failed!r} has failed")
                    continue
                step = _tried(name, work)
                failed = name if step.result is Result.FAILED else ""
                yield step
        finally:
            last = _tried("tidy up", self._tidy_up)
        if last.result is Result.FAILED:
            hint = f"{last.what}; delete what begins with {self._marker!r}"
            last = dataclasses.replace(last, what=hint)
        yield last

    def _works(self) -> list[tuple[str, Callable[[], str]]]:
        return [
            ("list", self._list),
            ("ask for a tag that is not there", self._absent),
            ("delete a tag that is not there", self._delete_absent),
            ("add", lambda: self._add(self._plain)),
            ("add one with odd characters", lambda: self._add(self._odd)),
            ("wait until both are ACTIVE", lambda: self._wait(self._plain, self._odd)),
            ("add again", self._add_again),
            ("ask for each", self._ask_for_each),
            ("delete", self._delete),
            ("replace all", self._replace),
            ("delete all", self._clear),
        ]

    def _list(self) -> str:
        return f"tags that were there: {len(self._there())}"

    def _absent(self) -> str:
        _expect(self._tags.exists(self._server, self._plain), None, "the status of the tag")
        return "it is not"

    def _delete_absent(self) -> str:
        try:
            self._tags.delete(self._server, self._plain)
        except errors.NotFound as error:
            return f"refused: {error}"
        raise _Wrong("it says that it has done so")

    def _add(self, tag: str) -> str:
        _expect(self._tags.add(self._server, tag), True, "whether it is new")
        status = self._there().get(tag)
        if status is None:
            raise _Wrong(f"{tag!r} is not listed")
        return f"{tag!r} is {status}"

    def _add_again(self) -> str:
        _expect(self._tags.add(self._server, self._plain), False, "whether it is new")
        return "it was there already"

    def _wait(self, *tags: str) -> str:
        for there, spent in self._looks():
            gone = [tag for tag in tags if tag not in there]
            if gone:
                raise _Wrong(f"{gone[0]!r} is gone: the backend could not add it")
            waiting = [tag for tag in tags if there[tag] != Status.ACTIVE]
            if not waiting:
                return f"after {spent:.1f} s"
        raise _Wrong(f"{waiting[0]!r} is still {Status.PENDADD} after {spent:.1f} s")

    def _looks(self) -> Iterator[tuple[dict[str, str], float]]:
        """What is there, again and again while there is patience, and after how many seconds."""
        began, pause, spent = time.monotonic(), 0.05, 0.0
        yield self._there(), spent
        while spent < self._patience:
            time.sleep(min(pause, self._patience - spent))
            pause = min(2 * pause, _LONGEST_PAUSE)
            spent = time.monotonic() - began
            yield self._there(), spent

    def _ask_for_each(self) -> str:
        for tag in (self._plain, self._odd):
            _expect(self._tags.exists(self._server, tag), Status.ACTIVE, f"the status of {tag!r}")
        return f"both are {Status.ACTIVE}"

    def _delete(self) -> str:
        self._tags.delete(self._server, self._plain)
        _expect(self._tags.exists(self._server, self._plain), None, "the status of the tag")
        return "it is gone"

    def _replace(self) -> str:
        self._refuse_to_touch_others()
        wanted = sorted([self._odd, f"{self._marker}-b"])
        _expect(sorted(self._tags.replace(self._server, wanted)["tags"]), wanted, "the answer")
        self._wait(*wanted)
        return "one is new, one was there"

    def _clear(self) -> str:
        self._refuse_to_touch_others()
        self._tags.clear(self._server)
        _expect(list(self._there()), [], "the list")
        return "none is left"

    def _tidy_up(self) -> str:
        """Deletes its tags, which can be done once they are ACTIVE."""
        deleted = 0
        for there, _ in self._looks():
            mine = {tag: status for tag, status in there.items() if self._is_mine(tag)}
            active = [tag for tag, status in mine.items() if status == Status.ACTIVE]
            for tag in active:
                self._tags.delete(self._server, tag)
            deleted += len(active)
            if len(active) == len(mine):
                return f"tags deleted: {deleted}"
        raise _Wrong(f"tags that are still {Status.PENDADD}: {len(mine) - len(active)}")

    def _is_mine(self, tag: str) -> bool:
        return tag.startswith(self._marker)

    def _refuse_to_touch_others(self) -> None:
        others = [tag for tag in self._there() if not self._is_mine(tag)]
        if others:
            raise _Skip(f"other tags, which it would touch: {len(others)}")

    def _there(self) -> dict[str, str]:
        statuses: dict[str, str] = self._tags.list(self._server)["statuses"]
        return statuses


def _tried(name: str, work: Callable[[], str]) -> Step:
    try:
        return Step(name, Result.OK, work())
    except _Skip as reason:
        return Step(name, Result.SKIPPED, str(reason))
    except (errors.SteelyardError, _Wrong) as error:
        return Step(name, Result.FAILED, str(error))
    except KeyboardInterrupt:
        return Step(name, Result.FAILED, "interrupted")


def _expect(found: object, wanted: object, what: str) -> None:
    if found != wanted:
        raise _Wrong(f"{what} is {found!r:.200}, not {wanted!r:.200}")
