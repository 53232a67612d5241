"""The facts of an answer that is computed from a cloud file."""

import pytest

from steelyard import errors
from steelyard.analysis.why.cloud_facts import facts_of
from steelyard.analysis.why.facts import GivenRequest, ServerRecord
from steelyard.cloud import Aggregate, Cloud, Flavor, Host, Server
from steelyard.cloud.wanted import Source
from steelyard.groups import Policy, ServerGroup

FLAVOR = Flavor("m1.small", 1, 512, 1)
HOSTS = {name: Host(name, 8, 1024, 10) for name in ("host1", "host2", "host3")}
SERVERS = [
    Server("a", "web-1", FLAVOR, "host1", "web", project="p", availability_zone="north"),
    Server("b", "web-2", FLAVOR, "host2", "web"),
    Server("c", "db", FLAVOR, "host3", scheduler_hints={"different_host": ("a", "gone")}),
]
CLOUD = Cloud(
    HOSTS,
    {"rack": Aggregate("rack", {"availability_zone": "north"}, ("host1",))},
    {"m1.small": FLAVOR},
    {"web": ServerGroup("web", Policy.ANTI_AFFINITY)},
).with_servers(SERVERS)


def test_request_of_options() -> None:
    given = GivenRequest(
        flavor="m1.small", availability_zone="north", host="host2", group="web", project="q"
    )
    facts = facts_of(CLOUD, None, given)
    wanted = facts.wanted
    assert (wanted.flavor, wanted.availability_zone, wanted.host) == (FLAVOR, "north", "host2")
    assert wanted.group == CLOUD.server_group("web")
    assert wanted.project == "q"
    assert wanted.sources == {
        "flavor": Source.FILE,
        "group": Source.FILE,
        "availability_zone": Source.OPTION,
        "host": Source.OPTION,
        "project": Source.OPTION,
    }
    assert facts.record is None
    assert facts.server_hosts == {"a": "host1", "b": "host2"}
    assert [host.name for host in facts.hosts or ()] == ["host1", "host2", "host3"]
    (aggregate,) = facts.aggregates or ()
    assert aggregate.uuid


def test_request_of_server_is_that_of_its_record_beside_itself() -> None:
    facts = facts_of(CLOUD, "web-1", GivenRequest(project="q"))
    wanted = facts.wanted
    assert facts.record == ServerRecord(uuid="a", name="web-1", status="")
    assert (wanted.project, wanted.availability_zone) == ("q", "north")
    assert (wanted.sources["project"], wanted.sources["flavor"]) == (Source.OPTION, Source.FILE)
    assert wanted.group is not None
    assert wanted.group.members == {"b"}
    assert facts.server_hosts == {"b": "host2"}


def test_hosts_of_hinted_servers_are_known_if_the_file_has_them() -> None:
    assert facts_of(CLOUD, "c", GivenRequest()).server_hosts == {"a": "host1"}


@pytest.mark.parametrize(
    ("server", "given", "message"),
    [
        (None, GivenRequest(), "missing --flavor: name the flavor of the server"),
        (
            None,
            GivenRequest(flavor="m1.smal"),
            "no flavor 'm1.smal'; did you mean 'm1.small'?",
        ),
        (
            None,
            GivenRequest(flavor="m1.small", availability_zone="nort"),
            "no availability zone 'nort'; did you mean 'north'?",
        ),
        (
            None,
            GivenRequest(flavor="m1.small", host="node"),
            "no host 'node'; available: 'host1', 'host2', 'host3'",
        ),
        (None, GivenRequest(flavor="m1.small", group="x"), "no server group 'x'; available: 'web'"),
        ("dbs", GivenRequest(), "no server 'dbs'; did you mean 'db'?"),
        (
            "db",
            GivenRequest(image="cirros"),
            "--image 'cirros' needs --os-cloud: a cloud file has no images",
        ),
        (
            None,
            GivenRequest(flavor="m1.small", boot_from_volume=True),
            "--boot-from-volume needs --os-cloud: a cloud file does not tell the root disk of a "
            "flavor from its other disks; name a flavor without the root disk",
        ),
    ],
)
def test_mistakes_are_errors(server: str | None, given: GivenRequest, message: str) -> None:
    with pytest.raises(errors.SteelyardError) as caught:
        facts_of(CLOUD, server, given)
    assert str(caught.value) == message
