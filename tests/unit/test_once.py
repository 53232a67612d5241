from steelyard.once import Once


def test_only_the_first_time_is_true() -> None:
    once = Once()
    assert [once("a"), once("a"), once("b"), once("a")] == [True, False, True, False]


def test_what_was_asked_longest_ago_is_forgotten() -> None:
    once = Once(size=2)
    assert [once(key) for key in ("a", "b", "a", "c")] == [True, True, False, True]
    assert not once("a")
    assert once("b")
