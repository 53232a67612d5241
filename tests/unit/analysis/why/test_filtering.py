"""The answers of the filters for the hosts that Placement selects."""

import dataclasses

from steelyard.analysis.why.facts import Facts, KnownHost
from steelyard.analysis.why.filtering import FilterCause, Filtering, NearHost, filtered
from steelyard.analysis.why.novas_filters import NovasFilters
from steelyard.analysis.why.placement_view import CandidateRoot, ClassUsage
from steelyard.cloud import Aggregate, Flavor
from steelyard.cloud.wanted import WantedServer
from steelyard.groups import Policy, ServerGroup

NOT_OFFERED = "key 'ssd': flavor wants 'nvme', no aggregate of the host has the key"
ENABLED = ["ComputeFilter", "AggregateInstanceTypeFilter", "ServerGroupAntiAffinityFilter"]


def roots(*uuids: str, capacity: int = 4, used: int = 0) -> dict[str, CandidateRoot]:
    return {
        uuid: CandidateRoot(uuid, f"rp {uuid}", {"VCPU": ClassUsage(capacity, used)}, frozenset())
        for uuid in uuids
    }


def hosts(*names: str, **out_of_service: str) -> list[KnownHost]:
    return [
        KnownHost(name=name, uuid=name[-1], out_of_service=out_of_service.get(name, ""))
        for name in names
    ]


def wanted(group: ServerGroup | None = None, count: int = 1, **specs: str) -> WantedServer:
    return WantedServer(flavor=Flavor("f", 2, 512, 1, specs), group=group, count=count)


def found(facts: Facts, candidates: dict[str, CandidateRoot]) -> Filtering:
    return filtered(facts, candidates, NovasFilters(ENABLED, facts), [{"VCPU": 2}])


def test_hosts_are_counted_for_each_of_their_causes() -> None:
    facts = Facts(
        wanted=wanted(ssd="nvme"),
        hosts=hosts("host1", "host2", "host3", host1="down", host2="down"),
        aggregates=[Aggregate("fast", {"ssd": "nvme"}, ("host2", "host3"))],
    )
    assert found(facts, roots("1", "2", "3")) == Filtering(
        3,
        ["host3"],
        [
            FilterCause("ComputeFilter", "the host is out of service", 2),
            FilterCause(
                "AggregateInstanceTypeFilter",
                NOT_OFFERED,
                1,
            ),
        ],
        [
            NearHost("host2", [("ComputeFilter", "the host is out of service: down")]),
            NearHost(
                "host1",
                [
                    ("ComputeFilter", "the host is out of service: down"),
                    (
                        "AggregateInstanceTypeFilter",
                        NOT_OFFERED,
                    ),
                ],
            ),
        ],
        1,
    )


def test_providers_without_host_are_left_out() -> None:
    facts = Facts(wanted=wanted(), hosts=hosts("host1"), aggregates=[])
    assert found(facts, roots("1", "7")).hosts == 1


def test_hosts_have_the_names_of_their_providers_if_nova_shows_none() -> None:
    facts = Facts(wanted=wanted())
    assert found(facts, roots("1")).fitting == ["rp 1"]
    nameless = {"1": CandidateRoot("1", "", {}, frozenset())}
    assert found(facts, nameless).fitting == ["1"]


def test_cause_has_possible_typos() -> None:
    facts = Facts(
        wanted=wanted(sdd="nvme"),
        hosts=hosts("host1"),
        aggregates=[Aggregate("fast", {"ssd": "nvme"}, ("host1",))],
    )
    (cause,) = found(facts, roots("1")).causes
    (typo,) = cause.possible_typos
    assert "did you mean 'ssd'?" in typo


