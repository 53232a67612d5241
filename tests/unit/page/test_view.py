"""The content of the page, as plain values."""

import dataclasses
import logging
from collections.abc import Sequence
from typing import Any

import pytest

from steelyard.analysis.capacity import HostRooms
from steelyard.cloud import Aggregate, Cloud, Flavor, Host, Server
from steelyard.errors import PluginError
from steelyard.filters import base
from steelyard.groups import Policy, ServerGroup
from steelyard.page import View, view_of
from steelyard.page.view import BAR_WIDTH, CellMark, HostVerdict
from steelyard.scheduler import FilterScheduler, NoValidHost
from steelyard.verdict import Verdict

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
    """Return the mark and the reasons of each filter that rejects the host."""
    (row,) = [row for row in view.rows if row.host == host]
    texts = {reason.number: f"{reason.filter}: {reason.text}" for reason in view.reasons}
    return [
        (cell.mark.value, [texts[number] for number in cell.reasons])
        for cell in row.cells
        if cell.mark is not CellMark.PASSED
    ]


def test_cells_show_every_filter_for_every_host(scheduler: FilterScheduler) -> None:
    view = viewed(scheduler, "nvme")
    ssd = "AggregateInstanceTypeFilter: key 'ssd': flavor wants 'nvme'"
    assert cells(view, "a1") == []
    assert cells(view, "b2") == [
        ("decisive", ["InServiceFilter: the host is out of service: disabled"]),
        (
            "also",
            ["CapacityFilter: RAM: flavor wants 4 GiB, the host has 1 of 1 GiB left"],
        ),
        ("also", [f"{ssd}, aggregate 'rack-b' offers 'sata'"]),
    ]
    assert cells(view, "b1") == [
        (
            "decisive",
            ["CapacityFilter: RAM: flavor wants 4 GiB, the host has 2 of 2 GiB left"],
        ),
        ("also", [f"{ssd}, aggregate 'rack-b' offers 'sata'"]),
    ]
    assert cells(view, "alone") == [("decisive", [f"{ssd}, no aggregate of the host has the key"])]


def test_cell_has_all_reasons_of_filter(scheduler: FilterScheduler) -> None:
    many = dataclasses.replace(NVME, name="many", vcpus=99, root_gb=999)
    scheduler.cloud = dataclasses.replace(scheduler.cloud, flavors={"many": many})
    (found,) = cells(viewed(scheduler, "many"), "a1")
    assert [reason.partition(" flavor")[0] for reason in found[1]] == [
        "CapacityFilter: vCPUs:",
        "CapacityFilter: disk:",
    ]


def test_rows_are_sorted_by_verdict(
    scheduler: FilterScheduler,
) -> None:
    view = viewed(scheduler, "plain")
    assert [(row.host, row.verdict) for row in view.rows] == [
        ("alone", HostVerdict.CHOSEN),
        ("a2", HostVerdict.FITS),
        ("a1", HostVerdict.FITS),
        ("b1", HostVerdict.FITS),
        ("b2", HostVerdict.REJECTED),
    ]
    assert (view.fit, view.title) == (4, "plain goes to alone")
    assert view.chosen is view.rows[0]
    assert view.next_best is view.rows[1]
    assert view.rows[-1].weight is None


def test_randomly_chosen_host_comes_first(configured: Any) -> None:
    conf = configured("host_subset_size = 4", "seed = 3")
    scheduler = FilterScheduler(cloud(), conf)
    view = viewed(scheduler, "plain")
    assert view.rows[0].verdict is HostVerdict.CHOSEN
    weights = [row.weight or 0 for row in view.rows[1:4]]
    assert weights == sorted(weights, reverse=True)
    assert view.rows[0].host != "alone"  # the host with the highest weight


def test_view_without_fitting_host_has_no_chosen_row(scheduler: FilterScheduler) -> None:
    view = viewed(scheduler, "huge")
    assert (view.chosen, view.next_best, view.fit) == (None, None, 0)
    assert view.title == "No host fits huge"
    assert [(cause.filter, cause.hosts) for cause in view.causes] == [
        ("CapacityFilter", 4),
        ("InServiceFilter", 1),
    ]


def test_view_of_cloud_without_hosts_is_empty(conf: Any) -> None:
    scheduler = FilterScheduler(Cloud({}, flavors={"plain": Flavor("plain", 1, 1, 1)}), conf)
    view = viewed(scheduler, "plain")
    assert (view.rows, view.causes, view.reasons, view.aggregates) == ((), (), (), ())


