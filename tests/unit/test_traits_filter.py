import dataclasses
import logging
from typing import Any

import pytest
from clouds import Flavor, Request

from steelyard.filters.traits import TraitsFilter


@dataclasses.dataclass(eq=False)
class Host:
    host: str
    traits: Any = None


HOSTS = [Host("plain"), Host("gpu", frozenset({"CUSTOM_GPU"})), Host("both", {"CUSTOM_GPU", "A"})]


def passing(extra_specs: Any, *hosts: Host) -> list[str]:
    """The hosts that pass, by ``filter_all`` and by ``examine`` alike."""
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
def test_hosts_by_their_traits(extra_specs: Any, found: Any) -> None:
    assert passing(extra_specs) == found


@pytest.mark.parametrize("odd", ["CUSTOM_GPU", 5, iter(["CUSTOM_GPU"]), [["CUSTOM_GPU"]], None])
def test_odd_traits_of_a_host_are_none(odd: Any) -> None:
    assert passing({"trait:CUSTOM_GPU": "required"}, Host("odd", odd)) == []
    assert passing({"trait:C": "required"}, Host("odd", odd)) == []
    assert passing({"trait:CUSTOM_GPU": "forbidden"}, Host("odd", odd)) == ["odd"]


def test_reasons() -> None:
    plugin = TraitsFilter()
    wanting = Request(Flavor({"trait:A": "required", "trait:CUSTOM_GPU": "forbidden"}))
    assert plugin.examine(HOSTS[0], wanting).reason == "trait A is required and not there"
    assert plugin.examine(HOSTS[2], wanting).reason == "trait CUSTOM_GPU is forbidden and there"


def test_malformed_traits_are_warned_about_once(caplog: Any) -> None:
    plugin, request = TraitsFilter(), Request(Flavor({"trait:A": "wanted"}))
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert list(plugin.filter_all(HOSTS, request)) == []
            reason = plugin.examine(HOSTS[0], request).reason
    assert reason == (
        "the flavor's traits are malformed: 'trait:A' = 'wanted': a trait is 'required' or "
        "'forbidden', and nothing else"
    )
    (record,) = caplog.records
    assert "A flavor fits no host, for its traits are malformed: 'trait:A'" in record.getMessage()


def test_nova_is_not_offered_it() -> None:
    assert TraitsFilter.in_nova is False