def test_room_counts_servers_that_were_requested_together() -> None:
    facts = Facts(wanted=wanted(count=5), hosts=hosts("host1", "host2"), aggregates=[])
    assert found(facts, roots("1", "2")).room == 4
    assert found(facts, roots("1", "2", used=3)).room == 0
    facts = Facts(wanted=wanted(count=3), hosts=hosts("host1", "host2"), aggregates=[])
    assert found(facts, roots("1", "2")).room == 3


def test_room_of_group_depends_on_its_policy() -> None:
    for group, expected in (
        (ServerGroup("g", Policy.AFFINITY), 2),
        (ServerGroup("g", Policy.ANTI_AFFINITY), 2),
        (ServerGroup("g", Policy.SOFT_AFFINITY), 4),
    ):
        facts = Facts(wanted=wanted(group, 4), hosts=hosts("host1", "host2"), aggregates=[])
        assert found(facts, roots("1", "2")).room == expected, group.policy


def test_servers_of_group_count_towards_its_limit() -> None:
    group = ServerGroup(
        "g", Policy.ANTI_AFFINITY, {"max_server_per_host": 2}, frozenset({"a", "b", "c"})
    )
    facts = Facts(
        wanted=wanted(group, 2),
        hosts=hosts("host1", "host2"),
        aggregates=[],
        server_hosts={"a": "host1", "b": "host1", "c": "host2"},
    )
    answers = found(facts, roots("1", "2"))
    assert answers.fitting == ["host2"]
    assert answers.room == 1
    (near,) = answers.nearest
    assert near.host == "host1"


def test_group_counts_the_services_of_nodes() -> None:
    nodes = [
        KnownHost(name=f"node{number}", uuid=number, node_of=f"ironic{number > '2'}")
        for number in "1234"
    ]
    for policy, members, fitting, room in (
        (Policy.AFFINITY, {"a": "ironicFalse"}, ["node1", "node2"], 4),
        (Policy.ANTI_AFFINITY, {"a": "ironicFalse"}, ["node3", "node4"], 1),
        (Policy.ANTI_AFFINITY, {}, ["node1", "node2", "node3", "node4"], 2),
        (Policy.SOFT_AFFINITY, {}, ["node1", "node2", "node3", "node4"], 8),
    ):
        group = ServerGroup(
            "g", policy, members=frozenset(members), hosts=frozenset(members.values())
        )
        facts = Facts(wanted=wanted(group, 9), hosts=nodes, server_hosts=members, aggregates=[])
        filters = NovasFilters([*ENABLED, "ServerGroupAffinityFilter"], facts)
        answers = filtered(facts, roots("1", "2", "3", "4"), filters, [{"VCPU": 2}])
        assert (answers.fitting, answers.room) == (fitting, room)


def test_only_nodes_of_the_requested_service_are_examined() -> None:
    nodes = [KnownHost(name=f"node{number}", uuid=number, node_of="ironic") for number in "12"]
    server = dataclasses.replace(wanted(), host="ironic")
    facts = Facts(wanted=server, hosts=[*nodes, *hosts("host3")], aggregates=[])
    assert found(facts, roots("1", "2", "3")).fitting == ["node1", "node2"]
    alone = dataclasses.replace(wanted(), host="host3")
    facts = Facts(wanted=alone, hosts=[*nodes, *hosts("host3")], aggregates=[])
    assert found(facts, roots("1", "2", "3")).hosts == 3


def test_room_counts_the_request_that_most_servers_fit() -> None:
    facts = Facts(wanted=wanted(count=9), hosts=hosts("host1"), aggregates=[])
    supplies = {"PCPU": ClassUsage(2, 0), "VCPU": ClassUsage(16, 0)}
    candidates = {"1": CandidateRoot("1", "", supplies, frozenset())}
    filters = NovasFilters(ENABLED, facts)
    assert filtered(facts, candidates, filters, [{"PCPU": 4}, {"VCPU": 4}]).room == 4
    assert filtered(facts, candidates, filters, [{"PCPU": 4}]).room == 0
    assert filtered(facts, candidates, filters, []).room == 9
