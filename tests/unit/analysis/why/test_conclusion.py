"""The conclusion: the stage and the answer in one sentence."""

import dataclasses
import datetime
from typing import Any

import pytest

from steelyard.analysis.why.conclusion import Evidence, GroupHost, ago, concluded
from steelyard.analysis.why.demands import DemandKind, DemandPart, PlacementDemand
from steelyard.analysis.why.facts import Facts, ServerEvent, ServerRecord
from steelyard.analysis.why.filtering import FilterCause, Filtering
from steelyard.analysis.why.placement_view import CandidateRoot, Candidates
from steelyard.analysis.why.repair import RepairMember, Searched
from steelyard.analysis.why.stages import Stage
from steelyard.cloud import Flavor
from steelyard.cloud.wanted import Source, WantedServer
from steelyard.traits import RequestGroup, TraitQuery

NOW = datetime.datetime(2026, 11, 20, 12, tzinfo=datetime.UTC)
FLAVOR = Flavor("f", 1, 512, 1)
NONE = Candidates({}, 0)


def facts(fault: str = "", count: int = 1) -> Facts:
    record = ServerRecord(
        uuid="u", name="web-1", status="ERROR", fault=fault, failed_at="2026-11-20T09:00:00Z"
    )
    return Facts(wanted=WantedServer(flavor=FLAVOR, count=count), record=record)


def member(text: str, trait: str = "", alone: int | None = 0) -> RepairMember:
    traits = TraitQuery(frozenset([trait] if trait else []))
    part = DemandPart(group=RequestGroup(traits=traits))
    demand = PlacementDemand(
        kind=DemandKind.TRAIT, part=part, text=text, origin="flavor 'f'", source=Source.RECORD
    )
    return RepairMember(demand, "", alone, 2)


def searched(
    *members: RepairMember, truncated: bool = False, traits: frozenset[str] = frozenset()
) -> Searched:
    repaired = Candidates({"1": CandidateRoot("1", "", {}, traits)}, 1)
    return Searched(NONE, truncated, members, repaired, (), 7)


def filtering(hosts: int, *causes: tuple[str, int], fitting: int = 0, room: int = 1) -> Filtering:
    found = [FilterCause("F", cause, count) for cause, count in causes]
    return Filtering(hosts, [f"host{number}" for number in range(fitting)], found, [], room)


def conclusion(**evidence: Any) -> tuple[Stage, str]:
    found = {"facts": facts(), "asked_at": NOW, **evidence}
    return tuple(concluded(Evidence(**found)))  # type: ignore[return-value]


def test_build_failure_comes_before_all_other_evidence() -> None:
    fault = "Build of instance u aborted: no volume"
    found = conclusion(facts=facts(fault), searched=searched(member("trait A required")))
    assert found == (
        Stage.BUILD,
        f"a host was chosen, and the build of the server failed: {fault}",
    )


def placed(fault: str = "", status: str = "ERROR", **more: Any) -> Facts:
    record = ServerRecord(uuid="u", name="web-1", status=status, host="host1", fault=fault, **more)
    return Facts(wanted=WantedServer(flavor=FLAVOR), record=record)


RESIZED = ServerEvent(action="resize", event="", at="", result="Error")


@pytest.mark.parametrize(
    ("about", "stage", "expected"),
    [
        (
            placed("no power", last_action="reboot"),
            Stage.BUILD,
            "and the action 'reboot' failed: no power",
        ),
        (placed("no power"), Stage.BUILD, "and an action on it failed: no power"),
        (
            placed(status="ACTIVE", events=[RESIZED]),
            Stage.BUILD,
            "and the action 'resize' on it failed; ask for another flavor or host with --flavor or "
            "--host",
        ),
        (placed(status="BUILD"), Stage.BUILD, "and its build there has not finished"),
        (placed(status="ACTIVE"), Stage.FITS_NOW, "and has no recorded fault"),
    ],
)
def test_server_on_a_host_is_no_new_request(about: Facts, stage: Stage, expected: str) -> None:
    found = conclusion(facts=about, searched=searched(member("trait A required")))
    assert found == (stage, f"server 'web-1' is on host 'host1', {expected}")


def test_server_on_a_host_is_judged_with_options() -> None:
    wanted = WantedServer(flavor=FLAVOR, sources={"host": Source.OPTION})
    about = dataclasses.replace(placed(status="ACTIVE"), wanted=wanted)
    stage, _ = conclusion(facts=about, searched=searched(member("trait A required")))
    assert stage is Stage.PLACEMENT


