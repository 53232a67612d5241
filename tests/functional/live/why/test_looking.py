"""Facts about a server from services that reject, fail, stop or are old."""

import socket
import threading
from collections.abc import Collection, Iterator
from typing import Any

import pytest

from steelyard import errors
from steelyard.analysis.why.facts import Facts, GivenRequest
from steelyard.cloud.wanted import Source
from steelyard.live.why.looking import look
from support.clients import canned_services
from support.clients.canned_cloud import GROUP, HYPERVISORS, SERVER, refused
from support.clients.canned_services import Server
from support.live import canned_look
from support.live.canned_look import (
    ACTION,
    ACTIONS,
    ASKED,
    BODIES,
    CREATE,
    EVENT,
    IMAGE,
    LOST,
    MEMBER,
    MEMBER_RECORD,
    OF_GROUP,
    OF_IMAGE,
    RECORD,
    SIBLINGS,
    VOLUME,
    clients,
    encoded,
)

NEVER_SHOWN = 3
"""The messages about what Nova shows of no server."""

AGGREGATES = "/os-aggregates"


@pytest.fixture
def server() -> Iterator[Server]:
    with canned_services.answering(canned_look.answers()) as made:
        yield made


def looked(server: Server, seconds: float = 20, name: str | None = LOST, **options: Any) -> Facts:
    return look(clients(server.url, seconds), name, GivenRequest(**options), unwatched)


def unwatched(items: Any, what: str, total: int | None = None) -> Any:
    return items


class Stalling(dict[str, tuple[int, bytes]]):
    """Answers that call a function when a path, or any below it, is requested."""

    def __init__(self, answers: Any, paths: Collection[str], do: Any) -> None:
        super().__init__(answers)
        self._paths, self._do = paths, do

    def get(self, path: str, *otherwise: Any) -> Any:
        if path.partition("?")[0] in self._paths:
            self._do()
        return super().get(path, *otherwise)


def changed(server: Server, **fields: Any) -> None:
    """Change fields of the server's record; an ellipsis removes one."""
    record = {name: value for name, value in (RECORD | fields).items() if value is not ...}
    server.answers[ASKED] = encoded({"server": record})


def unseen(facts: Facts) -> list[str]:
    """Return the messages about data of this server that could not be read."""
    return list(facts.not_known[:-NEVER_SHOWN])


def test_look_joins_answers_of_all_services(server: Server) -> None:
    facts = looked(server)
    assert facts.wanted.image_properties == {
        "hw_vif_model": "virtio",
        "trait:CUSTOM_X": "required",
    }
    assert facts.wanted.disk_format == "qcow2"
    assert facts.wanted.group is not None
    assert facts.wanted.group.members == {SERVER}
    assert facts.wanted.group.hosts == {"node1"}
    assert facts.server_hosts == {SERVER: "node1"}
    assert facts.record is not None
    assert facts.record.events[1].detail == "no more disk"
    assert facts.record.events[1].host == "node1"
    assert facts.nova_microversion == "2.100"
    assert unseen(facts) == []


@pytest.mark.parametrize(
    ("shown", "host"), [({}, "node1"), ({"OS-EXT-SRV-ATTR:host": ...}, "c0ffee")]
)
def test_look_reads_host_and_newest_action(
    server: Server, shown: dict[str, Any], host: str
) -> None:
    changed(server, **{"OS-EXT-SRV-ATTR:host": "node1", "hostId": "c0ffee"} | shown)
    resize = {**ACTION, "request_id": "req-2", "action": "resize"}
    server.answers[ACTIONS] = encoded({"instanceActions": [resize, ACTION]})
    server.answers[f"{ACTIONS}/req-2"] = encoded({"instanceAction": {**resize, "events": [EVENT]}})
    record = looked(server).record
    assert record is not None
    assert (record.host, record.last_action) == (host, "resize")


