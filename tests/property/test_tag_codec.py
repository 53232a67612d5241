"""Laws of the codec: one text at the backend for each tag, and nothing else."""

import re
import unicodedata
import urllib.parse

import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from steelyard.errors import BadRequest, InvalidTag
from steelyard.tags import decode, encode
from steelyard.tags.names import DEFAULT_PREFIXES, Prefixes, check_name

GANETI = re.compile(r"[A-Za-z0-9.+*/:-]{1,128}")
HOSTILE = "/,_*%~@+ .:-aZ09\u00e9\u0301\u00df\u3000\u200b\u2028\U0001f600\n\x00\x7f\x85\ud800"

letters = st.one_of(st.sampled_from(HOSTILE), st.characters())
texts = st.text(letters, max_size=61)
parts_of_prefixes = st.text("aB9.-:", max_size=20)


def is_name(text: str) -> bool:
    """What the document says of names, in other words than the code does."""
    return (
        1 <= len(text) <= 60
        and not set(text) & set("/,")
        and not any(unicodedata.category(char) in ("Cc", "Cs") for char in text)
        and bool(text.strip())
    )


# Chosen one by one: of long texts, nearly each has one in it that no name has.
letters_of_names = letters.filter(lambda char: is_name(f"a{char}"))
names = st.sampled_from([1, 20, 60]).flatmap(
    lambda least: st.text(letters_of_names, min_size=least, max_size=60).filter(is_name)
)
short_names = st.text(letters_of_names, min_size=1, max_size=9).filter(is_name)


@st.composite
def several_prefixes(draw: st.DrawFn) -> Prefixes:
    one, other = (f"{draw(parts_of_prefixes)}:" for _ in range(2))
    assume(not one.startswith(other) and not other.startswith(one))
    return Prefixes(one, other)


@st.composite
def near_encodings(draw: st.DrawFn) -> str:
    """Encodings of tags, and what somebody else may have made of them."""
    prefix = draw(st.sampled_from(list(DEFAULT_PREFIXES)))
    text = encode(draw(short_names), prefix)
    for _ in range(draw(st.integers(0, 3))):
        text = draw(st.sampled_from(MUTATIONS))(text, draw(st.integers(0, len(text))))
    return text


def replaced(text: str, at: int, by: str) -> str:
    return text[:at] + by + text[at + 1 :]


MUTATIONS = [
    lambda text, at: text[:at] + text[at:].lower(),
    lambda text, at: text.replace("/", "%"),
    lambda text, at: text.replace("+", "/20"),
    lambda text, at: text.replace("*", "_"),
    lambda text, at: text.replace("/7E", "~"),
    lambda text, at: replaced(text, at, f"/{ord(text[at : at + 1] or 'a'):02X}"),
    lambda text, at: replaced(text, at, urllib.parse.quote(text[at : at + 1] or "\u00e9")),
    lambda text, at: text[:at],
    lambda text, at: text[at:],
    lambda text, at: text[:at] + text[at + 1 :],
    lambda text, at: text + text[-3:],
    lambda text, at: text + "\n",
    lambda text, at: f"{text[:at]}/C0/AF{text[at:]}",  # an overlong slash
    lambda text, at: f"{text[:at]}/ED/A0/80{text[at:]}",  # half of a pair of UTF-16's
    lambda text, at: f"{text[:at]}/F4/90/80/80{text[at:]}",  # beyond the last code point
    lambda text, at: f"{text[:at]}/E2/82{text[at:]}",  # the beginning of a character
    lambda text, at: f"{text[:at]}/2F{text[at:]}",
    lambda text, at: f"{text[:at]}/2C{text[at:]}",
    lambda text, at: f"{text[:at]}/00{text[at:]}",
    lambda text, at: f"{text[:at]}/{text[at:]}",
    lambda text, at: f"{text[:at]}/u0041{text[at:]}",
    lambda text, at: f"{text[:at]}/\uff11\uff11{text[at:]}",
    lambda text, at: f"{text[:at]}@{text[at:]}",
    lambda text, at: f"{text[:at]}\u00e9{text[at:]}",
    lambda text, at: f"{text[:at]}\ud83d{text[at:]}",
]


@given(texts)
@example("x" * 60)
@example("x" * 61)
def test_what_is_a_name(text: str) -> None:
    if is_name(text):
        assert check_name(text) == text
    else:
        with pytest.raises(InvalidTag):
            check_name(text)
        with pytest.raises(InvalidTag):
            encode(text, DEFAULT_PREFIXES.user)


@given(short_names, several_prefixes())
def test_every_tag_comes_back_as_it_was(name: str, prefixes: Prefixes) -> None:
    for prefix in prefixes:
        assert decode(encode(name, prefix), prefixes) == (prefix, name)


