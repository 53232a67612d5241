"""Tags as Ganeti has them: text of a few ASCII characters, with the owner's prefix in front.

UTF-8, percent-encoded as in a query, with / for the percent sign and * for the underscore. What
Python's ``quote_plus`` leaves alone and Ganeti does not know is encoded too.
"""

import re
import urllib.parse

from steelyard import errors
from steelyard.tags.names import DEFAULT_PREFIXES, Prefixes, check_name

LONGEST = 128
"""Characters of a tag in Ganeti, with its prefix."""

_GANETI = re.compile(r"[A-Za-z0-9.+*/:-]{1,128}")


def encode(name: str, prefix: str) -> str:
    """The tag for Ganeti; InvalidTag if the name is none or becomes too long."""
    quoted = urllib.parse.quote_plus(check_name(name), safe=":", encoding="utf-8", errors="strict")
    text = prefix + quoted.replace("~", "%7E").replace("%", "/").replace("_", "*")
    if len(text) > LONGEST:
        raise errors.InvalidTag(
            f"{name!r} is too long when it is encoded: with its prefix it has {len(text)} "
            f"characters, and at most {LONGEST} are possible"
        )
    if not _GANETI.fullmatch(text):
        raise errors.InvalidTag(f"{prefix!r:.100} is no prefix that Ganeti would take")
    return text


def decode(text: str, prefixes: Prefixes = DEFAULT_PREFIXES) -> tuple[str, str]:
    """The prefix and the name; InvalidTag if ``encode`` would not have written this."""
    prefix = next((each for each in prefixes if text.startswith(each)), None)
    if prefix is None:
        raise errors.InvalidTag(f"{text!r:.200} is foreign: it begins with none of our prefixes")
    quoted = text[len(prefix) :].replace("/", "%").replace("*", "_")
    try:
        name = urllib.parse.unquote_plus(quoted, encoding="utf-8", errors="strict")
        again = encode(name, prefix)
    except (UnicodeDecodeError, errors.InvalidTag) as error:
        raise errors.InvalidTag(f"{text!r:.200} is foreign: {error}") from error
    if again != text:
        raise errors.InvalidTag(f"{text!r:.200} is foreign: the tag {name!r} is written {again!r}")
    return prefix, name
