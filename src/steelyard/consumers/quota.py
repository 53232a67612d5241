"""The usage of projects, as oslo.limit's enforcer asks for it."""

import dataclasses
import re
from collections.abc import Collection, Mapping

from steelyard import errors
from steelyard.consumers.base import ConsumerModel
from steelyard.consumers.names import ALL, ConsumerType
from steelyard.consumers.usages import COUNT, added
from steelyard.text import spelling

_PREFIX = "class:"
_CLASS = re.compile("[A-Z0-9_]{1,255}")


@dataclasses.dataclass(frozen=True, slots=True)
class _ResourceClass:
    name: str


class QuotaUsage:
    """The usage callback of oslo.limit's enforcer, on a consumer store or on Placement.

    ``limits`` maps the names of limits to the consumer types that they count, such as
    ``{"servers": "INSTANCE"}``. A name such as ``class:VCPU`` stands for the amount of a resource
    class, whatever the type of the consumers; it is a limit itself, and can be in the map, such as
    ``{"cores": "class:VCPU"}``.
    """

    def __init__(self, consumers: ConsumerModel, limits: Mapping[str, str]) -> None:
        self._consumers = consumers
        self._limits = {name: _counted(name, what) for name, what in limits.items()}

    def __call__(self, project_id: str | None, resource_names: Collection[str]) -> dict[str, int]:
        """Return the usage of each limit in the project; 0 if there is none.

        Raises BadRequest for a name that is neither in the map nor that of a resource class.
        """
        if project_id is None:
            raise errors.BadRequest(
                "missing project: consumers are counted by project; use another enforcer for "
                "limits without projects"
            )
        wanted = {name: self._wanted(name) for name in resource_names}
        kinds = {each.name for each in wanted.values() if isinstance(each, ConsumerType)}
        if len(kinds) == len(set(wanted.values())):
            # Counting alone is faster in the store, which then reads no allocations.
            counts = {kind: self._consumers.count(project_id, consumer_type=kind) for kind in kinds}
            used: dict[str, int] = {}
        else:
            # One answer has both the counts and the amounts at one time.
            groups = self._consumers.usages(project_id, None, None if kinds else ALL)["usages"]
            counts = {kind: groups[kind][COUNT] for kind in kinds & groups.keys()}
            used = added(groups.values())
        return {
            name: (counts if isinstance(each, ConsumerType) else used).get(each.name, 0)
            for name, each in wanted.items()
        }

    def _wanted(self, name: str) -> ConsumerType | _ResourceClass:
        if name in self._limits:
            return self._limits[name]
        if name.startswith(_PREFIX):
            return _counted(name, name)
        known = ", ".join(map(repr, sorted(self._limits))) or "no limits"
        raise errors.BadRequest(
            f"unknown limit {name!r:.300}: the map has {known}; add it, or name a resource class, "
            f"such as 'class:VCPU'{spelling.suggestion(name, self._limits)}",
            name,
        )


def _counted(limit: str, what: str) -> ConsumerType | _ResourceClass:
    """Return the type or the class that a limit counts; raise BadRequest if it is invalid."""
    if not isinstance(what, str) or not what.startswith(_PREFIX):
        try:
            return ConsumerType(what)
        except errors.InvalidConsumerType as error:
            message = f"limit {limit!r:.300}: {error.message}"
            raise errors.InvalidConsumerType(message, what) from None
    name = what.removeprefix(_PREFIX)
    if not _CLASS.fullmatch(name):
        raise errors.BadRequest(
            f"limit {limit!r:.300}: invalid resource class {name!r:.300}: expected 1 to 255 "
            f"characters of A-Z, 0-9 and _, such as VCPU",
            what,
        )
    return _ResourceClass(name)
