"""Names of tags, prefixes of owners, and incompatible names."""

from typing import Any

import pytest

from steelyard.errors import BadRequest, InvalidTag
from steelyard.tags.names import ANY_TAGS, MOST, Clashes, Owner, Prefixes, TagFilter, check_name


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
def test_check_name_returns_valid_names_unchanged(name: str) -> None:
    assert check_name(name) is name


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "it has 0 characters"),
        ("x" * 61, "it has 61 characters"),
        ("a/b", "it contains '/'"),
        ("a,b", "it contains ','"),
        ("a\n", "it contains the character '\\n'"),
        ("\x00", "it contains the character '\\x00'"),
        ("a\x7f", "it contains the character '\\x7f'"),
        ("\x85", "it contains the character '\\x85'"),
        ("\ud800", "it contains the character '\\ud800'"),
        (" ", "it is white space"),
        ("\u3000\u2003", "it is white space"),
    ],
)
def test_check_name_rejects_invalid_names_with_the_reason(name: str, why: str) -> None:
    with pytest.raises(InvalidTag) as caught:
        check_name(name)
    message = str(caught.value)
    assert message.startswith(f"invalid tag {name!r:.100}: {why}; expected 1 to 60 characters")
    assert message.isprintable()
    assert caught.value.status == 400


@pytest.mark.parametrize("name", [None, 5, b"a", ["a"], {"a": 1}])
def test_check_name_rejects_values_other_than_text(name: Any) -> None:
    with pytest.raises(InvalidTag, match=r"invalid tag .*: expected text"):
        check_name(name)


def test_prefixes_of_owners_are_those_of_synnefo() -> None:
    prefixes = Prefixes()
    assert [prefixes.of(owner) for owner in Owner] == ["cyclades:user:", "cyclades:system:"]
    assert list(prefixes) == ["cyclades:user:", "cyclades:system:"]


def test_prefixes_of_owner_accepts_the_owner_as_text() -> None:
    prefixes = Prefixes()
    assert [prefixes.of("user"), prefixes.of("system")] == list(prefixes)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="'admin' is not a valid Owner"):
        prefixes.of("admin")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "prefix",
    ["", "user", "u_:", "u/:", "u+:", "u*:", "u@:", "\u00e9:", "u: ", "u:\n", "x" * 64 + ":"],
)
def test_malformed_prefix_is_rejected(prefix: str) -> None:
    for prefixes in ((prefix, "s:"), ("s:", prefix)):
        with pytest.raises(BadRequest) as caught:
            Prefixes(*prefixes)
        assert f"invalid tag prefix {prefix!r:.100}: expected up to 64" in str(caught.value)


@pytest.mark.parametrize("prefixes", [("a:", "a:"), ("a:", "a:b:"), ("a:b:", "a:"), (":", "::")])
def test_prefix_that_begins_the_other_is_rejected(prefixes: tuple[str, str]) -> None:
    shorter, longer = sorted(prefixes, key=len)
    with pytest.raises(BadRequest, match=f"ambiguous tag prefixes '{shorter}' and '{longer}'"):
        Prefixes(*prefixes)


@pytest.mark.parametrize(
    "prefixes", [("a:", "b:"), ("a:", "A:"), ("a:b:", "a:c:"), (":", "a:"), ("x" * 63 + ":", "y:")]
)
def test_distinct_prefixes_are_accepted(prefixes: tuple[str, str]) -> None:
    assert tuple(Prefixes(*prefixes)) == prefixes


def test_clashes_finds_incompatible_names() -> None:
    clashes = Clashes.parse(["high, low , middle", "low, slow"])
    assert clashes.between("high", {"low", "middle", "other"}) == "low"
    assert clashes.between("low", ["slow", "other"]) == "slow"
    assert clashes.between("low", ["low", "other"]) is None
    assert clashes.between("other", ["low", "high"]) is None
    assert clashes.within(["other", "slow", "low"]) == ("low", "slow")
    assert clashes.within(["other", "slow", "high"]) is None


@pytest.mark.parametrize("text", ["high", "high, high", "a,a ,  a"])
def test_clashes_rejects_groups_of_one_name(text: str) -> None:
    with pytest.raises(BadRequest, match="expected two or more different tags"):
        Clashes.parse([text])


@pytest.mark.parametrize("text", ["", "high,", "high, a/b"])
def test_clashes_rejects_invalid_names(text: str) -> None:
    with pytest.raises(InvalidTag):
        Clashes.parse([text])


def test_filter_reads_names_separated_by_commas() -> None:
    wanted = TagFilter.parse({"tags": "b,a,b", "not-tags-any": " c "})
    assert wanted == TagFilter(all_of=["a", "b"], not_any_of=[" c "])
    assert wanted.all_of == {"a", "b"}
    assert wanted.texts() == {"tags": "a,b", "not-tags-any": " c "}
    assert ANY_TAGS.texts() == {}


@pytest.mark.parametrize("text", ["", "a,", "a/b", "\n"])
def test_filter_rejects_invalid_names(text: str) -> None:
    with pytest.raises(InvalidTag, match="tags-any: invalid tag"):
        TagFilter.parse({"tags-any": text})


def test_filter_rejects_more_tags_than_an_instance_can_have() -> None:
    assert len(TagFilter(any_of=[*map(str, range(MOST))]).any_of) == MOST
    with pytest.raises(BadRequest, match="too many tags in not-tags: expected at most 50, and 51"):
        TagFilter(not_all_of=[*map(str, range(MOST + 1))])


def test_filter_rejects_text_in_place_of_a_list() -> None:
    with pytest.raises(BadRequest, match="invalid list of tags 'smtp': expected a list"):
        TagFilter(all_of="smtp")
