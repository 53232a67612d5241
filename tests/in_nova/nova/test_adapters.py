"""The plugins that Nova loads if nova.conf names steelyard."""

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
from steelyard.filters.base import FILTERS, Filter, Rejections
from steelyard.nova.adapters import _warn_of_unknown_options, is_rebuild
from steelyard.verdict import Verdict
from steelyard.weighers.base import WEIGHERS, Weigher

objects.register_all()


class Odd(Filter):
    """A filter of another distribution."""

    def judge(self, request: object) -> Rejections:
        return lambda host: ()


class Long(Weigher):
    """A weigher of another distribution."""

    def _weigh_object(self, host: object, request: object) -> float:
        return 1.0


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return a function that installs plugins; a class of None cannot be loaded."""
    real_installed, real_load = plugins.installed, plugins.load_classes

    def install(group: plugins.EntryPointGroup, **classes: type[Any] | None) -> None:
        def load(asked: plugins.EntryPointGroup, names: list[str]) -> dict[str, Any]:
            (name,) = names
            if asked == group and name in classes:
                found = classes[name]
                if found is None:
                    raise PluginError(f"{name!r} cannot be loaded")
                return {name: found}
            return real_load(asked, names)

        added = [plugins.Installed(name, "other 1.0") for name in classes]
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


def test_nova_accepts_all_filters_and_all_weighers() -> None:
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


def test_plugins_not_for_nova_are_left_out() -> None:
    names = {cls.__name__ for cls in steelyard.nova.all_filters()}
    assert not names & {"CapacityFilter", "ServerGroupAffinityFilter", "RAMWeigher"}


def test_nova_loads_a_single_class_by_its_path() -> None:
    (cls,) = loaded_by_nova("steelyard.nova.AggregateInstanceTypeFilter")
    assert cls is steelyard.nova.AggregateInstanceTypeFilter
    assert cls in steelyard.nova.all_filters()
    with pytest.raises(AttributeError, match="has no attribute 'NoSuchFilter'"):
        steelyard.nova.NoSuchFilter  # noqa: B018


def test_plugins_of_other_distributions_reach_nova(installed: Any) -> None:
    installed(FILTERS, OddFilter=Odd)
    names = {cls.__name__: cls for cls in steelyard.nova.all_filters()}
    assert issubclass(names["OddFilter"], Odd)
    assert list(names["OddFilter"]().filter_all([1, 2], None)) == [1, 2]
    assert steelyard.nova.OddFilter is names["OddFilter"]


def test_filter_with_a_name_of_novas_is_rejected(installed: Any) -> None:
    installed(FILTERS, ComputeFilter=Odd)
    with pytest.raises(PluginError, match="'ComputeFilter' has the name of one of Nova's own"):
        steelyard.nova.all_filters()
    with pytest.raises(PluginError, match="rename it, or uninstall"):
        steelyard.nova.ComputeFilter  # noqa: B018


def test_broken_plugin_is_logged_and_left_out(installed: Any, caplog: Any) -> None:
    installed(FILTERS, BrokenFilter=None)
    with caplog.at_level(logging.ERROR):
        names = [cls.__name__ for cls in steelyard.nova.all_filters()]
    assert "AggregateInstanceTypeFilter" in names
    assert "BrokenFilter" not in names
    assert "Plugin left out: 'BrokenFilter' cannot be loaded" in caplog.text


def test_all_weighers_returns_the_configured_weighers(
    installed: Any, nova_weighers: Any, caplog: Any
) -> None:
    installed(WEIGHERS, LongWeigher=Long, OtherWeigher=Long)
    nova_weighers("LongWeigher", "RAMWeigher", "NoSuchWeigher")
    with caplog.at_level(logging.WARNING):
        (cls,) = steelyard.nova.all_weighers()
    assert cls.__name__ == "LongWeigher"
    assert issubclass(cls, (Long, weights.BaseHostWeigher))
    logged = [each.getMessage() for each in caplog.records if each.name == "steelyard.nova"]
    assert logged[0].startswith("Weigher 'RAMWeigher' of [steelyard] nova_weighers left out")
    assert logged[1].startswith("Plugin left out: no weigher 'NoSuchWeigher'")
    assert len(logged) == 2
    found = weights.HostWeightHandler().get_matching_classes(["steelyard.nova.all_weighers"])
    assert found == [cls]


def test_all_weighers_defaults_to_the_soft_affinity_weighers() -> None:
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
def test_rebuild_passes_filters_that_do_not_run_on_rebuild(hints: Any, rebuild: bool) -> None:
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


class Picky(Odd):
    """A filter that rejects every host, also for rebuilds."""

    RUN_ON_REBUILD = True

    def judge(self, request: object) -> Rejections:
        return lambda host: (Verdict.rejected(f"not {host}", "not this one"),)


def test_filter_that_runs_on_rebuild_can_reject_it(installed: Any) -> None:
    installed(FILTERS, PickyFilter=Picky)
    spec = objects.RequestSpec(
        scheduler_hints={"_nova_check_type": ["rebuild"]},
        instance_uuid="00000000-0000-4000-8000-000000000001",
    )
    plugin = steelyard.nova.PickyFilter()
    assert list(filters.HostFilterHandler().get_filtered_objects([plugin], [1, 2], spec)) == []


@pytest.fixture
def trial_filters() -> Any:
    def configure(*names: str) -> None:
        options.register(cfg.CONF)
        cfg.CONF.set_override("trial_filters", list(names), group=options.GROUP)

    yield configure
    cfg.CONF.clear_override("trial_filters", group=options.GROUP)


@pytest.mark.parametrize("on_trial", [False, True])
@pytest.mark.parametrize("iterable", [list, tuple, iter])
def test_filter_of_another_distribution_can_be_on_trial(
    installed: Any, trial_filters: Any, caplog: Any, on_trial: bool, iterable: Any
) -> None:
    installed(FILTERS, PickyFilter=Picky)
    trial_filters(*["PickyFilter"] * on_trial)
    plugin, spec = steelyard.nova.PickyFilter(), objects.RequestSpec()
    with caplog.at_level(logging.INFO):
        assert list(plugin.filter_all(iterable([1, 2]), spec)) == [1, 2] * on_trial
    messages = [
        record.getMessage() for record in caplog.records if "PickyFilter" in record.getMessage()
    ]
    rejects = "would reject" if on_trial else "rejects"
    assert messages == [f"PickyFilter {rejects} 2 of 2 hosts for server None: 2 by not this one"]
    assert plugin.host_passes(1, spec) is on_trial
    assert plugin.examine(1, spec).reason == "not 1"


def test_request_without_hints_is_not_a_rebuild() -> None:
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
    messages = [record.getMessage() for record in caplog.records]
    assert len(messages) == count
    assert all(f"[steelyard] {name} is 0" in each for each in messages)


@pytest.mark.parametrize("kind", ["filter", "weigher"])
def test_unknown_options_are_logged_at_the_first_request(
    monkeypatch: pytest.MonkeyPatch, caplog: Any, tmp_path: Any, kind: str
) -> None:
    path = tmp_path / "nova.conf"
    path.write_text(
        "[steelyard]\nlicence = x\nfailure_domain = rack\n[filter_scheduler]\nzzzzzz = 1\n"
    )
    conf = cfg.ConfigOpts()
    conf([], project="nova", default_config_files=[str(path)], default_config_dirs=[])
    monkeypatch.setattr(cfg, "CONF", conf)
    _warn_of_unknown_options.cache_clear()
    if kind == "filter":
        found = steelyard.nova.AggregateInstanceTypeFilter()
        ask = found.filter_all
    else:
        found = steelyard.nova.ServerGroupSoftAffinityWeigher()
        ask = found.weigh_objects
    # A plugin that is constructed later registers an option.
    conf.register_opts([cfg.StrOpt("licence")], group="steelyard")
    assert [record for record in caplog.records if "licence" in record.getMessage()] == []
    for _ in range(2):
        list(ask([], objects.RequestSpec()))
    (record,) = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert record.getMessage() == (
        f"Unknown option ignored: {path}:3: [steelyard] failure_domain; did you mean "
        "'failure_domains'?"
    )
