"""Escapes for untrusted text, such as names and tags, in terminals and logs.

Control characters can move the cursor, change the title of a window or begin a new line of a log.
Bidirectional controls change the order in which text is displayed.
"""

import re

# Control characters (Cc), line and paragraph separators, Unicode's Bidi_Control characters, and
# lone surrogates, which no terminal can show. All are below U+10000, so \u and four digits suffice.
_UNSAFE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
_SHORT = {"\n": r"\n", "\r": r"\r", "\t": r"\t"}


def escaped(text: str) -> str:
    """Return the text with control and bidirectional characters written as JSON escapes."""
    return _UNSAFE.sub(_escape, text)


def escaped_lines(text: str) -> str:
    """Return the text escaped as by ``escaped``, but with its line feeds."""
    return "\n".join(map(escaped, text.split("\n")))


def printable(text: str) -> str:
    """Return the text with unprintable characters written as Python escapes."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else ascii(char)[1:-1] for char in text)


def _escape(found: re.Match[str]) -> str:
    char = found.group()
    return _SHORT.get(char, f"\\u{ord(char):04x}")
