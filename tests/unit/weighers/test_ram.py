"""The weigher for free RAM."""

import dataclasses
from typing import Any

from steelyard.weighers.ram import RAMWeigher
from support.scheduler.host_states import state


@dataclasses.dataclass
class Weighed:
    obj: object


def test_ram_weigher_prefers_free_ram(configured: Any) -> None:
    weigher = RAMWeigher(configured("ram_weight_multiplier = -2"))
    hosts = [Weighed(state(ram_mb_used=used)) for used in (0, 1000, 5000)]
    assert weigher.weigh_objects(hosts, None) == [4096, 3096, 0]
    assert weigher.weight_multiplier(state()) == -2
