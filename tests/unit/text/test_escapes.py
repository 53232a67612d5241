"""Escapes of text for terminals and logs."""

import logging
import unicodedata

import pytest

from steelyard.text.escapes import escaped, escaped_lines
from steelyard.text.logs import EscapingFormatter

BIDIRECTIONAL = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("größe 🎉 你好", "größe 🎉 你好"),
        ("\x1b[2Jgone", r"\u001b[2Jgone"),
        ("\x9b31m\x7f", r"\u009b31m\u007f"),
        ("a\tb\r\nc", r"a\tb\r\nc"),
        ("abc\u202etxt.exe", r"abc\u202etxt.exe"),
        ("\u2028\u2029", r"\u2028\u2029"),
        ("\udc80", r"\udc80"),
        # A joiner belongs to the spelling of some scripts and emoji.
        ("👩\u200d💻 \u0645\u06cc\u200c\u062e", "👩\u200d💻 \u0645\u06cc\u200c\u062e"),
    ],
)
def test_escaped_replaces_control_and_bidirectional_characters(text: str, shown: str) -> None:
    assert escaped(text) == shown


def test_escaped_leaves_no_control_character() -> None:
    text = escaped("".join(map(chr, range(0x110000))))
    assert not {"Cc", "Cs", "Zl", "Zp"} & {unicodedata.category(char) for char in text}
    assert not set(BIDIRECTIONAL) & set(text)


def test_escaped_lines_keeps_line_feeds() -> None:
    assert escaped_lines("a\x1b\nb\r") == "a\\u001b\nb\\r"


def test_formatter_writes_a_message_on_one_line() -> None:
    formatter = EscapingFormatter(logging.Formatter("%(levelname)s: %(message)s"))
    record = logging.LogRecord(
        "x", logging.INFO, "", 1, "%s did it", ("eve\nINFO: \u202eada",), None
    )
    assert formatter.format(record) == "INFO: eve\\nINFO: \\u202eada did it"
    assert record.args  # other handlers see the record as it was


def test_formatter_keeps_the_lines_of_a_traceback() -> None:
    try:
        raise ValueError("\x1b[2J")
    except ValueError as error:
        found = (ValueError, error, error.__traceback__)
    record = logging.LogRecord("x", logging.ERROR, "", 1, "failed", (), found)
    shown = EscapingFormatter(None).format(record).splitlines()
    assert (shown[0], shown[-1]) == ("failed", r"ValueError: \u001b[2J")
    assert len(shown) > 3


def test_formatter_writes_the_text_of_each_exception_on_one_line() -> None:
    forged = "gone\nINFO: eve did it"
    try:
        try:
            raise KeyError(forged)
        except KeyError as error:
            raise ValueError(forged) from error
    except ValueError as error:
        error.add_note(forged)
        found = (ValueError, error, error.__traceback__)
    record = logging.LogRecord("x", logging.ERROR, "", 1, "failed", (), found)
    shown = EscapingFormatter(None).format(record).splitlines()
    assert r"ValueError: gone\nINFO: eve did it" in shown
    assert shown[-1] == r"gone\nINFO: eve did it"
    assert any(line.startswith("KeyError: ") for line in shown)
    assert any("direct cause" in line for line in shown)
    assert not [line for line in shown if line.startswith("INFO")]
    assert record.exc_info is found  # other handlers see the record as it was


def test_formatter_writes_the_parts_of_an_exception_group() -> None:
    part = ValueError("gone\nINFO: eve did it")
    try:
        raise ExceptionGroup("two failed", [part, ExceptionGroup("inner", [KeyError("k")])])
    except ExceptionGroup as error:
        part.__context__ = error  # a cycle
        found = (ExceptionGroup, error, error.__traceback__)
    record = logging.LogRecord("x", logging.ERROR, "", 1, "failed", (), found)
    shown = EscapingFormatter(None).format(record).splitlines()
    assert any(line.endswith("| ExceptionGroup: two failed (2 sub-exceptions)") for line in shown)
    assert any(line.endswith(r"| ValueError: gone\nINFO: eve did it") for line in shown)
    assert any(line.endswith("| KeyError: 'k'") for line in shown)
    assert not [line for line in shown if line.startswith("INFO")]
