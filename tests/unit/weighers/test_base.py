"""The contract of weighers: limits of weights, and multipliers."""

import dataclasses
import logging
from typing import Any

from oslo_config import cfg

from steelyard.weighers.base import Weigher
from steelyard.weighers.ram import RAMWeigher
from support.scheduler.host_states import state
from support.scheduler.plain_objects import Aggregate


@dataclasses.dataclass
class Weighed:
    obj: object


class Length(Weigher):
    minval = 2.0
    maxval = 4.0

    def _weigh_object(self, host: Any, request: Any) -> Any:
        return float(len(host))


def test_weigh_objects_clamps_weights() -> None:
    assert Length().weigh_objects([Weighed("a"), Weighed("abc"), Weighed("abcde")], None) == [
        2,
        3,
        4,
    ]
    assert Length().weight_multiplier("a") == 1.0


def test_weigher_flags_default_to_false() -> None:
    assert not Length.host_local


def test_weight_multiplier_is_the_lowest_of_the_aggregates(conf: Any, caplog: Any) -> None:
    weigher = RAMWeigher(conf)

    def multiplier(*stated: str) -> float:
        aggregates = [Aggregate({"ram_weight_multiplier": text}, "rack") for text in stated]
        return weigher.weight_multiplier(
            state(aggregates=[*aggregates, Aggregate({}), Aggregate(None)])
        )

    with caplog.at_level(logging.WARNING):
        assert multiplier() == 1.0
        assert multiplier("2", "1.5", "3") == 1.5
        assert multiplier("many", "3") == 3.0
        assert multiplier("many") == 1.0
        assert multiplier("inf") == 1.0
        assert multiplier("3, 2", "4") == 4.0
    assert [record.getMessage() for record in caplog.records] == [
        f"Invalid 'ram_weight_multiplier' = {text} of aggregate 'rack' ignored: expected a finite "
        "number such as 2.0"
        for text in ("'many'", "'inf'", "'3, 2'")
    ]


def test_weight_multiplier_changes_at_run_time(tmp_path: Any) -> None:
    path = tmp_path / "steelyard.conf"
    path.write_text("[steelyard]\nram_weight_multiplier = 2.0\n")
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[str(path)], default_config_dirs=[])
    weigher = RAMWeigher(conf)
    path.write_text("[steelyard]\nram_weight_multiplier = 3.0\n")
    conf.mutate_config_files()
    weigher.weigh_objects([], None)
    assert weigher.weight_multiplier(state()) == 3.0
