"""Names of tags, their owners, and incompatible names."""

import dataclasses
import enum
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping

from steelyard import errors

LONGEST = 60
"""The greatest length of a name, in characters."""

MOST = 50
"""The greatest number of tags that a user can have on one instance."""

LONGEST_SERVER_ID = 64
SERVER_ID = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._-]{{0,{LONGEST_SERVER_ID - 1}}}")
"""Valid ids of servers. No decoding or normalisation of a URL changes them."""

_PREFIX = re.compile(r"[A-Za-z0-9.:-]{0,63}:")
# Control characters, and lone surrogates, which UTF-8 cannot encode.
_FORBIDDEN_CATEGORIES = frozenset({"Cc", "Cs"})


class Owner(enum.StrEnum):
    """The owner of tags: users, or the system itself."""

    USER = "user"
    SYSTEM = "system"


@dataclasses.dataclass(frozen=True, slots=True)
class Prefixes:
    """The prefixes of each owner's tags, at the backend and in the database."""

    user: str = "cyclades:user:"
    system: str = "cyclades:system:"

    def __post_init__(self) -> None:
        for prefix in self:
            if not _PREFIX.fullmatch(prefix):
                raise errors.BadRequest(
                    f"invalid tag prefix {prefix!r:.100}: expected up to 64 of A-Z, a-z, 0-9, ., "
                    f"- and :, ending in :",
                    prefix,
                )
        for one, other in ((self.user, self.system), (self.system, self.user)):
            if other.startswith(one):
                raise errors.BadRequest(
                    f"ambiguous tag prefixes {one!r} and {other!r}: expected that neither begins "
                    f"with the other"
                )

    def __iter__(self) -> Iterator[str]:
        return iter((self.user, self.system))

    def of(self, owner: Owner) -> str:
        """Return the prefix of the owner's tags; raise ValueError for an unknown owner."""
        return self.user if Owner(owner) is Owner.USER else self.system


DEFAULT_PREFIXES = Prefixes()


def check_name(name: object) -> str:
    """Return the name unchanged; raise InvalidTag if it is invalid."""
    if not isinstance(name, str):
        raise errors.InvalidTag(f"invalid tag {name!r:.100}: expected text")
    if not 1 <= len(name) <= LONGEST:
        raise _invalid(name, f"it has {len(name)} characters", (min(LONGEST, len(name)), len(name)))
    for index, char in enumerate(name):
        if char in "/,":
            raise _invalid(name, f"it contains {char!r}", (index, index + 1))
        if unicodedata.category(char) in _FORBIDDEN_CATEGORIES:
            raise _invalid(name, f"it contains the character {char!a}", (index, index + 1))
    if name.isspace():
        raise _invalid(name, "it is white space", (0, len(name)))
    return name


def check_names(names: Iterable[str]) -> list[str]:
    """Return the names unchanged; raise InvalidTag if one is invalid.

    Raises BadRequest for a string, which would otherwise be read as a list of its characters.
    """
    if isinstance(names, str):
        raise errors.BadRequest(f"invalid list of tags {names!r:.100}: expected a list", names)
    return [check_name(name) for name in names]


def _invalid(name: str, why: str, position: tuple[int, int]) -> errors.InvalidTag:
    return errors.InvalidTag(
        f"invalid tag {name!r:.100}: {why}; expected 1 to {LONGEST} characters, not all white "
        f"space, without / , and control characters",
        name,
        position,
    )


def check_server_id(text: str) -> str:
    """Return the id of a server, or raise BadRequest if no URL can address a server by it."""
    if not SERVER_ID.fullmatch(text):
        raise errors.BadRequest(invalid_server("id", text, LONGEST_SERVER_ID), text)
    return text


_CALLED = {"id": "server id", "name": "instance name"}


def invalid_server(field: str, value: object, longest: int) -> str:
    """Return the message about an invalid id or name of a server."""
    return (
        f"invalid {_CALLED[field]} {value!r:.100}: expected 1 to {longest} of A-Z, a-z, 0-9, ., _ "
        f"and -, beginning with a letter or a digit"
    )


@dataclasses.dataclass(frozen=True, slots=True)
class Clashes:
    """Groups of incompatible names: an instance has at most one name of each group."""

    groups: tuple[frozenset[str], ...] = ()

    @classmethod
    def parse(cls, texts: Iterable[str]) -> "Clashes":
        """Return the groups in texts such as ``high-availability, high-performance``."""
        groups = []
        for text in texts:
            names = [check_name(part.strip()) for part in text.split(",")]
            if len(set(names)) < 2:
                raise errors.BadRequest(
                    f"invalid group of incompatible tags {text!r:.200}: expected two or more "
                    f"different tags, separated by commas",
                    text,
                )
            groups.append(frozenset(names))
        return cls(tuple(groups))

    def between(self, name: str, others: Collection[str]) -> str | None:
        """Return one of the others that is incompatible with the name, or None."""
        found = {
            other
            for group in self.groups
            if name in group
            for other in group
            if other != name and other in others
        }
        return min(found, default=None)

    def within(self, names: Collection[str]) -> tuple[str, str] | None:
        """Return two of the names that are incompatible, or None."""
        for name in sorted(names):
            other = self.between(name, names)
            if other is not None:
                return name, other
        return None


NO_CLASHES = Clashes()


TAG_FILTERS: Mapping[str, str] = {
    "tags": "all_of",
    "tags-any": "any_of",
    "not-tags": "not_all_of",
    "not-tags-any": "not_any_of",
}
"""The parts of a filter by their names in requests, which are OpenStack's."""


@dataclasses.dataclass(frozen=True, slots=True)
class TagFilter:
    """A condition on the names of a server's tags; an empty part accepts every server.

    Raises InvalidTag for an invalid name, and BadRequest for more names in a part than an instance
    can have.
    """

    all_of: Collection[str] = frozenset()
    any_of: Collection[str] = frozenset()
    not_all_of: Collection[str] = frozenset()
    """Servers with all of these tags are rejected; those with only some pass."""

    not_any_of: Collection[str] = frozenset()

    def __post_init__(self) -> None:
        for key, field in TAG_FILTERS.items():
            object.__setattr__(self, field, _part(key, getattr(self, field)))

    @classmethod
    def parse(cls, texts: Mapping[str, str]) -> "TagFilter":
        """Return the filter of these parts, which are names separated by commas.

        The keys are those of ``TAG_FILTERS``.
        """
        return cls(**{TAG_FILTERS[key]: text.split(",") for key, text in texts.items()})

    def texts(self) -> dict[str, str]:
        """Return the texts that ``parse`` reads as this filter, without empty parts."""
        parts = {key: sorted(getattr(self, field)) for key, field in TAG_FILTERS.items()}
        return {key: ",".join(names) for key, names in parts.items() if names}


def _part(key: str, given: Iterable[str]) -> frozenset[str]:
    try:
        names = frozenset(check_names(given))
    except errors.InvalidTag as error:
        raise errors.InvalidTag(f"{key}: {error.message}", error.text, error.position) from error
    if len(names) > MOST:
        raise errors.BadRequest(
            f"too many tags in {key}: expected at most {MOST}, and {len(names)} are given"
        )
    return names


ANY_TAGS = TagFilter()
"""The filter that accepts every server."""
