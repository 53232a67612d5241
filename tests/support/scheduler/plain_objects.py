"""Hosts, aggregates and requests as plain objects with the attributes that filters read."""

import dataclasses
from typing import Any


@dataclasses.dataclass(eq=False)
class Aggregate:
    metadata: Any
    name: str = "aggregate"


@dataclasses.dataclass(eq=False)
class Host:
    aggregates: Any
    host: str = "host"


@dataclasses.dataclass
class Flavor:
    extra_specs: Any


@dataclasses.dataclass
class Request:
    flavor: Any


def request(**extra_specs: Any) -> Request:
    return Request(Flavor(extra_specs))


def host(*metadata: dict[str, Any] | None) -> Host:
    return Host([Aggregate(said, f"aggregate {i}") for i, said in enumerate(metadata, 1)])
