import dataclasses
import logging
from typing import Any

import pytest

from steelyard.filters.traits import TraitsFilter
from support.scheduler.plain_objects import Flavor, Request


@dataclasses.dataclass(eq=False)
class Host:
    host: str
    traits: Any = None


HOSTS = [Host("plain"), Host("gpu", frozenset({"CUSTOM_GPU"})), Host("both", {"CUSTOM_GPU", "A"})]


def passing(extra_specs: Any, *hosts: Host) -> list[str]:
    """Check that ``filter_all`` and ``host_passes`` agree, and return the hosts that pass."""
    plugin, request = TraitsFilter(), Request(Flavor(extra_specs))
    found = [host.host for host in plugin.filter_all(iter(hosts or HOSTS), request)]
    assert found == [host.host for host in hosts or HOSTS if plugin.host_passes(host, request)]
    return found


@pytest.mark.parametrize(
    ("extra_specs", "found"),
    [
        ({}, ["plain", "gpu", "both"]),
        (None, ["plain", "gpu", "both"]),
        ({"trait:CUSTOM_GPU": "required"}, ["gpu", "both"]),
        ({"trait:CUSTOM_GPU": "forbidden"}, ["plain"]),
        ({"trait:CUSTOM_GPU": "required", "trait:A": "forbidden"}, ["gpu"]),
        ({"trait1:CUSTOM_GPU": "required"}, ["plain", "gpu", "both"]),
        ({"ssd": "nvme"}, ["plain", "gpu", "both"]),
        ({"trait:CUSTOM_GPU": "wanted"}, []),
        ({"trait:gpu": "required"}, []),
    ],
)
def test_traits_filter_selects_hosts_by_trait_extra_specs(extra_specs: Any, found: Any) -> None:
    assert passing(extra_specs) == found


@pytest.mark.parametrize(
    "malformed", ["CUSTOM_GPU", 5, iter(["CUSTOM_GPU"]), [["CUSTOM_GPU"]], None]
)
def test_malformed_traits_of_a_host_count_as_none(malformed: Any) -> None:
    assert passing({"trait:CUSTOM_GPU": "required"}, Host("malformed", malformed)) == []
    assert passing({"trait:C": "required"}, Host("malformed", malformed)) == []
    assert passing({"trait:CUSTOM_GPU": "forbidden"}, Host("malformed", malformed)) == ["malformed"]


def test_rejection_names_the_trait() -> None:
    plugin = TraitsFilter()
    wanting = Request(Flavor({"trait:A": "required", "trait:CUSTOM_GPU": "forbidden"}))
    assert plugin.examine(HOSTS[0], wanting).reason == "required trait A is missing"
    assert plugin.examine(HOSTS[2], wanting).reason == "forbidden trait CUSTOM_GPU is present"
    assert plugin.examine(HOSTS[0], wanting).key == "trait:A"
    assert plugin.examine(HOSTS[2], wanting).key == "trait:CUSTOM_GPU"


def test_malformed_traits_of_a_flavor_are_logged_once(caplog: Any) -> None:
    plugin, request = TraitsFilter(), Request(Flavor({"trait:A": "wanted"}))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert list(plugin.filter_all(HOSTS, request)) == []
            reason = plugin.examine(HOSTS[0], request).reason
    assert reason == (
        "the flavor's traits are malformed: 'trait:A' = 'wanted': expected 'required' or "
        "'forbidden'"
    )
    (record,) = caplog.records
    assert (
        "A flavor fits no host, because its traits are malformed: 'trait:A'" in record.getMessage()
    )


def test_traits_filter_is_not_for_nova() -> None:
    assert TraitsFilter.in_nova is False
