"""Names of tags, who owns them, and which of them do not go together."""

import dataclasses
import enum
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator

from steelyard import errors

LONGEST = 60
"""Characters in a name."""

MOST = 50
"""Tags that a user can have on one instance."""

_PREFIX = re.compile(r"[A-Za-z0-9.:-]{0,63}:")
# Control characters; and lone surrogates, which UTF-8 has no bytes for.
_FORBIDDEN_CATEGORIES = frozenset({"Cc", "Cs"})


class Owner(enum.StrEnum):
    """Whose tags are meant: what users set, or what the service keeps for itself."""

    USER = "user"
    SYSTEM = "system"


@dataclasses.dataclass(frozen=True, slots=True)
class Prefixes:
    """What stands in front of the tags of each owner, at the backend and in the database."""

    user: str = "cyclades:user:"
    system: str = "cyclades:system:"

    def __post_init__(self) -> None:
        for prefix in self:
            if not _PREFIX.fullmatch(prefix):
                raise errors.BadRequest(
                    f"{prefix!r:.100} is no prefix of tags; it is up to 64 of A-Z, a-z, 0-9, ., - "
                    f"and :, and ends in :"
                )
        for one, other in ((self.user, self.system), (self.system, self.user)):
            if other.startswith(one):
                raise errors.BadRequest(
                    f"the prefix {one!r} begins the prefix {other!r}; whose a tag is would not be "
                    f"clear"
                )

    def __iter__(self) -> Iterator[str]:
        return iter((self.user, self.system))

    def of(self, owner: Owner) -> str:
        """The prefix of the owner's tags."""
        return self.user if owner is Owner.USER else self.system


DEFAULT_PREFIXES = Prefixes()


def check_name(name: object) -> str:
    """The name as it is, code point for code point; InvalidTag if no tag can be called so."""
    if not isinstance(name, str):
        raise errors.InvalidTag(f"{name!r:.100} is no tag; a tag is text")
    why = _why_not(name)
    if why:
        raise errors.InvalidTag(
            f"{name!r:.100} is no tag: {why}; a tag is 1 to {LONGEST} characters without / and , "
            f"and without control characters, and not only white space"
        )
    return name


def _why_not(name: str) -> str:
    if not 1 <= len(name) <= LONGEST:
        return f"it has {len(name)} characters"
    for char in name:
        if char in "/,":
            return f"it has {char!r} in it"
        if unicodedata.category(char) in _FORBIDDEN_CATEGORIES:
            return f"it has the character {char!a} in it"
    return "it is only white space" if name.isspace() else ""


@dataclasses.dataclass(frozen=True, slots=True)
class Clashes:
    """Groups of names of which an instance has at most one from each."""

    groups: tuple[frozenset[str], ...] = ()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> "Clashes":
        """From texts such as ``high-availability, high-performance``."""
        groups = []
        for text in texts:
            names = [check_name(part.strip()) for part in text.split(",")]
            if len(set(names)) < 2:
                raise errors.BadRequest(
                    f"{text!r:.200} names no tags that clash; write two or more different ones, "
                    f"with commas between"
                )
            groups.append(frozenset(names))
        return cls(tuple(groups))

    def between(self, name: str, others: Collection[str]) -> str | None:
        """One of the others that the name does not go together with."""
        found = {
            other
            for group in self.groups
            if name in group
            for other in group
            if other != name and other in others
        }
        return min(found, default=None)

    def within(self, names: Collection[str]) -> tuple[str, str] | None:
        """Two of the names that do not go together."""
        for name in sorted(names):
            other = self.between(name, names)
            if other is not None:
                return name, other
        return None


NO_CLASHES = Clashes()
