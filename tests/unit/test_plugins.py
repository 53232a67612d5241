import importlib.metadata
from typing import Any

import pytest

from steelyard import plugins
from steelyard.errors import PluginError
from steelyard.filters.capacity import CapacityFilter
from steelyard.scheduler import Cloud, FilterScheduler, Flavor
from steelyard.traits import CandidatesRequest


def test_plugins_are_loaded_by_name_in_the_order_given(conf: Any) -> None:
    names = ["CapacityFilter", "AggregateInstanceTypeFilter"]
    found = plugins.load(plugins.FILTERS, names, conf)
    assert list(found) == names
    assert isinstance(found["CapacityFilter"], CapacityFilter)


def test_what_is_installed_says_where_it_comes_from() -> None:
    version = importlib.metadata.version("steelyard")
    assert plugins.Installed(plugins.WEIGHERS, "RAMWeigher", f"steelyard {version}") in (
        plugins.installed(plugins.WEIGHERS)
    )
    assert plugins.installed("steelyard.nothing") == []


def test_a_name_that_nobody_provides() -> None:
    with pytest.raises(PluginError) as caught:
        plugins.load_classes(plugins.WEIGHERS, ["RAMWeigher", "Nothing"])
    assert str(caught.value).startswith("there is no weigher 'Nothing'; installed are RAMWeigher (")


def test_a_group_in_which_nothing_is_installed() -> None:
    with pytest.raises(PluginError, match="none at all"):
        plugins.load_classes("steelyard.nothing", ["Nothing"])


def test_the_query_builder_is_loaded_by_name() -> None:
    found = plugins.load_classes(plugins.QUERY_BUILDERS, ["traits"])
    assert found == {"traits": CandidatesRequest}
    (plugin,) = plugins.installed(plugins.QUERY_BUILDERS)
    assert plugin.kind == "query builder"
    with pytest.raises(PluginError, match="there is no query builder 'trait'"):
        plugins.load_classes(plugins.QUERY_BUILDERS, ["trait"])


def test_the_embedded_scheduler_asks_the_query_builder_that_is_named(configured: Any) -> None:
    cloud = Cloud({}, flavors={"small": Flavor("small", 1, 1, 1, {"trait:A": "forbidden"})})
    request = FilterScheduler(cloud, configured()).query("small")
    assert request.query_string() == "required=!A&resources=DISK_GB:1,MEMORY_MB:1,VCPU:1"
    with pytest.raises(PluginError, match="there is no query builder 'nobody'"):
        FilterScheduler(cloud, configured("query_builder = nobody"))
