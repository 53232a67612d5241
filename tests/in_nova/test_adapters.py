"""What Nova loads when nova.conf names steelyard."""

import inspect
import logging
from typing import Any

import pytest
from nova import objects
from nova.scheduler import filters, weights
from oslo_config import cfg

import steelyard.nova
from steelyard import conf as options
from steelyard import plugins
from steelyard.errors import PluginError
from steelyard.filters.base import Filter
from steelyard.nova.adapters import is_rebuild
from steelyard.verdict import PASSED, Verdict
from steelyard.weighers.base import Weigher

objects.register_all()


class Odd(Filter):
    """Somebody's filter."""

    def examine(self, host: object, request: object) -> Verdict:
        return PASSED


class Long(Weigher):
    """Somebody's weigher."""

    def _weigh_object(self, host: object, request: object) -> float:
        return 1.0


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Adds plugins to those that are installed; a class that is None does not load."""
    real_installed, real_load = plugins.installed, plugins.load_classes

    def install(group: str, **classes: type[Any] | None) -> None:
        def load(asked: str, names: list[str]) -> dict[str, Any]:
            (name,) = names
            if asked == group and name in classes:
                found = classes[name]
                if found is None:
                    raise PluginError(f"{name!r} cannot be loaded")
                return {name: found}
            return real_load(asked, names)

        added = [plugins.Installed(group, name, "somebody 1.0") for name in classes]
        monkeypatch.setattr(
            plugins,
            "installed",
            lambda asked: sorted(real_installed(asked) + (added if asked == group else [])),
        )
        monkeypatch.setattr(plugins, "load_classes", load)

    return install


@pytest.fixture
def nova_weighers() -> Any:
    def configure(*names: str) -> None:
        options.register(cfg.CONF)
        cfg.CONF.set_override("nova_weighers", list(names), group=options.GROUP)

    yield configure
    cfg.CONF.clear_override("nova_weighers", group=options.GROUP)


def loaded_by_nova(*names: str) -> list[type[Any]]:
    found: list[type[Any]] = filters.HostFilterHandler().get_matching_classes(list(names))
    return found


def test_nova_accepts_the_functions() -> None:
    assert inspect.isfunction(steelyard.nova.all_filters)
    assert inspect.isfunction(steelyard.nova.all_weighers)


def test_nova_loads_its_own_filters_and_ours() -> None:
    classes = loaded_by_nova("nova.scheduler.filters.all_filters", "steelyard.nova.all_filters")
    names = [cls.__name__ for cls in classes]
    assert len(names) == len(set(names))
    assert {"ComputeFilter", "AggregateInstanceTypeFilter"} <= set(names)
    ours = classes[names.index("AggregateInstanceTypeFilter")]
    assert issubclass(ours, filters.BaseHostFilter)
    assert ours().run_filter_once_per_request
    assert ours.__module__ == "steelyard.nova"


def test_what_makes_no_sense_in_nova_is_not_offered() -> None:
    names = {cls.__name__ for cls in steelyard.nova.all_filters()}
    assert not names & {"CapacityFilter", "ServerGroupAffinityFilter", "RAMWeigher"}


def test_nova_loads_a_single_class_by_its_path() -> None:
    (cls,) = loaded_by_nova("steelyard.nova.AggregateInstanceTypeFilter")
    assert cls is steelyard.nova.AggregateInstanceTypeFilter
    assert cls in steelyard.nova.all_filters()
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchFilter'"):
        steelyard.nova.NoSuchFilter  # noqa: B018


def test_plugins_of_others_reach_nova(installed: Any) -> None:
    installed(plugins.FILTERS, OddFilter=Odd)
    names = {cls.__name__: cls for cls in steelyard.nova.all_filters()}
    assert issubclass(names["OddFilter"], Odd)
    assert list(names["OddFilter"]().filter_all([1, 2], None)) == [1, 2]
    assert steelyard.nova.OddFilter is names["OddFilter"]


def test_a_name_of_novas_is_refused(installed: Any) -> None:
    installed(plugins.FILTERS, ComputeFilter=Odd)
    with pytest.raises(PluginError, match="'ComputeFilter' has the name of one of Nova's own"):
        steelyard.nova.all_filters()
    with pytest.raises(PluginError, match="rename it, or uninstall"):
        steelyard.nova.ComputeFilter  # noqa: B018


def test_a_broken_plugin_is_left_out_and_logged(installed: Any, caplog: Any) -> None:
    installed(plugins.FILTERS, BrokenFilter=None)
    with caplog.at_level(logging.ERROR):
        names = [cls.__name__ for cls in steelyard.nova.all_filters()]
    assert "AggregateInstanceTypeFilter" in names
    assert "BrokenFilter" not in names
    assert "Left out: 'BrokenFilter' cannot be loaded" in caplog.text


def test_weighers_are_those_that_are_named(installed: Any, nova_weighers: Any, caplog: Any) -> None:
    installed(plugins.WEIGHERS, LongWeigher=Long, OtherWeigher=Long)
    nova_weighers("LongWeigher", "RAMWeigher", "NoSuchWeigher")
    with caplog.at_level(logging.ERROR):
        (cls,) = steelyard.nova.all_weighers()
    assert cls.__name__ == "LongWeigher"
    assert issubclass(cls, (Long, weights.BaseHostWeigher))
    assert "there is no weigher 'NoSuchWeigher'" in caplog.text
    found = weights.HostWeightHandler().get_matching_classes(["steelyard.nova.all_weighers"])
    assert found == [cls]


def test_the_weighers_are_the_soft_ones_unless_others_are_named() -> None:
    options.register(cfg.CONF)
    found = weights.HostWeightHandler().get_matching_classes(["steelyard.nova.all_weighers"])
    assert [cls.__name__ for cls in found] == [
        "ServerGroupSoftAffinityWeigher",
        "ServerGroupSoftAntiAffinityWeigher",
    ]
    assert all(issubclass(cls, weights.BaseHostWeigher) for cls in found)


@pytest.mark.parametrize(
    ("hints", "rebuild"),
    [
        (None, False),
        ({}, False),
        ({"_nova_check_type": ["rebuild"]}, True),
        ({"_nova_check_type": ["other"]}, False),
    ],
)
def test_a_rebuild_passes_where_a_filter_does_not_judge_rebuilds(hints: Any, rebuild: bool) -> None:
    spec = objects.RequestSpec(
        flavor=objects.Flavor(extra_specs={"ssd": "nvme"}),
        scheduler_hints=hints,
        instance_uuid="00000000-0000-4000-8000-000000000001",
    )
    assert is_rebuild(spec) is rebuild
    plugin, hosts = steelyard.nova.AggregateInstanceTypeFilter(), [object()]
    assert list(plugin.filter_all(hosts, spec)) == (hosts if rebuild else [])
    assert list(filters.HostFilterHandler().get_filtered_objects([plugin], hosts, spec)) == (
        hosts if rebuild else []
    )


def test_a_request_without_hints_is_no_rebuild() -> None:
    assert not is_rebuild(objects.RequestSpec())
    assert not is_rebuild(None)


@pytest.mark.parametrize(("multiplier", "count"), [(0.0, 1), (1000.0, 0)])
def test_soft_weigher_with_multiplier_0_warns_at_start(
    caplog: pytest.LogCaptureFixture, multiplier: float, count: int
) -> None:
    options.register(cfg.CONF)
    name = "soft_affinity_weight_multiplier"
    cfg.CONF.set_override(name, multiplier, group=options.GROUP)
    try:
        with caplog.at_level(logging.WARNING):
            weigher = steelyard.nova.ServerGroupSoftAffinityWeigher()
            steelyard.nova.ServerGroupSoftAntiAffinityWeigher()
    finally:
        cfg.CONF.clear_override(name, group=options.GROUP)
    assert list(weigher.weigh_objects([], None)) == []
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == count
    assert all(f"[steelyard] {name} is 0" in each for each in said)