def test_reasons_are_unique_and_sorted_by_frequency(
    scheduler: FilterScheduler,
) -> None:
    view = viewed(scheduler, "nvme")
    assert [reason.number for reason in view.reasons] == list(range(1, len(view.reasons) + 1))
    ssd = [reason for reason in view.reasons if reason.filter == "AggregateInstanceTypeFilter"]
    assert [reason.hosts for reason in ssd] == [2, 1]
    assert [name for name, _ in view.reasons_of_first(5)] == [
        "InServiceFilter",
        "CapacityFilter",
        "AggregateInstanceTypeFilter",
    ]


def test_causes_equal_causes_of_decision(scheduler: FilterScheduler) -> None:
    (decision,) = scheduler.select(scheduler.request("nvme")).decisions
    view = view_of(decision, scheduler)
    assert [(cause.hosts, cause.filter, cause.text) for cause in view.causes] == [
        (cause.count, cause.filter, cause.cause) for cause in decision.causes
    ]


def members(view: View, key: str) -> list[str]:
    return [row.host for row in view.rows if key in row.groups]


def test_aggregates_count_hosts(scheduler: FilterScheduler) -> None:
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


def test_causes_group_rejected_hosts(scheduler: FilterScheduler) -> None:
    view = viewed(scheduler, "nvme")
    for cause in view.causes:
        found = members(view, cause.key)
        assert len(found) == cause.hosts
        assert all(row.verdict is HostVerdict.REJECTED for row in view.rows if row.host in found)


def test_failure_domains_are_nested(configured: Any) -> None:
    scheduler = FilterScheduler(cloud(), configured("failure_domains = rack, room"))
    view = viewed(scheduler, "nvme")
    assert view.domain_keys == ("room", "rack")
    assert [(each.name, each.level, each.hosts, each.fit) for each in view.domains] == [
        ("room: north", 0, 4, 2),
        ("rack: a", 1, 2, 2),
        ("rack: b", 1, 2, 0),
        ("room: (missing)", 0, 1, 0),
        ("rack: (missing)", 1, 1, 0),
    ]
    assert members(view, view.domains[1].key) == ["a1", "a2"]


def test_view_without_failure_domains_option_has_no_domains(scheduler: FilterScheduler) -> None:
    assert viewed(scheduler, "nvme").domains == ()


def test_bars_share_scale_with_negative_weights_left_of_axis(configured: Any) -> None:
    lines = (
        "ram_weight_multiplier = -1",
        "cpu_weight_multiplier = 0",
        "soft_anti_affinity_weight_multiplier = 3",
        "enabled_weighers = RAMWeigher, CPUWeigher, ServerGroupSoftAntiAffinityWeigher",
    )
    view = viewed(FilterScheduler(cloud(), configured(*lines)), "nvme", "spread")
    # The longest bar has 3 units right of the axis and 1 left of it.
    assert view.axis == BAR_WIDTH / 4
    rows = {row.host: row for row in view.rows}
    assert rows["a1"].bar == (-BAR_WIDTH / 4,)  # has a server of the group
    assert list(rows["a2"].bar) == pytest.approx([-BAR_WIDTH / 6, 0, 3 * BAR_WIDTH / 4])
    assert [(each.name, each.used) for each in view.weighers] == [
        ("RAMWeigher", True),
        ("CPUWeigher", False),
        ("ServerGroupSoftAntiAffinityWeigher", True),
    ]
    assert [each.weigher for each in rows["a2"].contributions] == [
        "RAMWeigher",
        "CPUWeigher",
        "ServerGroupSoftAntiAffinityWeigher",
    ]
    assert sum(each.multiplied for each in rows["a2"].contributions) == rows["a2"].weight


def test_weights_of_0_have_no_bars(configured: Any) -> None:
    scheduler = FilterScheduler(
        cloud(), configured("ram_weight_multiplier = 0", "enabled_weighers = RAMWeigher")
    )
    view = viewed(scheduler, "plain")
    assert all(row.bar == () for row in view.rows)
    assert [row.weight for row in view.rows] == [0, 0, 0, 0, None]


def test_view_shows_flavor_and_server_group(scheduler: FilterScheduler) -> None:
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
    """A filter whose ``judge`` and ``passing`` disagree."""

    def __init__(self, objection: str, *, rejects: bool) -> None:
        super().__init__()
        self._objection = objection
        self._rejects = rejects

    def judge(self, request: object) -> base.Rejections:
        objections = [Verdict.rejected(self._objection)] if self._objection else []
        return lambda host: objections

    def passing(self, hosts: Sequence[object], request: object) -> Sequence[bool]:
        return [not self._rejects] * len(hosts)


