"""The actions on a server that Nova recorded, with their events."""

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard import errors, microversions
from steelyard.analysis.why.facts import ServerEvent
from steelyard.clients.compute import Compute
from steelyard.live import fields
from steelyard.live.at_once import each_answered
from steelyard.live.why.parts import Reading

_MOST_ACTIONS = 20
_HOSTS = "os_compute_api:os-instance-actions:events"
_DETAILS = "os_compute_api:os-instance-actions:events:details"
_DETAILS_SINCE = "2.84"


@dataclasses.dataclass(frozen=True, slots=True)
class _Action:
    request: str
    name: str
    at: str
    message: str

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "_Action":
        return cls(
            fields.read(record, "request_id", fields.text),
            fields.read(record, "action", fields.text),
            fields.text(record.get("start_time") or ""),
            fields.text(record.get("message") or ""),
        )


@dataclasses.dataclass(frozen=True, slots=True)
class _Event:
    name: str
    at: str
    result: str
    host: str | None
    """None if Nova does not show it."""
    detail: str

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "_Event":
        details = fields.text(record.get("details") or "").strip()
        trace = fields.text(record.get("traceback") or "").strip()
        return cls(
            fields.read(record, "event", fields.text),
            fields.text(record.get("finish_time") or record.get("start_time") or ""),
            fields.text(record.get("result") or ""),
            fields.text(record["host"] or "") if "host" in record else None,
            details or trace.rpartition("\n")[2],
        )


def _events(record: Mapping[str, Any]) -> list[_Event] | None:
    """Return the events of an action; None if Nova does not show them."""
    if record.get("events") is None:
        return None
    return [_Event.of(each) for each in record["events"]]


def read(compute: Compute, server: str, microversion: str) -> Reading[Sequence[ServerEvent] | None]:
    """Return the newest actions and their events, the oldest first; None if they are not shown."""
    path = f"/servers/{server}/os-instance-actions"
    try:
        listed = compute.listing(
            path, "instanceActions", _Action.of, microversion, limit=_MOST_ACTIONS
        )
        with contextlib.closing(
            each_answered(
                lambda action: compute.one(
                    f"{path}/{action.request}", "instanceAction", _events, microversion
                ),
                listed,
            )
        ) as answered:
            events = list(answered)
    except errors.Forbidden:
        needs = "os_compute_api:os-instance-actions:list and :show"
        return Reading(
            None, (f"actions on the server: reading them needs the policy rules {needs}",)
        )
    except errors.SteelyardError as error:
        return Reading(None, (f"actions on the server: {error}",))
    found: list[ServerEvent] = []
    for action, several in zip(reversed(listed), reversed(events), strict=True):
        found.append(ServerEvent(action=action.name, event="", at=action.at, result=action.message))
        found += [
            ServerEvent(
                action=action.name,
                event=each.name,
                at=each.at,
                result=each.result,
                host=each.host or "",
                detail=each.detail,
            )
            for each in sorted(several or (), key=lambda each: each.at)
        ]
    return Reading(found, tuple(_hidden(listed, events, microversion)))


def _hidden(
    listed: Sequence[_Action], events: Sequence[list[_Event] | None], microversion: str
) -> list[str]:
    shown = [each for several in events for each in several or ()]
    hidden = []
    if any(several is None for several in events):
        hidden.append(f"events of the actions: reading them needs the policy rule {_HOSTS}")
    if any(each.host is None for each in shown):
        hidden.append(f"hosts of the events: reading them needs the policy rule {_HOSTS}")
    if any(each.result == "Error" and not each.detail for each in shown):
        needs = f"the policy rule {_DETAILS}"
        if not microversions.reaches(microversion, _DETAILS_SINCE):
            needs = f"microversion {_DETAILS_SINCE} or the policy rule {_HOSTS}"
        hidden.append(f"details of failed events: reading them needs {needs}")
    if len(listed) >= _MOST_ACTIONS:
        hidden.append(f"actions on the server before the newest {_MOST_ACTIONS}")
    return hidden
