import gc

import pytest

from steelyard.cloud import garbage


@pytest.mark.parametrize("enabled", [True, False])
def test_paused_disables_collection_only_in_the_block(enabled: bool) -> None:
    before = gc.isenabled()
    try:
        (gc.enable if enabled else gc.disable)()
        with garbage.paused():
            assert not gc.isenabled()
        assert gc.isenabled() == enabled
    finally:
        (gc.enable if before else gc.disable)()
