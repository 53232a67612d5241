"""Laws of the codec: each tag has exactly one text at the backend."""

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
    """Return whether a name is valid, by rules written independently of the code."""
    return (
        1 <= len(text) <= 60
        and not set(text) & set("/,")
        and not any(unicodedata.category(char) in ("Cc", "Cs") for char in text)
        and bool(text.strip())
    )


# Filter single letters: nearly every long text contains an invalid one.
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
    """Draw encodings of tags, some of them corrupted."""
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
    lambda text, at: f"{text[:at]}/ED/A0/80{text[at:]}",  # a surrogate
    lambda text, at: f"{text[:at]}/F4/90/80/80{text[at:]}",  # beyond the last code point
    lambda text, at: f"{text[:at]}/E2/82{text[at:]}",  # an incomplete character
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
def test_check_name_accepts_exactly_valid_names(text: str) -> None:
    if is_name(text):
        assert check_name(text) == text
    else:
        with pytest.raises(InvalidTag):
            check_name(text)
        with pytest.raises(InvalidTag):
            encode(text, DEFAULT_PREFIXES.user)


@given(short_names, several_prefixes())
def test_decode_reverses_encode(name: str, prefixes: Prefixes) -> None:
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
def test_encoding_fits_ganeti_or_is_rejected_with_its_length(name: str, prefixes: Prefixes) -> None:
    for prefix in prefixes:
        # These bytes take one character when encoded; all others take three.
        plain = re.compile(rb"[A-Za-z0-9.:_ -]")
        sizes = [1 if plain.fullmatch(bytes([byte])) else 3 for byte in name.encode()]
        length = len(prefix) + sum(sizes)
        if length <= 128:
            text = encode(name, prefix)
            assert len(text) == length
            assert text.isascii()
            assert GANETI.fullmatch(text)
            assert decode(text, prefixes) == (prefix, name)
        else:
            with pytest.raises(InvalidTag, match=rf"it has {length} characters when encoded"):
                encode(name, prefix)


@given(short_names, short_names)
def test_different_tags_have_different_encodings(one: str, other: str) -> None:
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
def test_encode_reverses_decode(text: str) -> None:
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
def test_tag_has_the_expected_encoding(text: str, name: str) -> None:
    assert encode(name, "cyclades:user:") == f"cyclades:user:{text}"
    assert decode(f"cyclades:user:{text}") == ("cyclades:user:", name)


SPELLINGS = """
    a_b a@b a~b a%20b a/20b a/2Db /c3/a9 /41 /C3 /E2/82 /C0/AF /ED/A0/80 /F4/90/80/80
    /2F /2C /0A / a/4 a// /u0041 + a,b a/b \u00e9 a\u0301 _ /00
"""


@pytest.mark.parametrize("text", [*SPELLINGS.split(), "", "a\n", "a b", "x" * 61])
def test_foreign_spelling_is_rejected(text: str) -> None:
    with pytest.raises(InvalidTag) as caught:
        decode(f"cyclades:user:{text}")
    assert f"foreign tag {'cyclades:user:' + text!r:.200}: " in str(caught.value)
    assert caught.value.text == f"cyclades:user:{text}"


@pytest.mark.parametrize("text", ["", "a", "cyclades:", "Cyclades:user:a", "cyclades:users:a"])
def test_tag_without_our_prefix_is_rejected(text: str) -> None:
    with pytest.raises(
        InvalidTag, match=r"foreign tag .*: expected the prefix 'cyclades:user:' or "
    ):
        decode(text)


@given(st.one_of(parts_of_prefixes.map("{}:".format), texts))
def test_prefix_is_accepted_only_if_ganeti_allows_it(prefix: str) -> None:
    valid = len(prefix) <= 64 and re.fullmatch(r"[A-Za-z0-9.:-]*:", prefix) is not None
    try:
        prefixes = Prefixes(prefix, "system:")
    except BadRequest:
        assert not valid or prefix.startswith("system:") or "system:".startswith(prefix)
    else:
        assert valid
        assert decode(encode("a", prefix), prefixes) == (prefix, "a")


@given(parts_of_prefixes, parts_of_prefixes)
def test_prefixes_that_overlap_are_rejected(one: str, other: str) -> None:
    one, other = f"{one}:", f"{other}:"
    distinct = not one.startswith(other) and not other.startswith(one)
    try:
        Prefixes(one, other)
    except BadRequest:
        assert not distinct
    else:
        assert distinct


@given(texts)
def test_encode_with_an_unchecked_prefix_returns_valid_text(prefix: str) -> None:
    try:
        text = encode("a", prefix)
    except InvalidTag:
        return
    assert GANETI.fullmatch(text)