@pytest.mark.parametrize(
    ("of_one", "of_other", "count"),
    [
        ({}, {"status": "BUILD", "fault": ...}, 3),
        ({}, {"fault": {"message": "Build of instance aborted"}}, 2),
        ({}, {"hostId": "c0ffee", "status": "ACTIVE"}, 1),
        ({}, {"hostId": "c0ffee"}, 1),
        ({"OS-EXT-SRV-ATTR:reservation_id": "r-2"}, {"id": LOST}, 1),
    ],
)
def test_servers_requested_together_count_until_they_are_scheduled(
    server: Server, of_one: dict[str, Any], of_other: dict[str, Any], count: int
) -> None:
    others = [RECORD | {"id": VOLUME} | of_one, RECORD | {"id": IMAGE} | of_other]
    shown = [{k: v for k, v in each.items() if v is not ...} for each in others]
    server.answers[SIBLINGS] = encoded({"servers": shown})
    end = f"{SIBLINGS}?reservation_id=r-1&all_tenants=1&marker={shown[-1]['id']}"
    server.answers[end] = encoded({"servers": []})
    assert looked(server).wanted.count == count


def test_server_on_host_was_scheduled_with_those_requested_together(server: Server) -> None:
    changed(server, hostId="c0ffee")
    server.answers[SIBLINGS] = encoded({"servers": [RECORD | {"id": VOLUME}]})
    assert looked(server).wanted.count == 1


@pytest.mark.parametrize(("path", "is_known", "hosts"), [(OF_GROUP, False, {}), (MEMBER, True, {})])
def test_group_or_member_that_cannot_be_read_is_not_known(
    server: Server, path: str, is_known: bool, hosts: dict[str, str]
) -> None:
    server.answers[path] = refused(500)
    facts = looked(server)
    assert (facts.group_known, facts.server_hosts) == (is_known, hosts)
    assert (facts.wanted.group is not None) == is_known


def test_server_without_group_has_none(server: Server) -> None:
    changed(server, server_groups=[], scheduler_hints={})
    facts = looked(server)
    assert (facts.wanted.group, facts.group_known) == (None, True)


NODES = tuple(f"00000000-0000-4000-8000-0000000000{number}" for number in (11, 12))


def test_nodes_of_one_service_share_its_name(server: Server) -> None:
    (node,) = BODIES[HYPERVISORS]["hypervisors"]
    nodes = [
        node | {"id": uuid, "hypervisor_hostname": f"metal{number}"}
        for number, uuid in enumerate(NODES)
    ]
    server.answers[HYPERVISORS] = encoded({"hypervisors": nodes})
    end = f"{HYPERVISORS}?marker={NODES[-1]}"
    server.answers[end] = encoded({"hypervisors": []})
    facts = looked(server, host="node1")
    assert facts.wanted.host == "node1"
    assert facts.hosts is not None
    assert [(each.name, each.service) for each in facts.hosts] == [
        ("metal0", "node1"),
        ("metal1", "node1"),
    ]
    assert facts.server_hosts == {SERVER: "node1"}
    assert facts.wanted.group is not None
    assert facts.wanted.group.hosts == {"node1"}
    assert looked(server, host="metal1").wanted.host == "metal1"
    with pytest.raises(errors.NotFound, match="did you mean 'metal1' or 'metal0'"):
        looked(server, host="metal")


PARTS = {
    HYPERVISORS: ("hosts: ", "os_compute_api:os-hypervisors:list-detail"),
    AGGREGATES: ("aggregates: ", "os_compute_api:os-aggregates:index"),
    ACTIONS: ("actions on the server: ", "os_compute_api:os-instance-actions:list"),
    CREATE: ("actions on the server: ", "os_compute_api:os-instance-actions:list and :show"),
    OF_GROUP: (f"server group '{GROUP}': ", "403"),
    MEMBER: ("hosts of 1 server of the group or the hints: ", "403"),
    SIBLINGS: ("servers that were requested together with this one: ", "403"),
    OF_IMAGE: (f"traits and disk format of image {IMAGE}: ", "403"),
}


@pytest.mark.parametrize("path", PARTS)
def test_part_that_is_forbidden_is_not_known(server: Server, path: str) -> None:
    server.answers[path] = refused(403)
    (message,) = unseen(looked(server))
    what, needs = PARTS[path]
    assert message.startswith(what)
    assert needs in message


@pytest.mark.parametrize("path", PARTS)
@pytest.mark.parametrize("answer", [(500, b"oops"), (200, b"[7]"), (406, b"")])
def test_part_that_fails_is_not_known(server: Server, path: str, answer: tuple[int, bytes]) -> None:
    server.answers[path] = answer
    (message,) = unseen(looked(server))
    assert message.startswith(PARTS[path][0])


