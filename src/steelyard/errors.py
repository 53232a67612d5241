"""The errors that steelyard raises, in one tree.

Catch :class:`SteelyardError` to catch them all. Where an error answers an HTTP request, ``status``
is the status code of the response.
"""

from typing import Self

from steelyard.text.escapes import printable

__all__ = [
    "AdditionFailed",
    "BackendRefused",
    "BackendUnreachable",
    "BadRequest",
    "CannotBeKept",
    "ConcurrentUpdate",
    "Conflict",
    "Forbidden",
    "InvalidAllocations",
    "InvalidCloud",
    "InvalidConsumerType",
    "InvalidExpression",
    "InvalidMessage",
    "InvalidProvider",
    "InvalidQuery",
    "InvalidServerGroup",
    "InvalidTag",
    "InvalidTrait",
    "MicroversionTooLow",
    "MissingExtra",
    "NoAccess",
    "NotFound",
    "OutcomeUnknown",
    "OverCapacity",
    "OverQuota",
    "PluginError",
    "PolicyNotSupported",
    "ServiceError",
    "SteelyardError",
    "TransactionAborted",
    "Unauthorized",
    "UnsupportedMicroversion",
    "UpgradeNeeded",
    "WrongBackend",
]

_SHOWN = 60
"""Characters of a long text that an error shows on each side of the marked ones."""

_MARKED = 300
"""The most characters that are marked; the longest name has 255."""


class SteelyardError(Exception):
    """The base class of all errors of steelyard.

    ``message`` says what failed, why, and what to do. If a text is invalid, ``text`` is that text
    and ``position`` the start and the end of its invalid part; otherwise, both are None.
    """

    status: int | None = None

    def __init__(
        self, message: str = "", text: object = None, position: tuple[int, int] | None = None
    ) -> None:
        """Initialise the error.

        ``text`` may be any invalid value; a value that is not text is not kept. Without a
        ``position``, the whole text is invalid.
        """
        super().__init__(message)
        self.message = message
        self.text = text if isinstance(text, str) else None
        self.position = (0, len(text)) if position is None and isinstance(text, str) else position

    def __str__(self) -> str:
        return self.message


class BadRequest(SteelyardError):
    """A malformed request, or a malformed value in a request."""

    status = 400


class Unauthorized(SteelyardError):
    """A request from a caller who is not authenticated."""

    status = 401


class NotFound(SteelyardError):
    """A request for an object that does not exist."""

    status = 404


class AdditionFailed(NotFound):
    """A tag that is missing because the backend could not add it."""


class Conflict(SteelyardError):
    """A request that conflicts with the present state."""

    status = 409


class ConcurrentUpdate(Conflict):
    """A change to an object that another caller has changed meanwhile; read it again and retry."""


class OverCapacity(Conflict):
    """Allocations that exceed a resource provider's inventory, or its limits for one consumer."""


class OverQuota(SteelyardError):
    """A request that would exceed the limit of a project."""

    status = 403


class InvalidExpression(BadRequest):
    """A malformed value of an extra spec or of aggregate metadata."""


class InvalidQuery(BadRequest):
    """A malformed query to Placement.

    If the error is given a position, it prints the text with the invalid part marked; otherwise,
    the message quotes the text.
    """

    def __init__(
        self, message: str = "", text: object = None, position: tuple[int, int] | None = None
    ) -> None:
        super().__init__(message, text, position)
        self._marked = position is not None

    def named(self, name: str) -> Self:
        """Return a copy whose message begins with the name of an argument or an option."""
        position = self.position if self._marked else None
        return type(self)(f"{name}: {self.message}", self.text, position)

    def __str__(self) -> str:
        if self.text is None or self.position is None or not self._marked:
            return self.message
        start, end = self.position
        # A long text is cut: it would fill the terminal or the log.
        first, end = max(start - _SHOWN, 0), min(end, start + _MARKED)
        last = end + _SHOWN
        before = ("…" if first else "") + printable(self.text[first:start])
        marked = printable(self.text[start:end])
        after = printable(self.text[end:last]) + ("…" if last < len(self.text) else "")
        marker = " " * len(before) + "^" * max(len(marked), 1)
        return f"{self.message}\n  {before}{marked}{after}\n  {marker}"


