"""Changes of a cloud: values that each turn one cloud into another."""

import abc
import dataclasses
import enum
from collections.abc import Iterable, Mapping

from steelyard import errors
from steelyard.cloud.model import Cloud, known
from steelyard.cloud.values import Aggregate, Host
from steelyard.text import spelling
from steelyard.text.wording import listed

OUT = "taken out by a change"
"""The reason for which hosts are out of service after a change."""


class KeyedPart(enum.StrEnum):
    """The parts of a cloud that have keys and values."""

    FLAVOR = "flavor"
    AGGREGATE = "aggregate"


class Change(abc.ABC):
    """A change that turns one cloud into another."""

    @abc.abstractmethod
    def applied(self, cloud: Cloud) -> Cloud:
        """Return the changed cloud.

        Raises NotFound if the cloud lacks something that the change names, and Conflict if there is
        nothing to change.
        """


@dataclasses.dataclass(frozen=True, slots=True)
class SetKey(Change):
    """Set an extra spec of a flavor or a metadata key of an aggregate; None removes it."""

    part: KeyedPart
    name: str
    key: str
    value: str | None

    def applied(self, cloud: Cloud) -> Cloud:
        if self.part is KeyedPart.FLAVOR:
            flavor = cloud.flavor(self.name)
            specs = self._changed(flavor.extra_specs)
            changed = dataclasses.replace(flavor, extra_specs=specs)
            return dataclasses.replace(cloud, flavors={**cloud.flavors, flavor.name: changed})
        aggregate = known("aggregate", self.name, cloud.aggregates)
        metadata = self._changed(aggregate.metadata)
        return _with_aggregate(cloud, dataclasses.replace(aggregate, metadata=metadata))

    def _changed(self, before: Mapping[str, str]) -> dict[str, str]:
        if self.value is not None:
            if before.get(self.key) == self.value:
                raise errors.Conflict(
                    f"{self.part} {self.name!r} already has {self.key!r} = {self.value!r}", self.key
                )
            return {**before, self.key: self.value}
        if self.key not in before:
            raise errors.NotFound(
                f"{self.part} {self.name!r} has no key {self.key!r}"
                f"{spelling.near(self.key, before)}",
                self.key,
            )
        return {key: value for key, value in before.items() if key != self.key}


@dataclasses.dataclass(frozen=True, slots=True)
class SetMembership(Change):
    """Add a host to an aggregate, or remove it."""

    aggregate: str
    host: str
    joins: bool

    def applied(self, cloud: Cloud) -> Cloud:
        aggregate = known("aggregate", self.aggregate, cloud.aggregates)
        known("host", self.host, cloud.hosts)
        if (self.host in aggregate.hosts) == self.joins:
            state = "already" if self.joins else "not"
            raise errors.Conflict(
                f"host {self.host!r} is {state} in aggregate {self.aggregate!r}", self.host
            )
        hosts = (
            (*aggregate.hosts, self.host)
            if self.joins
            else tuple(host for host in aggregate.hosts if host != self.host)
        )
        return _with_aggregate(cloud, dataclasses.replace(aggregate, hosts=hosts))


@dataclasses.dataclass(frozen=True, slots=True)
class TakeOut(Change):
    """Take a host out of service."""

    host: str

    def applied(self, cloud: Cloud) -> Cloud:
        known("host", self.host, cloud.hosts)
        return _taken_out(cloud, [self.host])


@dataclasses.dataclass(frozen=True, slots=True)
class TakeOutAggregate(Change):
    """Take all hosts of an aggregate out of service."""

    aggregate: str

    def applied(self, cloud: Cloud) -> Cloud:
        hosts = known("aggregate", self.aggregate, cloud.aggregates).hosts
        if not hosts:
            raise errors.Conflict(f"aggregate {self.aggregate!r} has no hosts", self.aggregate)
        return _taken_out(cloud, hosts)