@pytest.mark.parametrize("path", [HYPERVISORS, OF_IMAGE])
def test_part_that_times_out_is_not_known(server: Server, path: str) -> None:
    never = threading.Event()
    server.answers = Stalling(server.answers, {path}, lambda: never.wait(20))
    facts = looked(server, 1.5)
    never.set()
    (message,) = unseen(facts)
    assert message.startswith(PARTS[path][0])
    assert "timed out" in message


def test_services_that_stop_half_way_leave_the_server(server: Server) -> None:
    def stop() -> None:
        raise ConnectionError

    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    server.answers = Stalling(server.answers, set(server.answers) - {"/flavors", ASKED}, stop)
    facts = looked(server)
    assert facts.record is not None
    assert (facts.record.fault, facts.record.events) == ("No valid host was found.", ())
    assert facts.record.last_action == ""
    assert facts.wanted.availability_zone == "north"
    assert (facts.hosts, facts.aggregates) == (None, None)
    assert len(unseen(facts)) == 6


def test_server_that_vanishes_is_reported(server: Server) -> None:
    for path in (ACTIONS, OF_GROUP):
        del server.answers[path]
    facts = looked(server)
    assert facts.record is not None
    assert facts.record.events == ()
    assert [message.partition(": ")[0] for message in unseen(facts)] == [
        f"server group '{GROUP}'",
        "actions on the server",
    ]


def test_deleted_member_of_group_is_on_no_host(server: Server) -> None:
    del server.answers[MEMBER]
    facts = looked(server)
    assert facts.server_hosts == {SERVER: ""}
    assert facts.group_known
    assert facts.wanted.group is not None
    assert facts.wanted.group.hosts == set()
    assert unseen(facts) == []


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (refused(403), errors.Forbidden, "Nova answered 403 to /servers/"),
        (refused(404), errors.NotFound, f"^no server '{LOST}' that these credentials show"),
        (refused(500), errors.ServiceError, "Nova answered 500"),
        ((200, b"{}"), errors.ServiceError, "unexpected answer from Nova: invalid server in"),
        (
            encoded({"server": {"id": LOST, "status": "UNKNOWN"}}),
            errors.ServiceError,
            "Nova's API cannot reach the cell",
        ),
    ],
)
def test_server_that_cannot_be_read_is_an_error(
    server: Server, answer: tuple[int, bytes], kind: type[errors.SteelyardError], message: str
) -> None:
    server.answers[ASKED] = answer
    with pytest.raises(kind, match=message):
        looked(server)


def test_unreachable_nova_is_an_error() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(errors.NoAccess, match="request to Nova failed"):
            look(clients(url), LOST, GivenRequest(), unwatched)


@pytest.mark.parametrize("header", ["", "compute", "placement 1.39", "compute latest"])
def test_missing_microversion_is_an_error(server: Server, header: str) -> None:
    server.newest = header
    with pytest.raises(errors.ServiceError, match="expected its newest microversion"):
        looked(server)


def test_rejected_credentials_are_an_error(server: Server) -> None:
    server.answers["/flavors"] = (401, b'{"error": {"message": "who?"}}')
    with pytest.raises(errors.NoAccess, match=r"Nova answered 401 to /flavors: who\?"):
        looked(server)


def test_missing_services_are_named(server: Server) -> None:
    alone = clients(server.url)._replace(images=None, volumes=None)
    (message,) = unseen(look(alone, LOST, GivenRequest(), unwatched))
    assert message == (
        f"traits and disk format of image {IMAGE}: Glance is not in the service catalog for this "
        f"region and interface"
    )
    changed(server, image="")
    (message,) = unseen(look(alone, LOST, GivenRequest(), unwatched))
    assert "Cinder is not in the service catalog" in message


