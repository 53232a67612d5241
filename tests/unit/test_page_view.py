"""What the page shows of decisions, before any of it is HTML."""

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from steelyard.desk.page import View, view_of
from steelyard.desk.page.view import BAR_WIDTH, Mark, Verdict
from steelyard.errors import PluginError
from steelyard.filters import base
from steelyard.groups import Policy, ServerGroup
from steelyard.scheduler import Aggregate, Cloud, FilterScheduler, Flavor, Host, NoValidHost, Server
from steelyard.verdict import PASSED
from steelyard.verdict import Verdict as Answer

NVME = Flavor("nvme", 2, 4096, 10, {"ssd": "nvme"})


def cloud() -> Cloud:
    hosts = [
        Host("a1", 8, 16384, 100),
        Host("a2", 8, 8192, 100),
        Host("b1", 8, 2048, 100),
        Host("b2", 1, 1024, 100, out_of_service="disabled"),
        Host("alone", 8, 32768, 100),
    ]
    aggregates = [
        Aggregate("rack-a", {"ssd": "nvme", "rack": "a"}, ("a1", "a2")),
        Aggregate("rack-b", {"ssd": "sata", "rack": "b"}, ("b1", "b2")),
        Aggregate("north", {"room": "north"}, ("a1", "a2", "b1", "b2")),
        Aggregate("empty", {}, ()),
    ]
    group = ServerGroup("spread", Policy.SOFT_ANTI_AFFINITY, uuid="g")
    return Cloud(
        {host.name: host for host in hosts},
        {aggregate.name: aggregate for aggregate in aggregates},
        {"nvme": NVME, "huge": Flavor("huge", 2, 999999, 10), "plain": Flavor("plain", 1, 512, 1)},
        {"spread": group},
    ).with_servers([Server("s", "s", NVME, "a1", "spread")])


def viewed(scheduler: FilterScheduler, flavor: str, group: str | None = None) -> View:
    try:
        (decision,) = scheduler.select(scheduler.request(flavor, group)).decisions
    except NoValidHost as error:
        decision = error.decision
    return view_of(decision, scheduler, "test")


@pytest.fixture
def scheduler(conf: Any) -> FilterScheduler:
    return FilterScheduler(cloud(), conf)


def cells(view: View, host: str) -> list[tuple[str, list[str]]]:
    """What the filters say of the host that do not just let it pass."""
    (row,) = [row for row in view.rows if row.host == host]
    texts = {reason.number: f"{reason.filter}: {reason.text}" for reason in view.reasons}
    return [
        (cell.mark.value, [texts[number] for number in cell.reasons])
        for cell in row.cells
        if cell.mark is not Mark.PASSED
    ]


def test_every_filter_is_asked_about_every_host(scheduler: FilterScheduler) -> None:
    view = viewed(scheduler, "nvme")
    ssd = "AggregateInstanceTypeFilter: key 'ssd': flavor wants 'nvme'"
    assert cells(view, "a1") == []
    assert cells(view, "b2") == [
        ("decisive", ["InServiceFilter: the host is out of service: disabled"]),
        (
            "also",
            ["CapacityFilter: MiB of RAM: flavor wants 4096, the host has 1024 of 1024 left"],
        ),
        ("also", [f"{ssd}, aggregate 'rack-b' offers 'sata'"]),
    ]
    assert cells(view, "b1") == [
        (
            "decisive",
            ["CapacityFilter: MiB of RAM: flavor wants 4096, the host has 2048 of 2048 left"],
        ),
        ("also", [f"{ssd}, aggregate 'rack-b' offers 'sata'"]),
    ]
    assert cells(view, "alone") == [("decisive", [f"{ssd}, no aggregate of the host has the key"])]


def test_all_reasons_of_a_filter_are_there(scheduler: FilterScheduler) -> None:
    many = dataclasses.replace(NVME, name="many", vcpus=99, root_gb=999)
    scheduler.cloud = dataclasses.replace(scheduler.cloud, flavors={"many": many})
    (found,) = cells(viewed(scheduler, "many"), "a1")
    assert [reason.partition(" flavor")[0] for reason in found[1]] == [
        "CapacityFilter: vCPUs:",
        "CapacityFilter: GiB of disk:",
    ]