def test_rejection_without_reason_is_shown(scheduler: FilterScheduler) -> None:
    scheduler.filters = {"Silent": Plugin("", rejects=True)}
    view = viewed(scheduler, "plain")
    assert cells(view, "a1") == [("decisive", ["Silent: no reason given"])]
    assert [cause.text for cause in view.causes] == ["no reason given"]


def test_rejection_without_reason_is_worded_the_same_everywhere(
    scheduler: FilterScheduler, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler.filters = {"Silent": Plugin("", rejects=True)}
    with pytest.raises(NoValidHost) as caught, caplog.at_level(logging.INFO):
        scheduler.select(scheduler.request("plain"))
    assert {each.reason for each in caught.value.decision.hosts} == {"no reason given"}
    assert caplog.messages[-1].endswith(": 5 by no reason given")
    assert {room.verdict.reason for room in HostRooms(scheduler).of("plain").rooms} == {
        "no reason given"
    }


def test_filter_reads_request_equally_often_for_any_number_of_hosts(conf: Any) -> None:
    reads = []
    for count in (1, 5):
        counted = Counted("", rejects=False)
        hosts = {f"h{number}": Host(f"h{number}", 8, 16384, 100) for number in range(count)}
        scheduler = FilterScheduler(Cloud(hosts, {}, {"nvme": NVME}), conf)
        scheduler.filters = {"Counted": counted}
        viewed(scheduler, "nvme")
        reads.append(counted.read)
    assert reads[0] == reads[1]


def test_reasons_and_causes_have_possible_typos(conf: Any) -> None:
    described = cloud()
    flavor = Flavor("typo", 1, 512, 1, {"ssd": "nvne", "trait:FAST": "required"})
    described = dataclasses.replace(described, flavors={"typo": flavor})
    scheduler = FilterScheduler(described, conf)
    view = viewed(scheduler, "typo")
    typo = ("no aggregate has the value 'nvne'; did you mean 'nvme'?",)
    name = "AggregateInstanceTypeFilter"
    assert {each.typos for each in view.reasons if each.filter == name} == {typo}
    assert {each.typos for each in view.reasons if each.filter != name} == {()}
    # The traits are the decisive reason of most hosts.
    assert {each.filter for each in view.causes} == {"TraitsFilter", "InServiceFilter"}
    assert {each.typos for each in view.causes} == {()}
    scheduler.filters.pop("TraitsFilter")
    view = viewed(scheduler, "typo")
    assert {each.typos for each in view.causes if each.filter == name} == {typo}


class Counted(Plugin):
    """A filter that counts how often it reads the request."""

    read = 0

    def judge(self, request: object) -> base.Rejections:
        self.read += 1
        return super().judge(request)


def test_rejections_of_passing_host_are_shown_as_also(scheduler: FilterScheduler) -> None:
    scheduler.filters = {"Lenient": Plugin("an objection", rejects=False)}
    view = viewed(scheduler, "plain")
    assert view.fit == 5
    assert cells(view, "a1") == [("also", ["Lenient: an objection"])]


def test_rejection_by_filter_on_trial_is_shown_as_also(configured: Any) -> None:
    view = viewed(
        FilterScheduler(cloud(), configured("trial_filters = AggregateInstanceTypeFilter")), "nvme"
    )
    assert view.rows[0].host == "alone"
    ((mark, (reason,)),) = cells(view, "alone")
    assert mark == "also"
    assert reason.startswith("AggregateInstanceTypeFilter: key 'ssd'")


class Broken(Plugin):
    def judge(self, request: object) -> base.Rejections:
        raise KeyError("rack")


def test_view_of_names_failing_filter(scheduler: FilterScheduler) -> None:
    scheduler.filters = {"Broken": Broken("", rejects=False)}
    (decision,) = scheduler.select(scheduler.request("plain")).decisions
    with pytest.raises(PluginError, match="the filter 'Broken' failed: KeyError: 'rack'"):
        view_of(decision, scheduler)


def test_view_of_rebuild_has_only_applied_filters(scheduler: FilterScheduler) -> None:
    (decision,) = scheduler.select_rebuild("s").decisions
    view = view_of(decision, scheduler)
    assert view.filters == ()
    assert [row.host for row in view.rows] == ["a1"]
    (moved,) = scheduler.select_move("s").decisions
    assert "a1" not in [row.host for row in view_of(moved, scheduler).rows]
