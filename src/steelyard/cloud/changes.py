"""Changes of a cloud: values that each turn one cloud into another."""

import abc
import dataclasses
import enum
from collections.abc import Iterable, Mapping

from steelyard import errors
from steelyard.cloud.model import Cloud, known
from steelyard.cloud.values import Aggregate, Flavor, Host
from steelyard.text import spelling

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

    @property
    @abc.abstractmethod
    def arguments(self) -> tuple[str, str]:
        """The option of ``steelyard whatif`` for the change, and its value."""


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
            return with_flavors(cloud, [dataclasses.replace(flavor, extra_specs=specs)])
        aggregate = known("aggregate", self.name, cloud.aggregates)
        metadata = self._changed(aggregate.metadata)
        return _with_aggregate(cloud, dataclasses.replace(aggregate, metadata=metadata))

    @property
    def arguments(self) -> tuple[str, str]:
        place = f"{self.part}:{self.name}:{self.key}"
        return ("--unset", place) if self.value is None else ("--set", f"{place}={self.value}")

    def _changed(self, before: Mapping[str, str]) -> dict[str, str]:
        if self.value is not None:
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

    @property
    def arguments(self) -> tuple[str, str]:
        return "--add-host" if self.joins else "--remove-host", f"{self.aggregate}:{self.host}"


@dataclasses.dataclass(frozen=True, slots=True)
class TakeOut(Change):
    """Take a host out of service."""

    host: str

    def applied(self, cloud: Cloud) -> Cloud:
        known("host", self.host, cloud.hosts)
        return _taken_out(cloud, [self.host])

    @property
    def arguments(self) -> tuple[str, str]:
        return "--out", f"host:{self.host}"


@dataclasses.dataclass(frozen=True, slots=True)
class TakeOutAggregate(Change):
    """Take all hosts of an aggregate out of service."""

    aggregate: str

    def applied(self, cloud: Cloud) -> Cloud:
        hosts = known("aggregate", self.aggregate, cloud.aggregates).hosts
        if not hosts:
            raise errors.Conflict(f"aggregate {self.aggregate!r} has no hosts", self.aggregate)
        return _taken_out(cloud, hosts)

    @property
    def arguments(self) -> tuple[str, str]:
        return "--out", f"aggregate:{self.aggregate}"


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
                f"no aggregate has the key {self.key!r}{spelling.near(self.key, keys)}", self.key
            )
        values = {each.name: _words(each.metadata[self.key]) for each in having}
        chosen = [each for each in having if self.value in values[each.name]]
        if not any(each.hosts for each in chosen):
            words = {word for each in having for word in values[each.name]}
            raise errors.NotFound(
                f"no aggregate with hosts has {self.key!r} = {self.value!r}"
                f"{spelling.near(self.value, words - {self.value})}",
                self.value,
            )
        return _taken_out(cloud, [host for each in chosen for host in each.hosts])

    @property
    def arguments(self) -> tuple[str, str]:
        return "--out", f"{self.key}={self.value}"


@dataclasses.dataclass(frozen=True, slots=True)
class TakeIn(Change):
    """Put a host back into service."""

    host: str

    def applied(self, cloud: Cloud) -> Cloud:
        host = known("host", self.host, cloud.hosts)
        if not host.out_of_service:
            raise errors.Conflict(f"host {self.host!r} is already in service", self.host)
        return _with_hosts(cloud, [dataclasses.replace(host, out_of_service="")])

    @property
    def arguments(self) -> tuple[str, str]:
        return "--in", f"host:{self.host}"


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


def with_flavors(cloud: Cloud, flavors: Iterable[Flavor]) -> Cloud:
    """Return the cloud with these flavors instead of those of the same names.

    Servers refer to the flavors, too.
    """
    changed = {flavor.name: flavor for flavor in flavors}
    servers = {
        uuid: dataclasses.replace(server, flavor=changed[server.flavor.name])
        if server.flavor.name in changed
        else server
        for uuid, server in cloud.servers.items()
    }
    return dataclasses.replace(cloud, flavors={**cloud.flavors, **changed}, servers=servers)


def with_servers_of(cloud: Cloud, other: Cloud, name: str) -> Cloud:
    """Return the other cloud with the servers of this one; ``name`` is the other's name.

    Hosts that the other cloud lacks are in it, out of service. Servers have the other cloud's
    flavors and server groups; those that it lacks are the ones of this cloud.
    """
    missing = {
        host.name: dataclasses.replace(host, out_of_service=f"not in {name}")
        for host in cloud.hosts.values()
        if host.name not in other.hosts
    }
    groups = {**cloud.server_groups, **other.server_groups}
    used = {server.flavor.name: server.flavor for server in cloud.servers.values()}
    flavors = {**used, **other.flavors}
    servers = [
        dataclasses.replace(server, flavor=flavors[server.flavor.name])
        for server in cloud.servers.values()
    ]
    return Cloud(
        {**other.hosts, **missing},
        other.aggregates,
        flavors,
        {
            name: dataclasses.replace(group, members=frozenset(), hosts=frozenset())
            for name, group in groups.items()
        },
    ).with_servers(servers)


def _with_aggregate(cloud: Cloud, aggregate: Aggregate) -> Cloud:
    aggregates = {**cloud.aggregates, aggregate.name: aggregate}
    return dataclasses.replace(cloud, aggregates=aggregates)


def _with_hosts(cloud: Cloud, hosts: Iterable[Host]) -> Cloud:
    return dataclasses.replace(cloud, hosts={**cloud.hosts, **{each.name: each for each in hosts}})


def _taken_out(cloud: Cloud, names: Iterable[str]) -> Cloud:
    """Return the cloud without service on these hosts; one that is out keeps its reason."""
    hosts = (cloud.hosts[name] for name in names)
    return _with_hosts(
        cloud,
        [
            dataclasses.replace(each, out_of_service=OUT)
            for each in hosts
            if not each.out_of_service
        ],
    )


def _words(text: str) -> list[str]:
    """Return the whole text, and its parts that commas separate."""
    return [text, *(word.strip() for word in text.split(","))]