def test_record_without_admin_fields_names_policies(server: Server) -> None:
    changed(
        server,
        **{name: ... for name in RECORD if name.startswith("OS-EXT-SRV-ATTR:")},
    )
    hidden = {**MEMBER_RECORD, "OS-EXT-SRV-ATTR:host": ...}
    server.answers[MEMBER] = encoded(
        {"server": {name: value for name, value in hidden.items() if value is not ...}}
    )
    event = {name: EVENT[name] for name in ("event", "start_time", "finish_time", "result")}
    server.answers[CREATE] = encoded({"instanceAction": {**ACTION, "events": [event]}})
    facts = looked(server)
    assert [message.partition(": ")[0] for message in unseen(facts)] == [
        "hosts of the servers of the group or the hints",
        "hosts of the events",
        "details of failed events",
        "servers that were requested together with this one",
    ]
    for message in unseen(facts):
        assert "needs the policy rule os_compute_api:os-" in message


def test_older_nova_names_what_a_newer_one_shows(server: Server) -> None:
    server.newest = "compute 2.79"
    changed(server, pinned_availability_zone=..., scheduler_hints=..., hostId="somewhere")
    facts = looked(server)
    assert facts.wanted.image_properties == {"hw_vif_model": "e1000", "trait:CUSTOM_X": "required"}
    assert facts.wanted.sources["image_properties"] is Source.NOW
    assert facts.wanted.group is not None
    supports = "and this Nova supports up to 2.79"
    assert unseen(facts) == [
        f"requested availability zone: needs microversion 2.96, {supports}; supply it with "
        f"--availability-zone",
        f"scheduler hints: needs microversion 2.100, {supports}",
    ]
    asked = {version for path, version in server.asked if path.startswith(ASKED)}
    assert asked == {"compute 2.79"}


def test_older_nova_shows_zone_of_server_on_no_host(server: Server) -> None:
    server.newest = "compute 2.70"
    changed(server, pinned_availability_zone=..., scheduler_hints=..., server_groups=...)
    del server.answers[OF_IMAGE]
    facts = looked(server)
    assert facts.wanted.availability_zone == "north"
    assert facts.wanted.sources["availability_zone"] is Source.RECORD
    assert facts.wanted.group is None
    needed = [message.split(", ")[0] for message in unseen(facts)[1:]]
    assert needed == [
        "image properties: needs microversion 2.98",
        "scheduler hints: needs microversion 2.100",
        "server group: needs microversion 2.71",
    ]
    assert not facts.group_known


def test_image_that_the_record_shows_whole_is_not_read_again(server: Server) -> None:
    properties = {
        "base_image_ref": IMAGE,
        "disk_format": "raw",
        "min_ram": "0",
        "hw_vif_model": "virtio",
        "trait:CUSTOM_Y": "required",
    }
    changed(server, image={"id": IMAGE, "properties": properties})
    wanted = looked(server).wanted
    assert wanted.image_properties == {"hw_vif_model": "virtio", "trait:CUSTOM_Y": "required"}
    assert wanted.disk_format == "raw"
    for field in ("image_properties", "image traits", "disk_format"):
        assert wanted.sources[field] is Source.RECORD
    assert OF_IMAGE not in {path for path, _ in server.asked}


def test_boot_volume_is_the_only_bootable_one(server: Server) -> None:
    data = VOLUME.replace("3", "4")
    server.answers[f"/volumes/{data}"] = encoded({"volume": {"id": data, "bootable": "false"}})
    both = [{"id": data}, {"id": VOLUME}]
    changed(server, image="", **{"os-extended-volumes:volumes_attached": both})
    wanted = looked(server).wanted
    assert (wanted.from_volume, wanted.image_properties) == (True, {"hw_disk_bus": "scsi"})
    assert wanted.disk_format == ""
    for bootable, found in ((data, "2 of the 2 volumes"), (VOLUME, "0 of the 2 volumes")):
        flag = "true" if bootable == data else "false"
        server.answers[f"/volumes/{bootable}"] = encoded({"volume": {"bootable": flag}})
        if bootable == VOLUME:
            server.answers[f"/volumes/{data}"] = encoded({"volume": {"bootable": "false"}})
        (message,) = unseen(looked(server))
        assert found in message
        assert "--image" in message


def test_volume_that_was_never_created_shows_no_image(server: Server) -> None:
    changed(server, image="", **{"os-extended-volumes:volumes_attached": []})
    (message,) = unseen(looked(server))
    assert "the server has no volume yet" in message
