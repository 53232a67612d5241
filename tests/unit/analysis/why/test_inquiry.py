"""The way from facts to an answer."""

import dataclasses
import datetime
from collections.abc import Sequence
from typing import Any, TypeVar

from steelyard import errors
from steelyard.analysis.why.answer import Answer
from steelyard.analysis.why.building import built
from steelyard.analysis.why.cloud_facts import facts_of
from steelyard.analysis.why.facts import Facts, GivenRequest, ServerRecord
from steelyard.analysis.why.inquiry import Inquiry
from steelyard.analysis.why.local import LocalPlacement
from steelyard.analysis.why.placement_view import Candidates
from steelyard.analysis.why.stages import Stage
from steelyard.analysis.why.switches import Switches
from steelyard.cloud import Cloud, Flavor, Host, Server
from steelyard.cloud.wanted import Source
from steelyard.groups import Policy, ServerGroup
from steelyard.scheduler.rules import NovaAnswer, NovaVerdict
from steelyard.traits import CandidatesRequest, ProvidersRequest
from support.analysis.wanted_servers import wanted_server

T = TypeVar("T")

NOW = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
FLAVOR = Flavor("small", 1, 512, 1, {"ssd": "nvme"})
CLOUD = Cloud({"host1": Host("host1", 8, 1024, 10)}, {}, {"small": FLAVOR})


class Unreachable:
    """A Placement that does not answer."""

    def candidates(self, request: object) -> Any:
        raise errors.NoAccess("request to Placement failed: connection refused")

    def providers(self, request: object) -> Any:
        raise errors.NoAccess("request to Placement failed: connection refused")


class Stopping:
    """A Placement that answers some requests, and no more."""

    def __init__(self, answers: int, cloud: Cloud = CLOUD) -> None:
        self._left = answers
        self._placement = LocalPlacement(cloud)

    def candidates(self, request: CandidatesRequest) -> Candidates:
        self._answer()
        return self._placement.candidates(request)

    def providers(self, request: ProvidersRequest) -> frozenset[str]:
        self._answer()
        return self._placement.providers(request)

    def _answer(self) -> None:
        if not self._left:
            raise errors.NoAccess("request to Placement failed: connection refused")
        self._left -= 1


class Rejecting:
    """Rules by which Nova's filter rejects every host."""

    name = "rejecting"

    def judge(self, extra_specs: object, aggregates: object) -> NovaVerdict:
        return NovaVerdict(NovaAnswer.REJECTS)


def facts(fault: str = "") -> Facts:
    found = facts_of(CLOUD, None, GivenRequest(flavor="small"))
    record = ServerRecord(uuid="u", name="web-1", status="ERROR", fault=fault)
    return Facts(wanted=found.wanted, record=record, hosts=found.hosts, aggregates=[])


def answer(about: Facts, **options: Any) -> Answer:
    means = {
        "switches": Switches(),
        "placement": LocalPlacement(CLOUD),
        "observed": Source.NOW,
        **options,
    }
    return Inquiry(**means).answer(about, NOW)


def test_placement_that_does_not_answer_leaves_the_record() -> None:
    for placement, why in (
        (None, "Placement is not in the service catalog"),
        (Unreachable(), "request to Placement failed: connection refused"),
    ):
        found = answer(facts("No valid host was found. "), placement=placement)
        assert found.stage is Stage.PLACEMENT
        assert found.text.startswith("when the request failed, Placement had no candidates")
        assert found.explains
        assert f"whether Placement has candidates: {why}" in found.not_known


def test_placement_that_stops_half_way_leaves_what_was_found() -> None:
    wanted = Flavor("huge", 1, 4096, 1)
    about = dataclasses.replace(facts(), wanted=wanted_server(wanted))
    whole = answer(about)
    assert whole.text.startswith(
        "no host in Placement meets all demands now; to mend: 4 GiB of RAM;"
    )
    for answers, expected in (
        (1, "the demands to mend are not known"),
        (2, "to mend, among others: 4 GiB of RAM"),
    ):
        found = answer(about, placement=Stopping(answers))
        assert found.stage is Stage.PLACEMENT
        assert found.text == f"no host in Placement meets all demands now; {expected}"
        assert (
            "all demands to mend: request to Placement failed: connection refused"
            in found.not_known
        )