def test_the_chosen_host_comes_first_then_those_that_fit_then_the_rejected(
    scheduler: FilterScheduler,
) -> None:
    view = viewed(scheduler, "plain")
    assert [(row.host, row.verdict) for row in view.rows] == [
        ("alone", Verdict.CHOSEN),
        ("a1", Verdict.FITS),
        ("a2", Verdict.FITS),
        ("b1", Verdict.FITS),
        ("b2", Verdict.REJECTED),
    ]
    assert (view.fit, view.title) == (4, "plain goes to alone")
    assert view.chosen is view.rows[0]
    assert view.next_best is view.rows[1]
    assert view.rows[-1].weight is None


def test_a_host_that_is_drawn_from_the_best_comes_first(configured: Any) -> None:
    conf = configured("host_subset_size = 4", "seed = 3")
    scheduler = FilterScheduler(cloud(), conf)
    view = viewed(scheduler, "plain")
    assert view.rows[0].verdict is Verdict.CHOSEN
    weights = [row.weight or 0 for row in view.rows[1:4]]
    assert weights == sorted(weights, reverse=True)
    assert view.rows[0].host != "alone"  # which weighs most


def test_no_host_fits(scheduler: FilterScheduler) -> None:
    view = viewed(scheduler, "huge")
    assert (view.chosen, view.next_best, view.fit) == (None, None, 0)
    assert view.title == "No host fits huge"
    assert [(cause.filter, cause.hosts) for cause in view.causes] == [
        ("CapacityFilter", 4),
        ("InServiceFilter", 1),
    ]


def test_a_cloud_without_hosts(conf: Any) -> None:
    scheduler = FilterScheduler(Cloud({}, flavors={"plain": Flavor("plain", 1, 1, 1)}), conf)
    view = viewed(scheduler, "plain")
    assert (view.rows, view.causes, view.reasons, view.aggregates) == ((), (), (), ())


def test_equal_reasons_are_there_once_with_the_most_frequent_first(
    scheduler: FilterScheduler,
) -> None:
    view = viewed(scheduler, "nvme")
    assert [reason.number for reason in view.reasons] == list(range(1, len(view.reasons) + 1))
    ssd = [reason for reason in view.reasons if reason.filter == "AggregateInstanceTypeFilter"]
    assert [reason.hosts for reason in ssd] == [2, 1]
    assert [name for name, _ in view.reasons_of_filters] == [
        "InServiceFilter",
        "CapacityFilter",
        "AggregateInstanceTypeFilter",
    ]


def test_causes_agree_with_those_of_the_decision(scheduler: FilterScheduler) -> None:
    (decision,) = scheduler.select(scheduler.request("nvme")).decisions
    view = view_of(decision, scheduler)
    assert [(cause.hosts, cause.filter, cause.text) for cause in view.causes] == [
        (cause.count, cause.filter, cause.cause) for cause in decision.causes
    ]


def members(view: View, key: str) -> list[str]:
    return [row.host for row in view.rows if key in row.groups]


def test_aggregates_count_their_hosts(scheduler: FilterScheduler) -> None:
    view = viewed(scheduler, "nvme")
    assert [
        (each.name, each.hosts, each.fit, each.rejected, each.chosen) for each in view.aggregates
    ] == [
        ("rack-a", 2, 2, 0, True),
        ("rack-b", 2, 0, 2, False),
        ("north", 4, 2, 2, True),
        ("empty", 0, 0, 0, False),
        ("in no aggregate", 1, 0, 1, False),
    ]
    for group in view.aggregates:
        assert len(members(view, group.key)) == group.hosts
    assert members(view, view.aggregates[-1].key) == ["alone"]
    assert dict(view.aggregates[0].metadata) == {"ssd": "nvme", "rack": "a"}


def test_causes_are_groups_as_well(scheduler: FilterScheduler) -> None:
    view = viewed(scheduler, "nvme")
    for cause in view.causes:
        found = members(view, cause.key)
        assert len(found) == cause.hosts
        assert all(row.verdict is Verdict.REJECTED for row in view.rows if row.host in found)


def test_failure_domains_lie_in_each_other(configured: Any) -> None:
    scheduler = FilterScheduler(cloud(), configured("failure_domains = rack, room"))
    view = viewed(scheduler, "nvme")
    assert view.domain_keys == ("room", "rack")
    assert [(each.name, each.level, each.hosts, each.fit) for each in view.domains] == [
        ("room: north", 0, 4, 2),
        ("rack: a", 1, 2, 2),
        ("rack: b", 1, 2, 0),
        ("room: not said", 0, 1, 0),
        ("rack: not said", 1, 1, 0),
    ]
    assert members(view, view.domains[1].key) == ["a1", "a2"]


def test_without_the_option_there_are_no_domains(scheduler: FilterScheduler) -> None:
    assert viewed(scheduler, "nvme").domains == ()