def test_error_of_the_scheduler_is_no_failure_of_a_build() -> None:
    event = ServerEvent(
        action="create", event="conductor_schedule_and_build_instances", at="", result="Error"
    )
    record = ServerRecord(uuid="u", name="web-1", status="ERROR", fault="Timed out", events=[event])
    about = Facts(wanted=WantedServer(flavor=FLAVOR), record=record)
    assert conclusion(facts=about, searched=searched()) == (
        Stage.FILTERS,
        "scheduling failed with an error before a host was chosen: Timed out",
    )


def test_answer_names_the_stage_of_the_failure_if_it_differs() -> None:
    fault = "No valid host was found. There are not enough hosts available."
    _, text = conclusion(facts=facts(fault), searched=searched(member("trait A required")))
    assert text.endswith(
        "; when the request failed, the filters left no host, or another request took the last one"
    )
    _, text = conclusion(
        facts=facts("No valid host was found. "),
        searched=searched(),
        filtering=filtering(1, ("cause", 1)),
    )
    assert text.endswith(
        "; when the request failed, Placement had no candidates, or did not answer"
    )


def test_demands_that_could_not_be_judged_are_counted() -> None:
    found = dataclasses.replace(searched(member("1 vCPU")), unjudged=(member("x").demand,))
    _, text = conclusion(searched=found)
    assert text.endswith("to mend: 1 vCPU; 1 demand could not be judged")


def test_placement_whose_answers_change_is_to_be_asked_again() -> None:
    found = dataclasses.replace(searched(), repaired=NONE)
    _, text = conclusion(searched=found, filtering=filtering(0))
    assert text == "Placement's answers changed meanwhile; ask again"


def test_request_that_nova_does_not_send() -> None:
    assert conclusion(failure="no aggregate for project 'p'") == (
        Stage.PLACEMENT,
        "Nova sends no request to Placement now: no aggregate for project 'p'",
    )


@pytest.mark.parametrize(
    ("members", "left", "expected"),
    [
        (
            [member("trait A required")],
            filtering(3, fitting=3),
            "to mend: trait A required; without it, 3 hosts remain",
        ),
        (
            [member("trait A required"), member("64 vCPUs")],
            filtering(1, fitting=1),
            "to mend: trait A required; 64 vCPUs; without them, 1 host remains",
        ),
        (
            [member("trait A required")],
            filtering(2, ("the host is out of service", 1), fitting=1),
            "to mend: trait A required; without it, 2 hosts remain, of which 1 fits",
        ),
        (
            [member("trait A required")],
            filtering(2, ("the host is out of service", 2)),
            "to mend: trait A required; without it, 2 hosts remain, and the filters reject all 2 "
            "hosts: the host is out of service (2 hosts)",
        ),
        ([member("trait A required")], None, "to mend: trait A required"),
    ],
)
def test_repair_is_named_with_the_hosts_that_remain(
    members: list[RepairMember], left: Filtering | None, expected: str
) -> None:
    stage, text = conclusion(searched=searched(*members), filtering=left)
    assert stage is Stage.PLACEMENT
    assert text == f"no host in Placement meets all demands now; {expected}"


@pytest.mark.parametrize(
    ("fault", "stage", "expected"),
    [
        (
            "No valid host was found. ",
            Stage.PLACEMENT,
            "when the request failed, Placement had no candidates, or did not answer; Placement "
            "could not be asked now",
        ),
        (
            "No valid host was found. There are not enough hosts available.",
            Stage.FILTERS,
            "when the request failed, the filters left no host, or another request took the last "
            "one; Placement could not be asked now",
        ),
        ("", None, "Placement could not be asked, and no record names a failure"),
    ],
)
def test_record_alone_tells_the_stage(fault: str, stage: Stage, expected: str) -> None:
    assert conclusion(facts=facts(fault)) == (stage, expected)


def test_causes_of_filters_are_named_up_to_three() -> None:
    causes = [("cause 1", 4), ("cause 2", 2), ("cause 3", 1), ("cause 4", 1), ("cause 5", 1)]
    assert conclusion(searched=searched(), filtering=filtering(4, *causes)) == (
        Stage.FILTERS,
        "Placement selects 4 hosts now, and the filters reject all of them: cause 1 (4 hosts); "
        "cause 2 (2 hosts); cause 3 (1 host); 2 other causes",
    )