def test_progress_through_the_demands_is_shown() -> None:
    shown: list[tuple[str, int]] = []

    def watch(items: Sequence[T], what: str) -> Sequence[T]:
        shown.append((what, len(items)))
        return items

    wanted = wanted_server(flavor=Flavor("huge", 1, 4096, 1))
    about = dataclasses.replace(facts(), wanted=wanted)
    found = answer(about, watch=watch)
    assert len(found.evidence.repair) == 1
    demands = len(built(about, Switches(), Source.NOW).demands)
    assert shown == [("demands", demands), ("demands to mend", 1)]


TOGETHER = Cloud(
    {"host1": Host("host1", 8, 1024, 10), "host2": Host("host2", 8, 1024, 10)},
    {},
    {"small": FLAVOR, "most": Flavor("most", 1, 1024, 1)},
    {"g": ServerGroup("g", Policy.AFFINITY)},
).with_servers([Server("u", "one", Flavor("most", 1, 1024, 1), "host1", "g")])


def test_full_host_of_affinity_group_is_searched_within_the_bound() -> None:
    about = facts_of(TOGETHER, None, GivenRequest(flavor="small", group="g"))
    found = answer(about, placement=LocalPlacement(TOGETHER))
    assert found.stage is Stage.FILTERS
    assert found.text.endswith("; host 'host1' of the group does not offer: 512 MiB of RAM")
    demands = len(built(about, Switches(), Source.NOW).demands) + 1  # that for the host
    assert found.evidence.requests <= demands + 2 * len(found.evidence.repair) + 2


def test_interrupted_search_for_the_host_of_a_group_leaves_the_filters() -> None:
    about = facts_of(TOGETHER, None, GivenRequest(flavor="small", group="g"))
    found = answer(about, placement=Stopping(1, TOGETHER))
    assert found.stage is Stage.FILTERS
    assert found.text.endswith("; host 'host1' of the group is not selected")
    assert found.evidence.causes
    assert "all demands to mend: request to Placement failed: connection refused" in found.not_known


def test_placement_is_not_asked_if_nova_ends_the_request() -> None:
    switches = Switches(
        limit_tenants_to_placement_aggregate=True,
        placement_aggregate_required_for_tenants=True,
    )
    about = Facts(wanted=wanted_server(FLAVOR, project="p"), hosts=[], aggregates=[])
    found = answer(about, switches=switches, placement=Unreachable())
    assert (found.stage, found.evidence.requests) == (Stage.PLACEMENT, 0)
    assert "'p'" in found.text


def test_rules_of_installed_nova_judge_extra_specs() -> None:
    switches = Switches(enabled_filters=("AggregateInstanceExtraSpecsFilter",), assumed=False)
    found = answer(facts(), switches=switches, rules=Rejecting())
    assert found.stage is Stage.FILTERS
    assert "'ssd'" in found.text


def test_difference_from_installed_nova_is_listed() -> None:
    def nova(wanted: object, **options: object) -> tuple[list[str], str]:
        return ["resources=VCPU:2"], ""

    found = answer(facts(), nova=nova)
    assert len(found.differences) == 2
    assert any("VCPU:2" in each for each in found.differences)


def test_extra_spec_that_nova_ignores_is_listed() -> None:
    about = Facts(wanted=wanted_server(Flavor("small", 1, 512, 1, {"trait:CUSTOM_A": "yes"})))
    (ignored,) = answer(about).ignored
    assert ignored.startswith("Nova ignores flavor 'small', extra spec 'trait:CUSTOM_A' = 'yes'")
