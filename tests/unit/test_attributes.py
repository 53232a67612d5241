import dataclasses
from typing import Any

import pytest

from steelyard.attributes import by_identity, read, read_all


class Versioned:
    """An object like Nova's, which would run a query for attributes that are not loaded."""

    fields = ("name", "metadata")

    def __init__(self, **loaded: object) -> None:
        self.loaded = loaded

    def obj_attr_is_set(self, name: str) -> bool:
        if name not in self.fields:
            raise AttributeError(name)
        return name in self.loaded

    def __getattr__(self, name: str) -> object:
        if name in self.fields:
            if name in self.loaded:
                return self.loaded[name]
            pytest.fail(f"{name} was queried")
        raise AttributeError(name)


@dataclasses.dataclass
class Plain:
    name: str | None


@pytest.mark.parametrize(
    ("thing", "value"),
    [
        (Plain("x"), "x"),
        (Plain(None), None),
        (object(), None),
        (None, None),
        (Versioned(name="x"), "x"),
        (Versioned(), None),
        (Versioned(name=None), None),
    ],
)
def test_attribute_missing_none_or_not_loaded_reads_as_none(thing: Any, value: Any) -> None:
    assert read(thing, "name") == value
    assert read_all([thing, thing], "name") == [value, value]


FAILURES = [NotImplementedError, AttributeError, LookupError, ZeroDivisionError, RuntimeError]


@pytest.mark.parametrize("failure", FAILURES)
@pytest.mark.parametrize("asks", [True, False])
def test_read_returns_none_if_getattr_raises(failure: type[Exception], asks: bool) -> None:
    class Failing:
        def __getattr__(self, name: str) -> object:
            if name == "obj_attr_is_set" and not asks:
                raise AttributeError(name)
            raise failure(name)

    class Refusing:
        def obj_attr_is_set(self, name: str) -> bool:
            raise failure(name)

    for thing in (Failing(), Refusing()):
        assert read(thing, "name") is None
        assert read_all([thing, Plain("x")], "name") == [None, "x"]
        assert read_all([Plain("x"), thing], "name") == ["x", None]


def test_unknown_attribute_reads_as_none() -> None:
    assert read(Versioned(), "nonsense") is None


def test_read_all_of_an_empty_list_is_empty() -> None:
    assert read_all([], "name") == []


def test_read_all_reads_missing_attributes_as_none() -> None:
    assert read_all([Plain("x"), object(), Plain("y")], "name") == ["x", None, "y"]


class Value:
    """A value that equals others with the same text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Value) and other.text == self.text

    def __hash__(self) -> int:
        return hash(self.text)


class Unhashable(Value):
    __hash__ = None  # type: ignore[assignment]


@pytest.mark.parametrize("kind", [object, lambda: Value("a"), lambda: Unhashable("a")])
def test_by_identity_keeps_equal_things_apart(kind: Any) -> None:
    one, two = kind(), kind()
    assert by_identity([[one, two], [], [one]]) == {id(one): one, id(two): two}
    assert by_identity([]) == {}