@dataclasses.dataclass(frozen=True, slots=True)
class TakeOutByMetadata(Change):
    """Take the hosts of all aggregates out of service that have a value at a metadata key.

    The value may also be one of several, separated by commas.
    """

    key: str
    value: str

    def applied(self, cloud: Cloud) -> Cloud:
        having = [each for each in cloud.aggregates.values() if self.key in each.metadata]
        if not having:
            keys = {key for each in cloud.aggregates.values() for key in each.metadata}
            raise errors.NotFound(
                f"no aggregate has the key {self.key!r}{spelling.near(self.key, sorted(keys))}",
                self.key,
            )
        values = {each.name: _words(each.metadata[self.key]) for each in having}
        chosen = [each for each in having if self.value in values[each.name]]
        if not any(each.hosts for each in chosen):
            words = {word for each in having for word in values[each.name]}
            raise errors.NotFound(
                f"no aggregate with hosts has {self.key!r} = {self.value!r}"
                f"{spelling.near(self.value, sorted(words - {self.value}))}",
                self.value,
            )
        return _taken_out(cloud, [host for each in chosen for host in each.hosts])


@dataclasses.dataclass(frozen=True, slots=True)
class TakeIn(Change):
    """Put a host back into service."""

    host: str

    def applied(self, cloud: Cloud) -> Cloud:
        host = known("host", self.host, cloud.hosts)
        if not host.out_of_service:
            raise errors.Conflict(f"host {self.host!r} is already in service", self.host)
        return _with_hosts(cloud, [dataclasses.replace(host, out_of_service="")])


def applied(cloud: Cloud, changes: Iterable[tuple[str, Change]]) -> Cloud:
    """Return the cloud with the changes applied in their order, each with its place in the input.

    Raises the errors of the changes, with this place.
    """
    for place, change in changes:
        try:
            cloud = change.applied(cloud)
        except (errors.NotFound, errors.Conflict) as error:
            raise type(error)(f"{place}: {error}", error.text) from error
    return cloud


def with_servers_of(cloud: Cloud, other: Cloud, name: str) -> Cloud:
    """Return the other cloud with the servers of this one; ``name`` is the other's name.

    The result also has the hosts that the other cloud lacks, out of service, and the groups of the
    servers that it lacks.
    """
    missing = {
        host.name: dataclasses.replace(host, out_of_service=f"not in {name}")
        for host in cloud.hosts.values()
        if host.name not in other.hosts
    }
    used = {server.group for server in cloud.servers.values()}
    kept = {name: group for name, group in cloud.server_groups.items() if name in used}
    return Cloud(
        {**other.hosts, **missing},
        other.aggregates,
        other.flavors,
        {
            name: dataclasses.replace(group, members=frozenset(), hosts=frozenset())
            for name, group in {**kept, **other.server_groups}.items()
        },
    ).with_servers(cloud.servers.values())


def _with_aggregate(cloud: Cloud, aggregate: Aggregate) -> Cloud:
    aggregates = {**cloud.aggregates, aggregate.name: aggregate}
    return dataclasses.replace(cloud, aggregates=aggregates)


def _with_hosts(cloud: Cloud, hosts: Iterable[Host]) -> Cloud:
    return dataclasses.replace(cloud, hosts={**cloud.hosts, **{each.name: each for each in hosts}})


def _taken_out(cloud: Cloud, names: Iterable[str]) -> Cloud:
    """Return the cloud without service on these hosts; one that is out keeps its reason.

    Raises Conflict if all of them are out of service.
    """
    hosts = [cloud.hosts[name] for name in names]
    in_service = [host for host in hosts if not host.out_of_service]
    if not in_service:
        said = listed([host.name for host in hosts])
        raise errors.Conflict(f"already out of service: {said}", hosts[0].name)
    return _with_hosts(
        cloud, [dataclasses.replace(each, out_of_service=OUT) for each in in_service]
    )


def _words(text: str) -> list[str]:
    """Return the whole text, and its parts that commas separate."""
    return [text, *(word.strip() for word in text.split(","))]
