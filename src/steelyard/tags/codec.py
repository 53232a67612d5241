"""The encoding of tags for Ganeti, which allows few characters.

An encoded tag is the owner's prefix, then the name in UTF-8, percent-encoded as in a query string,
with / for the percent sign and * for the underscore. The tilde is encoded, too: ``quote_plus``
keeps it, but Ganeti rejects it.
"""

import functools
import re
import urllib.parse
from typing import NamedTuple

from steelyard import errors
from steelyard.tags.names import DEFAULT_PREFIXES, Prefixes, check_name

LONGEST = 128
"""The greatest length of an encoded tag, prefix included."""

# Size of the caches. Reconciliation meets the same tags on many instances.
_CACHED = 4096
_GANETI = re.compile(r"[A-Za-z0-9.+*/:-]{1,128}")


class Tag(NamedTuple):
    """A tag of one owner: the owner's prefix, and the name in clear text."""

    prefix: str
    name: str

    @property
    def encoded(self) -> str:
        """The tag as the backend has it; raises InvalidTag as ``encode`` does."""
        return _encoded(self)


def encode(name: str, prefix: str) -> str:
    """Return the encoded tag.

    Raises InvalidTag if the name or the prefix is invalid, or if the encoded tag is too long.
    """
    quoted = urllib.parse.quote_plus(check_name(name), safe=":", encoding="utf-8", errors="strict")
    text = prefix + quoted.replace("~", "%7E").replace("%", "/").replace("_", "*")
    if len(text) > LONGEST:
        raise errors.InvalidTag(
            f"invalid tag {name!r}: it has {len(text)} characters when encoded with its prefix; "
            f"expected at most {LONGEST}",
            name,
        )
    if not _GANETI.fullmatch(text):
        raise errors.InvalidTag(
            f"invalid tag prefix {prefix!r:.100}: expected A-Z, a-z, 0-9 and .+*/:-", prefix
        )
    return text


def decode(text: str, prefixes: Prefixes = DEFAULT_PREFIXES) -> Tag:
    """Return the prefix and the name of an encoded tag.

    Raises InvalidTag if the prefix is unknown, or if ``encode`` would write the tag differently.
    """
    return _decoded(text, prefixes)


@functools.lru_cache(_CACHED)
def _encoded(tag: Tag) -> str:
    return encode(tag.name, tag.prefix)


@functools.lru_cache(_CACHED)
def _decoded(text: str, prefixes: Prefixes) -> Tag:
    prefix = next((each for each in prefixes if text.startswith(each)), None)
    if prefix is None:
        raise errors.InvalidTag(
            f"foreign tag {text!r:.200}: expected the prefix {' or '.join(map(repr, prefixes))}",
            text,
        )
    encoded = (len(prefix), len(text))
    quoted = text[len(prefix) :].replace("/", "%").replace("*", "_")
    try:
        name = urllib.parse.unquote_plus(quoted, encoding="utf-8", errors="strict")
        again = encode(name, prefix)
    except (UnicodeDecodeError, errors.InvalidTag) as error:
        raise errors.InvalidTag(f"foreign tag {text!r:.200}: {error}", text, encoded) from error
    if again != text:
        raise errors.InvalidTag(
            f"foreign tag {text!r:.200}: {name!r} is encoded as {again!r}", text, encoded
        )
    return Tag(prefix, name)
