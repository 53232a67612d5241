import importlib.metadata
import pathlib
from typing import Any

import pytest

from steelyard import consumers, plugins
from steelyard.cloud import Cloud, Flavor
from steelyard.consumers.base import CONSUMER_MODELS
from steelyard.errors import MissingExtra, PluginError
from steelyard.filters.base import FILTERS
from steelyard.filters.capacity import CapacityFilter
from steelyard.scheduler import FilterScheduler
from steelyard.traits import CandidatesRequest
from steelyard.traits.requests import QUERY_BUILDERS
from steelyard.weighers.base import WEIGHERS

NOTHING = plugins.of_protocol("steelyard.nothing", object, kind="nothing")


def test_load_returns_plugins_in_the_order_of_the_names(conf: Any) -> None:
    names = ["CapacityFilter", "AggregateInstanceTypeFilter"]
    found = plugins.load(FILTERS, names, conf)
    assert list(found) == names
    assert isinstance(found["CapacityFilter"], CapacityFilter)


def test_installed_plugins_name_their_distribution() -> None:
    version = importlib.metadata.version("steelyard")
    assert plugins.Installed("RAMWeigher", f"steelyard {version}") in (plugins.installed(WEIGHERS))
    assert plugins.installed(NOTHING) == []


def test_installed_lists_plugins_of_a_folder_that_joins_the_search_path(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert plugins.installed(NOTHING) == []
    metadata = tmp_path / "joined-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: joined\nVersion: 1.0\n")
    (metadata / "entry_points.txt").write_text("[steelyard.nothing]\nB = b:B\nA = a:A\n")
    monkeypatch.syspath_prepend(tmp_path)
    both = [plugins.Installed("A", "joined 1.0"), plugins.Installed("B", "joined 1.0")]
    assert plugins.installed(NOTHING) == both


def test_load_with_an_unknown_name_lists_installed_plugins() -> None:
    with pytest.raises(PluginError) as caught:
        plugins.load_classes(WEIGHERS, ["RAMWeigher", "Nothing"])
    assert str(caught.value).startswith("no weigher 'Nothing'; installed: CPUWeigher (")
    assert caught.value.text == "Nothing"


def test_load_from_an_empty_group_says_so() -> None:
    with pytest.raises(PluginError, match="installed: none; install steelyard"):
        plugins.load_classes(NOTHING, ["Nothing"])


def test_query_builder_is_loaded_by_name() -> None:
    found = plugins.load_classes(QUERY_BUILDERS, ["traits"])
    assert found == {"traits": CandidatesRequest}
    assert QUERY_BUILDERS.kind == "query builder"
    with pytest.raises(PluginError, match="no query builder 'trait'"):
        plugins.load_classes(QUERY_BUILDERS, ["trait"])


def test_scheduler_uses_the_configured_query_builder(configured: Any) -> None:
    cloud = Cloud({}, flavors={"small": Flavor("small", 1, 1, 1, {"trait:A": "forbidden"})})
    request = FilterScheduler(cloud, configured()).query("small")
    assert request.query_string() == "required=!A&resources=DISK_GB:1,MEMORY_MB:1,VCPU:1"
    with pytest.raises(PluginError, match="no query builder 'missing'"):
        FilterScheduler(cloud, configured("query_builder = missing"))


class Broken:
    """A query builder whose requests have no query string."""

    @classmethod
    def from_flavor(cls, flavor: object) -> object:
        return object()


class Plain(Broken):
    """A query builder whose requests have nothing but a query string."""

    @classmethod
    def from_flavor(cls, flavor: object) -> object:
        return cls()

    def query_string(self) -> str:
        return "required=!A&resources=VCPU:1"


def test_query_needs_nothing_but_the_query_string_of_a_builder(
    configured: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    cloud = Cloud({}, flavors={"small": Flavor("small", 1, 1, 1)})
    scheduler = FilterScheduler(cloud, configured())
    monkeypatch.setattr(CandidatesRequest, "from_flavor", Plain.from_flavor)
    assert scheduler.query("small").microversion == "1.22"
    assert scheduler.resources("small") == {"VCPU": 1}
    monkeypatch.setattr(CandidatesRequest, "from_flavor", Broken.from_flavor)
    for method in (scheduler.query, scheduler.resources):
        with pytest.raises(
            PluginError, match=r"^the query builder 'traits' failed: AttributeError"
        ):
            method("small")


def test_plugin_error_names_the_kind_of_plugin() -> None:
    with pytest.raises(PluginError) as caught, plugins.blamed(QUERY_BUILDERS, "Own"):
        raise KeyError("rack")
    assert str(caught.value) == "the query builder 'Own' failed: KeyError: 'rack'"


def test_missing_extra_of_a_plugin_is_raised_unchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    def import_late(_: str) -> None:
        raise MissingExtra("the consumer store needs 'sqlalchemy'")

    monkeypatch.setattr(consumers, "__getattr__", import_late)
    with pytest.raises(MissingExtra, match=r"^the consumer store needs 'sqlalchemy'$"):
        plugins.load_with(CONSUMER_MODELS, "sql", "sqlite://")
