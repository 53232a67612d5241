"""Values of options, read at each access."""

import copy
from typing import Any

import pytest

from steelyard import conf as options


def test_values_are_copied_by_copy_and_pickle(configured: Any) -> None:
    group = options.register(configured("seed = 3"))
    assert copy.copy(group).seed == 3
    with pytest.raises(AttributeError):
        _ = options.Values.__new__(options.Values)._conf
