from typing import Any

import pytest
from oslo_config import types

from steelyard.conf.types import CreationParameters
from steelyard.text import strict_json

DEEP = "[" * 100_000


@pytest.mark.parametrize("text", ['{"a": 1}', b'{"a": 1}'])
def test_loads_reads_text_and_bytes(text: Any) -> None:
    assert strict_json.loads(text) == {"a": 1}


def test_loads_rejects_repeated_keys() -> None:
    with pytest.raises(strict_json.RepeatedKeyError) as caught:
        strict_json.loads('{"a": {"b": 1, "b": 2}}')
    assert caught.value.key == "b"


@pytest.mark.parametrize("text", [DEEP, DEEP.encode(), '{"a":' * 100_000])
def test_loads_rejects_deep_nesting_with_a_value_error(text: Any) -> None:
    with pytest.raises(strict_json.NestingError, match="nested too deeply"):
        strict_json.loads(text)


@pytest.mark.parametrize("text", ["", "{", b"\xff", "9" * 5_000])
def test_loads_rejects_other_text_with_a_value_error(text: Any) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011  (the messages are those of json)
        strict_json.loads(text)
    assert str(caught.value)


def test_option_with_deeply_nested_json_is_invalid() -> None:
    allowed: types.ConfigType = CreationParameters()
    with pytest.raises(ValueError, match="objects and lists are nested too deeply"):
        allowed(DEEP)
