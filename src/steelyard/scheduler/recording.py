"""What is allocated to servers, recorded in a model of consumers such as a ConsumerStore."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

from steelyard import errors
from steelyard.consumers.names import UNKNOWN
from steelyard.scheduler import cloud_file
from steelyard.scheduler.cloud import Cloud, Server
from steelyard.scheduler.pipeline import FilterScheduler, Selection

INSTANCE = "INSTANCE"

# Whoever says this has written nothing. After any other error that is not sure.
_REFUSALS = (errors.BadRequest, errors.NotFound, errors.Conflict)

Body = dict[str, Any]


class Recorder:
    """Writes servers into a model as consumers of the type INSTANCE, of a project and its user."""

    def __init__(
        self, scheduler: FilterScheduler, model: Any, project_id: str, user_id: str
    ) -> None:
        self._scheduler = scheduler
        self._model = model
        self._project_id = project_id
        self._user_id = user_id

    @contextlib.contextmanager
    def recorded(self, selection: Selection) -> Iterator[None]:
        """Has the allocations recorded while what follows is done, and for good if it is.

        They come first, as in Nova: whoever finds no room for them there must not start a server.
        """
        before = {
            server.uuid: self._before(server, selection.cloud) for server in selection.servers
        }
        wanted = {
            server.uuid: {
                **_typed(before[server.uuid]),
                "allocations": self._allocations(server, selection.cloud, before[server.uuid]),
            }
            for server in selection.servers
        }
        self._write(wanted, before)
        try:
            yield
        except BaseException as error:
            self._take_back(before, error)
            raise

    def _before(self, server: Server, cloud: Cloud) -> Body:
        """What the model has of the server: nothing yet if it is a new one."""
        found: Body = self._model.get_allocations(server.uuid)
        if server.uuid in cloud.servers:
            if not found["allocations"]:
                raise errors.NotFound(
                    f"nothing is recorded as allocated to {_named(server)}; move it without "
                    f"recording"
                )
            return found
        if found["allocations"]:
            raise errors.Conflict(
                f"{_named(server)} is recorded already: the same seed draws the same UUIDs; give "
                f"another seed, or none"
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
            self._settle(wanted, before, error)
            raise

    def _settle(
        self, wanted: Mapping[str, Body], before: Mapping[str, Body], why: BaseException
    ) -> None:
        """Takes back a write that was done though its answer was lost; else names the servers."""
        try:
            done = all(
                _is_written(self._model.get_allocations(uuid), wanted[uuid]) for uuid in wanted
            )
        except Exception as error:  # noqa: BLE001  (whatever it is, the servers have to be named)
            raise errors.ServiceError(
                f"{_said(why)}; whether it is recorded for {', '.join(wanted)} cannot be found "
                f"out: {_said(error)}"
            ) from why
        if not done:
            # Who is slow to answer may still be at work.
            raise errors.ServiceError(
                f"{_said(why)}; so far, it is not recorded for {', '.join(wanted)}"
            ) from why
        self._take_back(before, why)

    def _take_back(self, before: Mapping[str, Body], why: BaseException) -> None:
        undone = {
            uuid: {**body, "consumer_generation": _next_generation(body)}
            for uuid, body in before.items()
        }
        try:
            self._write_back(undone)
        except Exception as error:  # noqa: BLE001  (as above)
            raise errors.ServiceError(
                f"{_said(why)}; what was recorded before that for {', '.join(undone)} could not "
                f"be taken back: {_said(error)}"
            ) from why

    def _write_back(self, undone: Mapping[str, Body]) -> None:
        try:
            self._model.post_allocations(undone)
        except errors.InvalidConsumerType:
            # No consumer of a Placement's can lose its type again.
            self._model.post_allocations({uuid: _typed(body) for uuid, body in undone.items()})


def _named(server: Server) -> str:
    return f"server {server.name!r} ({server.uuid})"


def _provider(host: str, cloud: Cloud) -> str:
    """The UUID of the host's resource provider."""
    return cloud.hosts[host].uuid or cloud_file.uuid_of(host)


def _moved(found: Mapping[str, Any], server: Server, cloud: Cloud) -> Body:
    """The allocations with those from the host that the server leaves taken to the new one.

    What other providers have given to the server stays there: somebody else has recorded it.
    """
    host = cloud.servers[server.uuid].host
    old, new = _provider(host, cloud), _provider(server.host, cloud)
    if old not in found:
        raise errors.Conflict(
            f"nothing is recorded as allocated to {_named(server)} from its host {host!r} ({old}), "
            f"but from {', '.join(found)}; correct the cloud file, or move it without recording"
        )
    kept = {provider: allocation for provider, allocation in found.items() if provider != old}
    if new in kept:
        raise errors.Conflict(
            f"something is recorded as allocated to {_named(server)} from host {server.host!r} "
            f"({new}) already; if it is being moved there, wait for the end of that"
        )
    return {**kept, new: {"resources": found[old]["resources"]}}


def _typed(body: Body) -> Body:
    """The body with a type, if it says that nobody knows it."""
    return {**body, "consumer_type": INSTANCE} if body["consumer_type"] == UNKNOWN.name else body


def _next_generation(body: Body) -> int:
    """The one that a consumer has after a write of this body."""
    generation: int | None = body["consumer_generation"]
    return (generation or 0) + 1


def _is_written(found: Body, wanted: Body) -> bool:
    """Whether what is found is what this write has made, and nobody has changed since."""
    generation = found.get("consumer_generation")
    return generation == _next_generation(wanted) and _used(found) == _used(wanted)


def _used(body: Body) -> Body:
    return {provider: each["resources"] for provider, each in body["allocations"].items()}


def _said(error: BaseException) -> str:
    """What the error says; some, such as that of Ctrl-C, say nothing."""
    return str(error) or type(error).__name__
