"""Consumers in a real Placement."""

from typing import Any
from urllib.parse import urlencode

from oslo_log import log as logging

from steelyard import errors, microversions
from steelyard.consumers import bodies
from steelyard.consumers.names import ALL, UNKNOWN, ConsumerType
from steelyard.consumers.usages import added, count_of
from steelyard.placement import Placement

LOG = logging.getLogger(__name__)

_MICROVERSION = "1.38"
# What Placement says of consumers that have no type.
_NO_TYPE = "unknown"


class PlacementConsumers:
    """The same questions as to a store, to a Placement that speaks microversion 1.38.

    ``session`` is a keystoneauth1 session, an adapter, or a client of Placement's.
    """

    def __init__(self, session: Any) -> None:
        self._placement = session if isinstance(session, Placement) else Placement(session)

    def require_types(self) -> None:
        """Raises MicroversionTooLow if this Placement keeps no types of consumers."""
        newest = self._placement.newest
        if not microversions.reaches(newest, _MICROVERSION):
            raise errors.MicroversionTooLow(
                f"this Placement speaks up to {newest}: consumers have types from {_MICROVERSION} "
                f"on; upgrade Placement first"
            )

    def providers(self) -> list[str]:
        """The UUIDs of all resource providers."""
        found = self._send("GET", "/resource_providers")["resource_providers"]
        return [provider["uuid"] for provider in found]

    def consumers_of(self, provider: str) -> list[str]:
        """The UUIDs of those who have something allocated from the resource provider."""
        return list(self._send("GET", f"/resource_providers/{provider}/allocations")["allocations"])

    def put_allocations(self, consumer: str, body: object) -> None:
        """Replaces what the consumer has."""
        write = bodies.put(consumer, body)
        _check_known(write.type)
        self._send("PUT", f"/allocations/{write.consumer}", body)

    def post_allocations(self, body: object) -> None:
        """Replaces what many consumers have, all or nothing."""
        for write in bodies.post(body):
            _check_known(write.type)
        self._send("POST", "/allocations", body)

    def delete_allocations(self, consumer: str) -> None:
        """Takes everything from the consumer, whatever its generation."""
        self._send("DELETE", f"/allocations/{bodies.check_uuid('consumer', consumer)}")

    def reshape(self, body: object) -> None:
        """Moves inventories and allocations at once; the body is that of ``POST /reshaper``."""
        self._send("POST", "/reshaper", body)

    def get_allocations(self, consumer: str) -> dict[str, Any]:
        """What the consumer has; its type is UNKNOWN where it has none."""
        uuid = bodies.check_uuid("consumer", consumer)
        found: dict[str, Any] = self._send("GET", f"/allocations/{uuid}")
        if found.get("consumer_type") == _NO_TYPE:
            found["consumer_type"] = UNKNOWN.name
        return found

    def usages(
        self, project_id: str, user_id: str | None = None, consumer_type: str | None = None
    ) -> dict[str, Any]:
        """What is used and by how many: by type, for one type, or for all together."""
        if consumer_type == UNKNOWN.name:
            found = {
                name: used
                for asked in (_NO_TYPE, UNKNOWN.name)
                for name, used in self._usages(project_id, user_id, asked).items()
            }
        else:
            if consumer_type not in (None, ALL):
                ConsumerType(str(consumer_type))
            found = self._usages(project_id, user_id, consumer_type)
        return {"usages": _without_two_names(found)}

    def count(self, project_id: str, user_id: str | None = None, consumer_type: str = ALL) -> int:
        """How many consumers of the type a project, or a user of it, has."""
        return count_of(self.usages(project_id, user_id, consumer_type))

    def _usages(
        self, project_id: str, user_id: str | None, consumer_type: str | None
    ) -> dict[str, dict[str, int]]:
        asked = {"project_id": project_id, "user_id": user_id, "consumer_type": consumer_type}
        query = urlencode({name: value for name, value in asked.items() if value is not None})
        found: dict[str, dict[str, int]] = self._send("GET", f"/usages?{query}")["usages"]
        return found

    def _send(self, method: str, url: str, body: object = None) -> Any:
        return self._placement.send(method, url, _MICROVERSION, body)


def _check_known(kind: ConsumerType) -> None:
    if kind == UNKNOWN:
        raise errors.InvalidConsumerType(
            f"{UNKNOWN} cannot be written to Placement, which would take it for a type of its own "
            f"beside {_NO_TYPE!r}; say what the consumer is"
        )


def _without_two_names(found: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """The usages with one name for what is not known."""
    if UNKNOWN.name in found:
        LOG.warning(
            "Somebody has stored consumers with the type %s in Placement; they are counted with "
            "those that have no type",
            UNKNOWN,
        )
    groups: dict[str, dict[str, int]] = {}
    for name, used in found.items():
        known = UNKNOWN.name if name == _NO_TYPE else name
        groups[known] = added([groups[known], used]) if known in groups else used
    return groups
