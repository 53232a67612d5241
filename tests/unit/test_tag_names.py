from typing import Any

import pytest

from steelyard.errors import BadRequest, InvalidTag
from steelyard.tags.names import Clashes, Owner, Prefixes, check_name


@pytest.mark.parametrize(
    "name",
    [
        "a",
        "A",
        "a b",
        " a",
        "a ",
        "a:b",
        "cyclades:system:a",
        "%2F",
        "_.-~+*@'\"\\;<>&?#",
        "\u00e9",
        "e\u0301",
        "\u65e5\u672c",
        "\U0001f600",
        "\u200b",
        "a\u2028",
        "\ue000",
        "x" * 60,
        "\U0001f600" * 60,
    ],
)
def test_names_are_kept_code_point_for_code_point(name: str) -> None:
    assert check_name(name) is name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "it has 0 characters"),
        ("x" * 61, "it has 61 characters"),
        ("a/b", "it has '/' in it"),
        ("a,b", "it has ',' in it"),
        ("a\n", "it has the character '\\n' in it"),
        ("\x00", "it has the character '\\x00' in it"),
        ("a\x7f", "it has the character '\\x7f' in it"),
        ("\x85", "it has the character '\\x85' in it"),
        ("\ud800", "it has the character '\\ud800' in it"),
        (" ", "it is only white space"),
        ("\u3000\u2003", "it is only white space"),
    ],
)
def test_what_is_no_name_is_quoted_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(InvalidTag) as caught:
        check_name(name)
    said = str(caught.value)
    assert said.startswith(f"{name!r:.100} is no tag: {why}; a tag is 1 to 60 characters")
    assert said.isprintable()
    assert caught.value.status == 400


@pytest.mark.parametrize("name", [None, 5, b"a", ["a"], {"a": 1}])
def test_a_tag_is_text(name: Any) -> None:
    with pytest.raises(InvalidTag, match="is no tag; a tag is text"):
        check_name(name)


def test_prefixes_name_the_owner() -> None:
    prefixes = Prefixes()
    assert [prefixes.of(owner) for owner in Owner] == ["cyclades:user:", "cyclades:system:"]
    assert list(prefixes) == ["cyclades:user:", "cyclades:system:"]


@pytest.mark.parametrize(
    "prefix",
    ["", "user", "u_:", "u/:", "u+:", "u*:", "u@:", "\u00e9:", "u: ", "u:\n", "x" * 64 + ":"],
)
def test_a_malformed_prefix_is_refused(prefix: str) -> None:
    for prefixes in ((prefix, "s:"), ("s:", prefix)):
        with pytest.raises(BadRequest) as caught:
            Prefixes(*prefixes)
        assert f"{prefix!r:.100} is no prefix of tags; it is up to 64" in str(caught.value)


@pytest.mark.parametrize("prefixes", [("a:", "a:"), ("a:", "a:b:"), ("a:b:", "a:"), (":", "::")])
def test_no_prefix_begins_another(prefixes: tuple[str, str]) -> None:
    shorter, longer = sorted(prefixes, key=len)
    with pytest.raises(BadRequest, match=f"the prefix '{shorter}' begins the prefix '{longer}'"):
        Prefixes(*prefixes)


@pytest.mark.parametrize(
    "prefixes", [("a:", "b:"), ("a:", "A:"), ("a:b:", "a:c:"), (":", "a:"), ("x" * 63 + ":", "y:")]
)
def test_prefixes_that_are_told_apart(prefixes: tuple[str, str]) -> None:
    assert tuple(Prefixes(*prefixes)) == prefixes


def test_of_a_group_an_instance_has_at_most_one() -> None:
    clashes = Clashes.parse(["high, low , middle", "low, slow"])
    assert clashes.between("high", {"low", "middle", "other"}) == "low"
    assert clashes.between("low", ["slow", "other"]) == "slow"
    assert clashes.between("low", ["low", "other"]) is None
    assert clashes.between("other", ["low", "high"]) is None
    assert clashes.within(["other", "slow", "low"]) == ("low", "slow")
    assert clashes.within(["other", "slow", "high"]) is None


@pytest.mark.parametrize("text", ["high", "high, high", "a,a ,  a"])
def test_a_group_has_two_names(text: str) -> None:
    with pytest.raises(BadRequest, match="names no tags that clash; write two or more"):
        Clashes.parse([text])


@pytest.mark.parametrize("text", ["", "high,", "high, a/b"])
def test_a_group_has_names_of_tags(text: str) -> None:
    with pytest.raises(InvalidTag):
        Clashes.parse([text])
