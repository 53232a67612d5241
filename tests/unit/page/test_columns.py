"""The columns that the script of the page reads."""

import base64
import gzip
import json
from typing import Any

import pytest

from steelyard.cloud import Aggregate, Cloud, Flavor, Host, Server
from steelyard.page import view_of
from steelyard.page.columns import CODES, as_json, columns
from steelyard.page.view import HostCondition
from steelyard.scheduler import FilterScheduler

SMALL = Flavor("small", 1, 1024, 1)
BIG = Flavor("big", 8, 16384, 10)
NAMES = ("a", "b", "c")


@pytest.fixture
def found(configured: Any) -> dict[str, Any]:
    """Return the columns of a decision about three hosts."""
    hosts = [
        Host("a", 9, 32768, 100, frozenset({"T2", "T1"})),
        Host("b", 16, 65536, 500, frozenset({"T1", "T2"}), allocation_ratios={"vcpus": 1.5}),
        Host("c", 4, 4096, 50, resources={"VGPU": 4}),
    ]
    cloud = Cloud(
        {each.name: each for each in hosts},
        {
            "rack": Aggregate("rack", {"rack": "1"}, ("a", "b")),
            "pool": Aggregate("pool", {}, NAMES),
        },
        {"small": SMALL, "big": BIG},
    ).with_servers(
        [
            Server("1", "web-1", SMALL, "a"),
            Server("2", "db\n", BIG, "b"),
            Server("3", "", SMALL, "a"),
        ]
    )
    scheduler = FilterScheduler(cloud, configured("failure_domains = rack"))
    (decision,) = scheduler.select(scheduler.request("big")).decisions
    return columns(view_of(decision, scheduler))


def test_columns_have_a_value_for_each_host(found: dict[str, Any]) -> None:
    assert found["hosts"] == ["b", "a", "c"]
    assert found["conditions"] == "cfr"
    assert [found["tiles"][number][0] for number in found["tile"]] == [
        *("rack: 1", "rack: 1", "rack: (missing)")
    ]
    groups = [
        [found["keys"][number] for number in found["groups"]["all"][each]]
        for each in found["groups"]["of"]
    ]
    assert groups == [["a0", "a1", "d0"], ["a0", "a1", "d0"], ["a1", "d1"]]
    assert found["cause"] == ["c0"]
    assert len(found["weight"]) == len(found["bar"]) == len(found["weights"]) == 2


def test_repeated_values_are_written_once(found: dict[str, Any]) -> None:
    assert found["traits"] == {"all": [["T1", "T2"], []], "of": [0, 0, 1]}
    assert found["reasons"]["of"] == [0, 0, 1]
    decisive = found["filters"].index("CapacityFilter")
    assert found["reasons"]["all"] == [[], [decisive, 1]]


def test_amounts_are_numbers_with_their_classes(found: dict[str, Any]) -> None:
    amounts = []
    for host, free in enumerate(found["free"]):
        names, limits = (
            found[column]["all"][found[column]["of"][host]] for column in ("amounts", "limits")
        )
        both = zip(free, limits, strict=True)
        amounts.append(dict(zip(names, both, strict=True)))
    assert amounts[0]["VCPU"] == (16, 24)
    assert amounts[1]["MEMORY_MB"][0] == amounts[1]["MEMORY_MB"][1] - 2048
    assert amounts[2]["VGPU"] == (4, 4)


def test_servers_are_compressed_with_names_of_flavors(found: dict[str, Any]) -> None:
    servers = json.loads(gzip.decompress(base64.b64decode(found["servers"])))
    assert servers == {
        "flavors": ["big", "small"],
        "servers": [["db\\n", 0], ["web-1", 1, "3", 1], []],
    }


def test_conditions_have_different_letters() -> None:
    assert len({CODES[each] for each in HostCondition}) == len(HostCondition)


def test_json_closes_no_element() -> None:
    text = as_json({"a": "</script><!--", "b": [1.5, "é"]})
    assert "<" not in text
    assert json.loads(text) == {"a": "</script><!--", "b": [1.5, "é"]}