def test_truncated_answer_is_a_possible_cause() -> None:
    _, text = conclusion(searched=searched(truncated=True), filtering=filtering(1, ("cause", 1)))
    assert text == (
        "Placement selects 1 host now, and the filters reject it: cause (1 host); Placement has "
        "more candidates, but Nova asks for no more"
    )


def test_providers_that_are_no_hosts() -> None:
    assert conclusion(searched=searched(), filtering=filtering(0)) == (
        Stage.FILTERS,
        "Placement selects only providers that are not hosts of Nova",
    )


def test_servers_requested_together_need_room_for_all() -> None:
    found = conclusion(
        facts=facts(count=3), searched=searched(), filtering=filtering(2, fitting=1, room=2)
    )
    assert found == (
        Stage.FILTERS,
        "2 of the 3 servers that were requested together fit now, on 1 host",
    )


def test_host_of_group_names_what_it_lacks() -> None:
    evidence = Evidence(
        facts=facts(),
        asked_at=NOW,
        searched=searched(),
        filtering=filtering(2, ("server group 'g' is on 'host9'", 2)),
        group_host=GroupHost("host9", searched(member("4 GiB of RAM"))),
    )
    assert concluded(evidence).text == (
        "Placement selects 2 hosts now, and the filters reject all of them: server group 'g' is on "
        "'host9' (2 hosts); host 'host9' of the group does not offer: 4 GiB of RAM"
    )
    assert [each.demand.text for each in evidence.repair] == ["4 GiB of RAM"]
    assert evidence.requests == 14


@pytest.mark.parametrize(
    ("about", "expected"),
    [
        (
            facts("No valid host was found. "),
            "host 'host0' and 1 more fit now; the request failed 3 hours ago, for a cause that no "
            "longer holds or that no API shows, such as a requested host",
        ),
        (facts(), "host 'host0' and 1 more fit now; server 'web-1' has no recorded fault"),
        (Facts(wanted=WantedServer(flavor=FLAVOR)), "host 'host0' and 1 more fit now"),
    ],
)
def test_fitting_host_is_named(about: Facts, expected: str) -> None:
    found = conclusion(facts=about, searched=searched(), filtering=filtering(2, fitting=2))
    assert found == (Stage.FITS_NOW, expected)


def test_filters_that_were_not_applied_are_named_if_filters_left_no_host() -> None:
    fault = "No valid host was found. There are not enough hosts available."
    evidence = {
        "searched": searched(),
        "filtering": filtering(2, fitting=2),
        "not_applied": ["IoOpsFilter", "AcmeFilter"],
    }
    assert conclusion(facts=facts(fault), **evidence) == (
        Stage.FILTERS,
        "the filters left no host when the request failed, and 'host0' and 1 more pass the filters "
        "that were applied now; not applied: IoOpsFilter, AcmeFilter",
    )
    assert conclusion(facts=Facts(wanted=WantedServer(flavor=FLAVOR)), **evidence) == (
        Stage.FITS_NOW,
        "host 'host0' and 1 more fit now, as far as the filters were applied; not applied: "
        "IoOpsFilter, AcmeFilter",
    )


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        ("2026-11-20T12:00:00Z", "0 seconds ago"),
        ("2026-11-20T11:59:01.000000", "59 seconds ago"),
        ("2026-11-20T11:59:00Z", "1 minute ago"),
        ("2026-11-20T10:00:01Z", "1 hour ago"),
        ("2026-11-18T10:00:00+00:00", "2 days ago"),
        ("2027-01-01T00:00:00Z", "0 seconds ago"),
        ("some day", "at some day"),
    ],
)
def test_ago_uses_the_greatest_unit(moment: str, expected: str) -> None:
    assert ago(moment, NOW) == expected


def test_missing_trait_has_possible_typos() -> None:
    traits = frozenset({"CUSTOM_FAST_DISK", "CUSTOM_GPU"})
    found = searched(member("trait CUSTOM_FASTDISK required", "CUSTOM_FASTDISK"), traits=traits)
    evidence = Evidence(facts=facts(), asked_at=NOW, searched=found)
    assert evidence.possible_typos(found.repair[0]) == ["CUSTOM_FAST_DISK"]
    present = member("trait CUSTOM_FASTDISK required", "CUSTOM_FASTDISK", alone=1)
    assert evidence.possible_typos(present) == []
