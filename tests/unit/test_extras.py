"""What happens where an extra is not installed."""

import sys
from typing import Any

import pytest

from steelyard import consumers, errors


@pytest.mark.parametrize(
    ("name", "missing", "extra"),
    [
        ("ConsumerStore", "alembic", "sql"),
        ("ConsumerStore", "sqlalchemy", "sql"),
        ("PlacementConsumers", "jsonschema", "placement"),
    ],
)
def test_a_missing_extra_is_named(monkeypatch: Any, name: str, missing: str, extra: str) -> None:
    for other in ("alembic", "jsonschema", "sqlalchemy"):  # or it is the one that is named
        pytest.importorskip(other)
    for module in list(sys.modules):
        if module.startswith(("steelyard.consumers.", "steelyard.stores")):
            monkeypatch.delitem(sys.modules, module)
            monkeypatch.delattr(consumers, module.rpartition(".")[2], raising=False)
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(errors.MissingExtra) as raised:
        getattr(consumers, name)
    assert f"{name} needs {missing}" in str(raised.value)
    assert f"pip install 'steelyard[{extra}]'" in str(raised.value)


def test_a_name_that_is_not_there() -> None:
    with pytest.raises(AttributeError, match=r"module 'steelyard.consumers' has no attribute 'X'"):
        consumers.X  # noqa: B018
