"""Everything that steelyard raises on purpose.

One tree: catch :class:`SteelyardError` to catch them all. Where an error answers a request of a
client, ``status`` is the HTTP status that the answer should carry.
"""

import difflib
from collections.abc import Iterable


class SteelyardError(Exception):
    """The root of the tree. Its message says what was given, what is allowed and what to do."""

    status: int | None = None


class BadRequest(SteelyardError):
    """What was asked for is malformed."""

    status = 400


class Unauthorized(SteelyardError):
    """Nobody vouches for who is asking."""

    status = 401


class NotFound(SteelyardError):
    """What was asked for is not there."""

    status = 404


class Conflict(SteelyardError):
    """What was asked for does not fit the present state."""

    status = 409


class ConcurrentUpdate(Conflict):
    """Somebody else has changed the same just now: read again, and decide again."""


class InvalidExpression(BadRequest):
    """A value of an extra spec or of aggregate metadata is malformed."""


class InvalidQuery(BadRequest):
    """A query to Placement is malformed; the message has the text and marks the place."""

    @classmethod
    def at(cls, text: str, start: int, end: int, why: str) -> "InvalidQuery":
        """The error about the characters from ``start`` on and before ``end``."""
        # What cannot be printed would move the marker, or worse.
        shown = [char if char.isprintable() else ascii(char)[1:-1] for char in text]
        before, marked = "".join(shown[:start]), "".join(shown[start:end])
        marker = " " * len(before) + "^" * max(len(marked), 1)
        return cls(f"{why}\n  {''.join(shown)}\n  {marker}")


class InvalidTrait(InvalidQuery):
    """A trait, or a query for traits, is malformed or contradicts itself."""


class InvalidConsumerType(BadRequest):
    """The name of a consumer type is malformed."""


class InvalidAllocations(BadRequest):
    """The body of a request that writes allocations is malformed; the message names the place."""


class InvalidTag(BadRequest):
    """A tag is malformed, or what a backend has is not the encoding of one."""


class InvalidMessage(BadRequest):
    """A notification about a job of a backend is malformed."""


class MicroversionTooLow(BadRequest):
    """A request cannot be expressed in the microversion that it is to be sent with."""


class InvalidServerGroup(BadRequest):
    """The description of a server group is malformed."""


class PolicyNotSupported(BadRequest):
    """A server group's policy needs a filter or a weigher that is not enabled."""


class InvalidCloud(SteelyardError):
    """The description of a cloud is malformed; the message names the file and the place."""


class ServiceError(SteelyardError):
    """A service that was asked could not answer."""

    status = 502


class CannotBeKept(ServiceError):
    """A database cannot keep what it is given, however often it is asked."""


class NoAccess(ServiceError):
    """A service cannot be asked at all: it is not reached, or it does not let us in."""


class Forbidden(NoAccess):
    """A service knows who is asking, and does not show this to them."""


class BackendRefused(ServiceError):
    """A backend of tags has said no: nothing has happened there, and nothing is kept here."""


class WrongBackend(ServiceError):
    """The database of tags belongs to another backend, or does not record which one."""

    status = 500


class OutcomeUnknown(ServiceError):
    """A backend of tags has not answered: whether it does what it was asked shows later."""

    status = 503


class PluginError(SteelyardError):
    """A plugin is missing, ambiguous or broken."""


class MissingExtra(SteelyardError):
    """An optional dependency is not installed; the message names the extra that brings it."""


def near(name: str, names: Iterable[str]) -> str:
    """The end of an error about an unknown name: what was perhaps meant."""
    names = list(names)
    matches = difflib.get_close_matches(name, names, n=3)
    if matches:
        return f"; did you mean {' or '.join(map(repr, matches))}?"
    if not names:
        return "; there is none at all"
    return f"; there are {', '.join(map(repr, names[:5]))}{' and more' if len(names) > 5 else ''}"
