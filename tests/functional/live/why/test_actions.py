"""Actions on a server, as far as a Nova shows them."""

from collections.abc import Iterator
from typing import Any

import pytest

from steelyard.analysis.why.facts import ServerEvent
from steelyard.live.why import actions
from steelyard.live.why.parts import Reading
from support.clients import canned_services
from support.clients.canned_services import Server
from support.live import canned_look
from support.live.canned_look import ACTION, ACTIONS, CREATE, EVENT, LOST, clients, encoded


@pytest.fixture
def server() -> Iterator[Server]:
    with canned_services.answering(canned_look.answers()) as made:
        yield made


def read(server: Server, microversion: str = "2.100") -> Reading[Any]:
    return actions.read(clients(server.url).compute, LOST, microversion)


def test_actions_are_read_oldest_first_with_their_events(server: Server) -> None:
    later = ACTION | {"request_id": "req-2", "action": "rebuild", "message": None}
    later["start_time"] = "2026-01-02T00:00:00.000000"
    server.answers[ACTIONS] = encoded({"instanceActions": [later, ACTION]})
    server.answers[f"{ACTIONS}/req-2"] = encoded({"instanceAction": later | {"events": []}})
    first = EVENT | {
        "event": "conductor_schedule_and_build_instances",
        "finish_time": "2026-01-01T00:00:03.000000",
        "result": "Success",
    }
    server.answers[CREATE] = encoded({"instanceAction": ACTION | {"events": [EVENT, first]}})
    found = read(server)
    assert [(each.action, each.event, each.result) for each in found.value] == [
        ("create", "", "Error"),
        ("create", "conductor_schedule_and_build_instances", "Success"),
        ("create", "compute__do_build_and_run_instance", "Error"),
        ("rebuild", "", ""),
    ]
    assert found.not_known == ()


def test_unfinished_event_has_its_start(server: Server) -> None:
    event = EVENT | {"finish_time": None, "result": None, "details": None, "host": None}
    server.answers[CREATE] = encoded({"instanceAction": ACTION | {"events": [event]}})
    assert read(server).value[1] == ServerEvent(
        action="create",
        event="compute__do_build_and_run_instance",
        at="2026-01-01T00:00:02.000000",
        detail="NoSpace: disk",
    )


@pytest.mark.parametrize(
    ("events", "microversion", "message"),
    [
        (None, "2.50", "events of the actions: reading them needs the policy rule "),
        (
            [EVENT | {"details": None, "traceback": None}],
            "2.79",
            "details of failed events: reading them needs microversion 2.84 or the policy rule "
            "os_compute_api:os-instance-actions:events",
        ),
        (
            [EVENT | {"details": None, "traceback": None}],
            "2.84",
            "details of failed events: reading them needs the policy rule "
            "os_compute_api:os-instance-actions:events:details",
        ),
    ],
)
def test_hidden_events_are_named(
    server: Server, events: Any, microversion: str, message: str
) -> None:
    server.answers[CREATE] = encoded({"instanceAction": ACTION | {"events": events}})
    (said,) = read(server, microversion).not_known
    assert said.startswith(message)


def test_only_the_newest_actions_are_read(server: Server) -> None:
    many = [ACTION | {"request_id": f"req-{number}"} for number in range(20)]
    server.answers[ACTIONS] = encoded({"instanceActions": many})
    for each in many:
        path = f"{ACTIONS}/{each['request_id']}"
        server.answers[path] = encoded({"instanceAction": each | {"events": []}})
    found = read(server)
    assert len(found.value) == 20
    assert found.not_known == ("actions on the server before the newest 20",)
    assert (f"{ACTIONS}?limit=20", "compute 2.100") in server.asked
