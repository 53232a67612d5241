"""Recording the allocations of servers in a consumer model, such as a ConsumerStore."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from steelyard import errors
from steelyard.cloud import Cloud, Server
from steelyard.cloud.derived_uuids import uuid_of
from steelyard.consumers.base import Body, ConsumerModel
from steelyard.consumers.names import UNKNOWN
from steelyard.scheduler.pipeline import FilterScheduler, Selection

INSTANCE = "INSTANCE"

# Errors after which nothing was written. After any other, the outcome is unknown.
_REFUSALS = (errors.BadRequest, errors.NotFound, errors.Conflict)

_UNRECORDED = "move it without recording: leave out --url and --os-cloud"


class Recorder:
    """A recorder of servers as consumers of the type INSTANCE, for one project and user."""

    def __init__(
        self, scheduler: FilterScheduler, model: ConsumerModel, project_id: str, user_id: str
    ) -> None:
        self._scheduler = scheduler
        self._model = model
        self._project_id = project_id
        self._user_id = user_id

    @contextlib.contextmanager
    def recorded(self, selection: Selection) -> Iterator[None]:
        """Record the allocations of the servers, and undo that if the block fails.

        As in Nova, allocations are recorded first, so that no server starts without them. Raises
        Conflict or NotFound if the recorded allocations do not agree with the cloud, and
        ServiceError if it is unknown whether a write succeeded.
        """
        cloud = self._scheduler.cloud
        before = {server.uuid: self._before(server, cloud) for server in selection.servers}
        wanted = {
            server.uuid: {
                **_typed(before[server.uuid]),
                "allocations": self._allocations(server, cloud, before[server.uuid]),
            }
            for server in selection.servers
        }
        self._write(wanted, before)
        try:
            yield
        except BaseException as error:
            self._undo(before, error)
            raise

    def _before(self, server: Server, cloud: Cloud) -> Body:
        """Return the server's recorded allocations, which are empty for a new server."""
        found: Body = self._model.get_allocations(server.uuid)
        if server.uuid in cloud.servers:
            if not found["allocations"]:
                raise errors.NotFound(f"no recorded allocations of {_named(server)}; {_UNRECORDED}")
            return found
        if found["allocations"]:
            raise errors.Conflict(
                f"allocations of {_named(server)} are already recorded: the same seed yields the "
                f"same UUIDs; use another seed, or none"
            )
        return {
            "allocations": {},
            "project_id": self._project_id,
            "user_id": self._user_id,
            "consumer_generation": None,
            "consumer_type": INSTANCE,
        }

    def _allocations(self, server: Server, cloud: Cloud, before: Body) -> Body:
        if server.uuid in cloud.servers:
            return _moved(before["allocations"], server, cloud)
        used = self._scheduler.resources(server.flavor.name)
        return {_provider(server.host, cloud): {"resources": used}}

    def _write(self, wanted: Mapping[str, Body], before: Mapping[str, Body]) -> None:
        try:
            self._model.post_allocations(wanted)
        except _REFUSALS:
            raise
        except BaseException as error:
            self._undo_lost(wanted, before, error)
            raise

    def _undo_lost(
        self, wanted: Mapping[str, Body], before: Mapping[str, Body], why: BaseException
    ) -> None:
        """Undo a write whose response was lost, if it succeeded.

        Otherwise, raise a ServiceError that names the servers.
        """
        try:
            done = all(
                _is_written(self._model.get_allocations(uuid), wanted[uuid]) for uuid in wanted
            )
        except Exception as error:  # noqa: BLE001  (the message must name the servers)
            raise errors.ServiceError(
                f"{_message(why)}; allocations of {', '.join(wanted)} may be recorded, and cannot "
                f"be read: {_message(error)}"
            ) from why
        if not done:
            # A slow service may still execute the write.
            raise errors.ServiceError(
                f"{_message(why)}; allocations of {', '.join(wanted)} are not recorded yet, but "
                f"may be later"
            ) from why
        self._undo(before, why)

    def _undo(self, before: Mapping[str, Body], why: BaseException) -> None:
        undone = {
            uuid: {**body, "consumer_generation": _next_generation(body)}
            for uuid, body in before.items()
        }
        try:
            self._write_undone(undone)
        except Exception as error:  # noqa: BLE001  (as above)
            raise errors.ServiceError(
                f"{_message(why)}; cannot undo the recorded allocations of {', '.join(undone)}: "
                f"{_message(error)}"
            ) from why

    def _write_undone(self, undone: Mapping[str, Body]) -> None:
        try:
            self._model.post_allocations(undone)
        except errors.InvalidConsumerType:
            # In Placement, a consumer with a type cannot lose it again.
            self._model.post_allocations({uuid: _typed(body) for uuid, body in undone.items()})


def _named(server: Server) -> str:
    return f"server {server.name!r} ({server.uuid})"


def _provider(host: str, cloud: Cloud) -> str:
    """Return the UUID of the host's resource provider."""
    return cloud.hosts[host].uuid or uuid_of(host)


def _moved(found: Mapping[str, Any], server: Server, cloud: Cloud) -> Body:
    """Return the allocations with those of the server's old host moved to the new one.

    Allocations from other providers stay, because another service has recorded them.
    """
    host = cloud.servers[server.uuid].host
    old, new = _provider(host, cloud), _provider(server.host, cloud)
    if old not in found:
        raise errors.Conflict(
            f"no recorded allocations of {_named(server)} on its host {host!r} ({old}), only on "
            f"{', '.join(found)}; correct the cloud file, or {_UNRECORDED}"
        )
    kept = {provider: allocation for provider, allocation in found.items() if provider != old}
    if new in kept:
        raise errors.Conflict(
            f"allocations of {_named(server)} are already recorded on host {server.host!r} "
            f"({new}); if another move of the server to this host is running, wait until it has "
            f"finished"
        )
    return {**kept, new: {"resources": found[old]["resources"]}}


def _typed(body: Body) -> Body:
    """Return the body with the type INSTANCE in place of an unknown type."""
    return {**body, "consumer_type": INSTANCE} if body["consumer_type"] == UNKNOWN.name else body


def _next_generation(body: Body) -> int:
    """Return the generation that the consumer has after a write of this body."""
    generation: int | None = body["consumer_generation"]
    return (generation or 0) + 1


def _is_written(found: Body, wanted: Body) -> bool:
    """Return whether the consumer is as this write left it, without a later change."""
    generation = found.get("consumer_generation")
    return generation == _next_generation(wanted) and _used(found) == _used(wanted)


def _used(body: Body) -> Body:
    return {provider: each["resources"] for provider, each in body["allocations"].items()}


def _message(error: BaseException) -> str:
    """Return the error's message, or its type if it has no message, as after Ctrl-C."""
    return str(error) or type(error).__name__
