"""Words on the command line of a shell: their text, and names written as words."""

import os
from collections.abc import Collection, Iterable

_SINGLE, _DOUBLE, _ESCAPE = "'", '"', "\\"
# Characters that mean themselves outside quotes, besides letters and digits.
_PLAIN = frozenset("_@%+=:,./-")
# Characters that a backslash escapes within double quotes.
_ESCAPED_IN_DOUBLE = frozenset('$`"\\')


def expanded(word: str) -> str:
    """Return the text of the word with ``~`` and variables expanded. Nothing is executed."""
    text, _ = _read(word)
    if not word.startswith(_SINGLE):
        text = os.path.expandvars(text)
    return os.path.expanduser(text) if word.startswith("~") else text


def completions(names: Iterable[str], kept: str, typed: str) -> list[str]:
    """Return the quoted replacements of the typed text, one for each name that begins with it.

    ``kept`` is the part of the word before the typed text. It stays on the line, with a quote that
    it may open: readline splits words at quotes and at characters such as a colon. Names are left
    out if they cannot be quoted safely or would be read as options.
    """
    before, quote = _read(kept)
    wanted, _ = _read(kept + typed)
    candidates = (
        _quoted(name[len(before) :], quote)
        for name in names
        if name.startswith(wanted) and not name.startswith("-") and name.isprintable()
    )
    return [each for each in candidates if each is not None]


def _quoted(text: str, quote: str) -> str | None:
    """Return the text as written after the open quote, or None if that is impossible."""
    if quote == _SINGLE:
        return None if _SINGLE in text else text
    if quote == _DOUBLE:
        # Bash expands history within double quotes, and keeps a backslash there.
        return None if "!" in text else _escaped(text, _ESCAPED_IN_DOUBLE)
    return _escaped(text, {char for char in text if not (char.isalnum() or char in _PLAIN)})


def _escaped(text: str, special: Collection[str]) -> str:
    return "".join(f"{_ESCAPE}{char}" if char in special else char for char in text)


def _read(word: str) -> tuple[str, str]:
    """Return the text of the word without quotes and escapes, and the quote that is still open."""
    text, quote, rest = "", "", iter(word)
    for char in rest:
        if char == _ESCAPE and quote != _SINGLE:
            following = next(rest, "")
            keeps = quote == _DOUBLE and following not in _ESCAPED_IN_DOUBLE
            text += f"{_ESCAPE}{following}" if keeps else following
        elif char == quote:
            quote = ""
        elif not quote and char in (_SINGLE, _DOUBLE):
            quote = char
        else:
            text += char
    return text, quote
