from steelyard._once import Once


def test_once_is_true_for_the_first_call_with_a_key() -> None:
    once = Once()
    assert [once("a"), once("a"), once("b"), once("a")] == [True, False, True, False]


def test_once_forgets_the_least_recent_key() -> None:
    once = Once(size=2)
    assert [once(key) for key in ("a", "b", "a", "c")] == [True, True, False, True]
    assert not once("a")
    assert once("b")