def test_bars_are_on_one_scale_with_negative_weights_left_of_the_axis(configured: Any) -> None:
    lines = ("ram_weight_multiplier = -1", "soft_anti_affinity_weight_multiplier = 3")
    view = viewed(FilterScheduler(cloud(), configured(*lines)), "nvme", "spread")
    # Of at most 3 right of the axis and 1 left of it.
    assert view.axis == BAR_WIDTH / 4
    rows = {row.host: row for row in view.rows}
    (ram,) = rows["a1"].segments  # the server of the group is here
    assert (ram.style, ram.start, ram.start + ram.width) == (0, 0, view.axis)
    ram, apart = rows["a2"].segments
    assert ram.start + ram.width == view.axis == apart.start
    assert apart.start + apart.width == BAR_WIDTH
    assert [(each.name, each.used) for each in view.weighers] == [
        ("RAMWeigher", True),
        ("ServerGroupSoftAffinityWeigher", False),
        ("ServerGroupSoftAntiAffinityWeigher", True),
    ]
    assert [each.weigher for each in rows["a2"].contributions] == [
        "RAMWeigher",
        "ServerGroupSoftAntiAffinityWeigher",
    ]
    assert sum(each.multiplied for each in rows["a2"].contributions) == rows["a2"].weight


def test_where_nothing_weighs_anything_there_are_no_bars(configured: Any) -> None:
    scheduler = FilterScheduler(cloud(), configured("ram_weight_multiplier = 0"))
    view = viewed(scheduler, "plain")
    assert all(row.segments == () for row in view.rows)
    assert [row.weight for row in view.rows] == [0, 0, 0, 0, None]


def test_what_is_asked_for(scheduler: FilterScheduler) -> None:
    view = viewed(scheduler, "nvme", "spread")
    assert (view.flavor.name, view.flavor.memory_mb, dict(view.flavor.extra_specs)) == (
        "nvme",
        4096,
        {"ssd": "nvme"},
    )
    assert view.group is not None
    assert (view.group.policy, view.group.hosts) == ("soft-anti-affinity", ("a1",))
    assert viewed(scheduler, "nvme").group is None


class Plugin(base.Filter):
    """A filter whose parts do not agree."""

    def __init__(self, objection: str, *, rejects: bool) -> None:
        super().__init__()
        self._objection = objection
        self._rejects = rejects

    def examine(self, host: object, request: object) -> Answer:
        return Answer.rejected(self._objection) if self._objection else PASSED

    def host_passes(self, host: object, request: object) -> bool:
        return not self._rejects


def test_a_filter_that_does_not_say_why(scheduler: FilterScheduler) -> None:
    scheduler.filters = {"Silent": Plugin("", rejects=True)}
    view = viewed(scheduler, "plain")
    assert cells(view, "a1") == [("decisive", ["Silent: it gives no reason"])]
    assert [cause.text for cause in view.causes] == ["it gives no reason"]


def test_a_filter_that_is_against_what_it_lets_pass(scheduler: FilterScheduler) -> None:
    scheduler.filters = {"Lenient": Plugin("not so nice", rejects=False)}
    view = viewed(scheduler, "plain")
    assert view.fit == 5
    assert cells(view, "a1") == [("also", ["Lenient: not so nice"])]


def test_a_filter_that_would_reject_if_it_were_enforced(configured: Any) -> None:
    view = viewed(FilterScheduler(cloud(), configured("enforce = false")), "nvme")
    assert view.rows[0].host == "alone"
    ((mark, (reason,)),) = cells(view, "alone")
    assert mark == "also"
    assert reason.startswith("AggregateInstanceTypeFilter: key 'ssd'")


class Broken(Plugin):
    def rejections(self, host: object, request: object) -> Iterator[Answer]:
        raise KeyError("rack")


def test_a_filter_that_fails_is_named(scheduler: FilterScheduler) -> None:
    scheduler.filters = {"Broken": Broken("", rejects=False)}
    (decision,) = scheduler.select(scheduler.request("plain")).decisions
    with pytest.raises(PluginError, match="the filter 'Broken' has failed: KeyError: 'rack'"):
        view_of(decision, scheduler)


def test_a_rebuild_asks_only_the_filters_that_were_asked(scheduler: FilterScheduler) -> None:
    (decision,) = scheduler.select_rebuild("s").decisions
    view = view_of(decision, scheduler)
    assert view.filters == ()
    assert [row.host for row in view.rows] == ["a1"]
    (moved,) = scheduler.select_move("s").decisions
    assert "a1" not in [row.host for row in view_of(moved, scheduler).rows]
