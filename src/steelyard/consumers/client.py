"""Consumers in a real Placement."""

from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlencode

from oslo_log import log as logging

from steelyard import errors, microversions
from steelyard.clients.placement import Placement
from steelyard.consumers import bodies
from steelyard.consumers.base import Consumers
from steelyard.consumers.names import ALL, PLACEMENTS_UNKNOWN, UNKNOWN, ConsumerType
from steelyard.consumers.usages import COUNT, added, count_of

LOG = logging.getLogger(__name__)

_MICROVERSION = "1.38"


class PlacementConsumers(Consumers):
    """The methods of :class:`ConsumerStore` on a Placement with microversion 1.38.

    ``session`` is a :class:`~steelyard.clients.Placement`, or an adapter of keystoneauth1 such as
    ``openstack.connect(cloud=…).placement``. A bare session of keystoneauth1 has no region.
    """

    def __init__(self, session: Any) -> None:
        self._placement = session if isinstance(session, Placement) else Placement(session)

    def require_types(self) -> None:
        """Raise MicroversionTooLow if this Placement has no consumer types."""
        newest = self._placement.newest
        if not microversions.reaches(newest, _MICROVERSION):
            raise errors.MicroversionTooLow(
                f"Placement supports microversions up to {newest}: consumer types need "
                f"{_MICROVERSION}; upgrade Placement"
            )

    def providers(self) -> list[str]:
        """Return the UUIDs of all resource providers."""
        found = self._send("GET", "/resource_providers")["resource_providers"]
        return [provider["uuid"] for provider in found]

    def consumers_of(
        self,
        *,
        project: str | None = None,
        type: str | None = None,  # noqa: A002  (a public keyword)
        provider: str | None = None,
    ) -> Iterator[str]:
        """Return an iterator over the UUIDs of the consumers with this project, type and provider.

        Placement lists the consumers of one resource provider at a time, without their projects and
        types: a ``provider`` is required, and with a project or a type, each consumer of the
        provider is read. For a whole cloud, call this for each of :meth:`providers`.
        """
        if project is not None:
            bodies.check_owner(project)
        kind = bodies.check_type(type)
        if provider is None:
            raise errors.BadRequest(
                "missing provider: Placement cannot list the consumers of a project or of a type, "
                "only those of one resource provider; name one, or ask for each of providers()"
            )
        uuid = bodies.check_uuid("resource provider", provider)
        found = self._send("GET", f"/resource_providers/{uuid}/allocations")["allocations"]
        return self._matching(found, project, kind)

    def _matching(
        self, found: Iterable[str], project: str | None, kind: ConsumerType | None
    ) -> Iterator[str]:
        for consumer in found:
            if project is None and kind is None:
                yield consumer
                continue
            body = self.get_allocations(consumer)
            if (
                body["allocations"]
                and project in (None, body["project_id"])
                and (kind is None or kind.name == body["consumer_type"])
            ):
                yield consumer

    def put_allocations(self, consumer: str, body: object) -> None:
        """Replace the allocations of one consumer."""
        write = bodies.put(consumer, body)
        _check_known(write.type)
        self._write("PUT", f"/allocations/{write.consumer}", body)

    def post_allocations(self, body: object) -> None:
        """Replace the allocations of all consumers in the body, or of none on an error."""
        for write in bodies.post(body):
            _check_known(write.type)
        self._write("POST", "/allocations", body)

    def delete_allocations(self, consumer: str) -> None:
        """Delete all allocations of the consumer, whatever its generation."""
        self._send("DELETE", f"/allocations/{bodies.check_uuid('consumer', consumer)}")

    def reshape(self, body: object) -> None:
        """Change inventories and allocations in one step, with the body of ``POST /reshaper``.

        Placement rejects a reshape without inventories. Its allocations are then sent like those of
        :meth:`post_allocations`.
        """
        writes = bodies.reshaper(body)
        for write in writes:
            _check_known(write.type)
        parts: Any = body
        if parts.get("inventories"):
            self._write("POST", "/reshaper", body)
        elif writes:
            self._write("POST", "/allocations", parts["allocations"])

    def get_allocations(self, consumer: str) -> dict[str, Any]:
        """Return the consumer's allocations, with type UNKNOWN if it has no type.

        The generations of the providers are left out, since a write ignores them.
        """
        uuid = bodies.check_uuid("consumer", consumer)
        found: dict[str, Any] = self._send("GET", f"/allocations/{uuid}")
        found["allocations"] = {
            provider: {"resources": allocation["resources"]}
            for provider, allocation in found["allocations"].items()
        }
        if found.get("consumer_type") == PLACEMENTS_UNKNOWN:
            found["consumer_type"] = UNKNOWN.name
        return found

    def usages(
        self, project_id: str, user_id: str | None = None, consumer_type: str | None = None
    ) -> dict[str, Any]:
        """Return the usage by type, or of one type, or of all types together.

        Without ``consumer_type``, usages are by type. ``"all"`` adds up all types. Each group has
        the number of consumers as ``consumer_count``.
        """
        bodies.check_owner(project_id, user_id)
        if consumer_type == UNKNOWN.name:
            found = {
                name: used
                for unknown in (PLACEMENTS_UNKNOWN, UNKNOWN.name)
                for name, used in self._usages(project_id, user_id, unknown).items()
            }
        else:
            bodies.check_type(consumer_type)
            found = self._usages(project_id, user_id, consumer_type)
        return {"usages": _with_unknown_merged(found)}

    def count(self, project_id: str, user_id: str | None = None, consumer_type: str = ALL) -> int:
        """Return the number of consumers of the type in a project, or of one of its users."""
        return count_of(self.usages(project_id, user_id, consumer_type))

    def types(self, project_id: str | None = None, user_id: str | None = None) -> dict[str, int]:
        """Return the number of consumers of each type in a project, or of one of its users."""
        if project_id is None:
            raise errors.BadRequest(
                "missing project: Placement cannot count the consumers of all projects by type, "
                "only those of one project; name the project"
            )
        groups = self.usages(project_id, user_id)["usages"]
        return {name: groups[name][COUNT] for name in sorted(groups)}

    def _usages(
        self, project_id: str, user_id: str | None, consumer_type: str | None
    ) -> dict[str, dict[str, int]]:
        parameters = {"project_id": project_id, "user_id": user_id, "consumer_type": consumer_type}
        query = urlencode({name: value for name, value in parameters.items() if value is not None})
        found: dict[str, dict[str, int]] = self._send("GET", f"/usages?{query}")["usages"]
        return found

    def _write(self, method: str, url: str, body: object) -> None:
        """Send a request that writes allocations.

        Placement rejects requests beyond the inventory with a 409 without an error code.
        """
        self._placement.send(method, url, _MICROVERSION, body, errors.OverCapacity)

    def _send(self, method: str, url: str, body: object = None) -> Any:
        return self._placement.send(method, url, _MICROVERSION, body)


def _check_known(kind: ConsumerType) -> None:
    if kind == UNKNOWN:
        raise errors.InvalidConsumerType(
            f"invalid consumer type '{UNKNOWN}': Placement would store it as another type beside "
            f"{PLACEMENTS_UNKNOWN!r}; set the consumer's actual type",
            kind.name,
        )


def _with_unknown_merged(found: dict[str, dict[str, int]]) -> dict[str, dict[str, int]]:
    """Return the usages with Placement's ``unknown`` and a stored UNKNOWN as one group."""
    if UNKNOWN.name in found:
        LOG.warning(
            "Counting the consumers that Placement stores with type '%s' as consumers without a "
            "type",
            UNKNOWN,
        )
    groups: dict[str, dict[str, int]] = {}
    for name, used in found.items():
        known = UNKNOWN.name if name == PLACEMENTS_UNKNOWN else name
        groups[known] = added([groups[known], used]) if known in groups else used
    return groups