class InvalidTrait(InvalidQuery):
    """A malformed trait, or a malformed or contradictory query for traits."""


class InvalidProvider(InvalidQuery):
    """A malformed resource provider, or resource providers that form no trees."""


class InvalidConsumerType(BadRequest):
    """A malformed name of a consumer type."""


class InvalidAllocations(BadRequest):
    """A malformed body of a request that writes allocations.

    The message begins with the place of the malformed part.
    """


class InvalidTag(BadRequest):
    """A malformed name of a tag, or a backend's tag that is not the encoding of a name."""


class InvalidMessage(BadRequest):
    """A malformed notification about a backend's job."""


class MicroversionTooLow(BadRequest):
    """A request that needs a higher microversion than the one to be used."""


class UnsupportedMicroversion(BadRequest):
    """A request for a microversion that does not exist.

    ``oldest`` and ``newest`` are the ends of the supported range.
    """

    status = 406

    def __init__(
        self, message: str = "", text: object = None, *, oldest: str = "", newest: str = ""
    ) -> None:
        super().__init__(message, text)
        self.oldest = oldest
        self.newest = newest


class InvalidServerGroup(BadRequest):
    """A malformed description of a server group."""


class PolicyNotSupported(BadRequest):
    """A server group policy whose filter or weigher is not enabled, or has no effect."""


class InvalidCloud(SteelyardError):
    """A cloud file that cannot be read or saved, or whose content is malformed.

    ``file`` is the name of the file. ``path`` has the keys and list indices that lead to the
    invalid entry, and ``line`` is its line in the file, if they are known. The error prints as
    ``file:line: where: message``; ``where`` is the path with dots, unless it is set.
    """

    def __init__(
        self,
        message: str = "",
        file: str = "",
        *,
        line: int | None = None,
        path: tuple[str, ...] = (),
        text: object = None,
    ) -> None:
        super().__init__(message, text)
        self.file = file
        self.line = line
        self.path = path
        self.where = ".".join(path)

    def __str__(self) -> str:
        place = self.file if self.line is None else f"{self.file}:{self.line}"
        where = f" {self.where}:" if self.where else ""
        return f"{place}:{where} {self.message}"


class ServiceError(SteelyardError):
    """A request that a service failed to answer."""

    status = 502


class CannotBeKept(ServiceError):
    """A value that a database cannot store; a retry does not help."""


class NoAccess(ServiceError):
    """A service that is unreachable or rejects the credentials."""


class Forbidden(NoAccess):
    """A request that a service does not permit to this caller."""


class UpgradeNeeded(ServiceError):
    """A database whose tables, or whose SQLite file, are missing or outdated."""

    status = 503


class TransactionAborted(ServiceError):
    """A transaction that the database aborted, for example because of a deadlock; retry it."""

    status = 503


class BackendRefused(ServiceError):
    """An operation that a tag backend refused; it was neither applied nor recorded."""


class BackendUnreachable(BackendRefused):
    """An operation whose tag backend is unreachable; it was neither applied nor recorded."""

    status = 503


class WrongBackend(ServiceError):
    """A tag database that belongs to another backend, or does not record its backend."""

    status = 500


class OutcomeUnknown(ServiceError):
    """An operation that a tag backend has not answered; the backend may still apply it."""

    status = 503


class PluginError(SteelyardError):
    """A plugin that is missing, ambiguous or broken; ``hint`` lists the installed ones.

    ``text`` is the name of a missing or ambiguous plugin.
    """

    def __init__(self, message: str = "", hint: str = "", text: object = None) -> None:
        super().__init__(message, text)
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class MissingExtra(SteelyardError):
    """An optional dependency that is not installed.

    The message names the extra and the command that installs it.
    """
