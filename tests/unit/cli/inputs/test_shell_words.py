"""Words of a shell: their text, and names written as words."""

import pytest

from steelyard.cli.inputs import shell_words


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("cloud.yaml", "cloud.yaml"),
        (r"my\ cloud.yaml", "my cloud.yaml"),
        ("'my cloud.yaml'", "my cloud.yaml"),
        ('"my cloud.yaml', "my cloud.yaml"),
        ("a'b c'\"d e\"f", "ab cd ef"),
        (r'"a\"b\c"', r'a"b\c'),
        (r"'a\b'", r"a\b"),
        ("a\\", "a"),
        ("~/cloud.yaml", "/home/ada/cloud.yaml"),
        ("'~/cloud.yaml'", "~/cloud.yaml"),
        ("$HOME/cloud.yaml", "/home/ada/cloud.yaml"),
        ('"$HOME/cloud.yaml"', "/home/ada/cloud.yaml"),
        ("'$HOME/cloud.yaml'", "$HOME/cloud.yaml"),
        ("$(touch pwned)", "$(touch pwned)"),
        ("`touch pwned`", "`touch pwned`"),
        ("", ""),
    ],
)
def test_expanded_returns_the_text_of_a_word(
    monkeypatch: pytest.MonkeyPatch, word: str, expected: str
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert shell_words.expanded(word) == expected


@pytest.mark.parametrize(
    ("kept", "typed", "expected"),
    [
        ("", "", [r"web\ 1", "web:2", r"it\'s"]),
        ("", "web", [r"web\ 1", "web:2"]),
        ("", r"web\ ", [r"web\ 1"]),
        ("web:", "", ["2"]),
        ("web:", "2", ["2"]),
        ("'", "web", ["web 1", "web:2"]),
        ("'", "it", []),
        ('"', "it", ["it's"]),
        ('"web"', "", [r"\ 1", ":2"]),
        ("w'e", "b ", ["b 1"]),
        ("", "WEB", []),
        ("", "-", []),
    ],
)
def test_completions_replace_the_typed_part(kept: str, typed: str, expected: list[str]) -> None:
    names = ["web 1", "web:2", "it's", "-x", "line\nfeed", "bell\a", "bidi\u202e"]
    assert shell_words.completions(names, kept, typed) == expected


def test_completions_leave_out_names_that_history_expansion_would_change() -> None:
    assert shell_words.completions(["a!b"], "", "a") == [r"a\!b"]
    assert shell_words.completions(["a!b"], "'", "a") == ["a!b"]
    assert shell_words.completions(["a!b"], '"', "a") == []