@given(names, several_prefixes())
@example("x" * 60, Prefixes("p" * 63 + ":", "s" * 63 + ":"))
@example("\u00e9" * 19, DEFAULT_PREFIXES)
@example("\u00e9" * 19 + "a", DEFAULT_PREFIXES)
@example("~" * 37 + "aaa", DEFAULT_PREFIXES)
@example("~" * 38 + "a", DEFAULT_PREFIXES)
@example("\U0001f600" * 9 + "a" * 6, DEFAULT_PREFIXES)
@example("\U0001f600" * 9 + "a" * 7, DEFAULT_PREFIXES)
def test_what_is_sent_is_what_ganeti_takes_or_it_is_refused_with_both_numbers(
    name: str, prefixes: Prefixes
) -> None:
    for prefix in prefixes:
        # One byte that Ganeti knows is one character there, a space too; others are three.
        known = re.compile(rb"[A-Za-z0-9.:_ -]")
        sizes = [1 if known.fullmatch(bytes([byte])) else 3 for byte in name.encode()]
        length = len(prefix) + sum(sizes)
        if length <= 128:
            text = encode(name, prefix)
            assert len(text) == length
            assert text.isascii()
            assert GANETI.fullmatch(text)
            assert decode(text, prefixes) == (prefix, name)
        else:
            with pytest.raises(InvalidTag, match=rf"it has {length} characters, and at most 128 "):
                encode(name, prefix)


@given(short_names, short_names)
def test_different_tags_are_different_texts(one: str, other: str) -> None:
    texts = {encode(name, prefix) for name in (one, other) for prefix in DEFAULT_PREFIXES}
    assert len(texts) == 2 * len({one, other})


@given(st.one_of(near_encodings(), texts, texts.map(DEFAULT_PREFIXES.user.__add__)))
@example("cyclades:user:a_b")
@example("cyclades:user:a*b")
@example("cyclades:user:%41")
@example("cyclades:user:/41")
@example("cyclades:user:/c3/a9")
@example("cyclades:user:/C3/A9")
@example("cyclades:user:/C3")
@example("cyclades:user:/C0/80")
@example("cyclades:user:a/20b")
@example("cyclades:user:a/")
@example("cyclades:user:a\n")
@example("cyclades:user:a\u0301")
@example("cyclades:user:a@b")
@example("cyclades:user:a~b")
@example("cyclades:user:a/7Eb")
@example("cyclades:user:+")
@example("cyclades:user:")
@example("cyclades:User:a")
def test_what_decodes_is_the_encoding_of_what_it_decodes_to(text: str) -> None:
    try:
        prefix, name = decode(text)
    except InvalidTag:
        return
    assert text.startswith(prefix)
    assert encode(name, prefix) == text
    assert GANETI.fullmatch(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("a*b", "a_b"),
        ("a+b", "a b"),
        ("/2B/2A/25", "+*%"),
        ("/7E/40", "~@"),
        ("/C3/A9", "\u00e9"),
        ("e/CC/81", "e\u0301"),
        ("a:b.c-d", "a:b.c-d"),
        ("cyclades:system:a", "cyclades:system:a"),
    ],
)
def test_encodings(text: str, name: str) -> None:
    assert encode(name, "cyclades:user:") == f"cyclades:user:{text}"
    assert decode(f"cyclades:user:{text}") == ("cyclades:user:", name)


SPELLINGS = """
    a_b a@b a~b a%20b a/20b a/2Db /c3/a9 /41 /C3 /E2/82 /C0/AF /ED/A0/80 /F4/90/80/80
    /2F /2C /0A / a/4 a// /u0041 + a,b a/b \u00e9 a\u0301 _ /00
"""


@pytest.mark.parametrize("text", [*SPELLINGS.split(), "", "a\n", "a b", "x" * 61])
def test_foreign_spellings(text: str) -> None:
    with pytest.raises(InvalidTag) as caught:
        decode(f"cyclades:user:{text}")
    assert f"{'cyclades:user:' + text!r:.200} is foreign: " in str(caught.value)


@pytest.mark.parametrize("text", ["", "a", "cyclades:", "Cyclades:user:a", "cyclades:users:a"])
def test_other_peoples_tags(text: str) -> None:
    with pytest.raises(InvalidTag, match="is foreign: it begins with none of our prefixes"):
        decode(text)


@given(st.one_of(parts_of_prefixes.map("{}:".format), texts))
def test_a_prefix_is_one_that_ganeti_takes_or_it_is_refused(prefix: str) -> None:
    valid = len(prefix) <= 64 and re.fullmatch(r"[A-Za-z0-9.:-]*:", prefix) is not None
    try:
        prefixes = Prefixes(prefix, "system:")
    except BadRequest:
        assert not valid or prefix.startswith("system:") or "system:".startswith(prefix)
    else:
        assert valid
        assert decode(encode("a", prefix), prefixes) == (prefix, "a")


@given(parts_of_prefixes, parts_of_prefixes)
def test_whose_a_tag_is_is_clear(one: str, other: str) -> None:
    one, other = f"{one}:", f"{other}:"
    clear = not one.startswith(other) and not other.startswith(one)
    try:
        Prefixes(one, other)
    except BadRequest:
        assert not clear
    else:
        assert clear


@given(texts)
def test_a_prefix_that_was_never_checked_sends_nothing_strange(prefix: str) -> None:
    try:
        text = encode("a", prefix)
    except InvalidTag:
        return
    assert GANETI.fullmatch(text)
