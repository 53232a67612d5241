"""Wanted servers whose fields have sources, as those of the product have."""

from typing import Any

from steelyard.cloud import Flavor
from steelyard.cloud.wanted import Source, WantedServer


def wanted_server(flavor: Flavor, **fields: Any) -> WantedServer:
    """Return the wanted server; all fields that are not empty are given as options."""
    known = fields.pop("sources", {})
    stated = [name for name, value in fields.items() if value]
    sources = dict.fromkeys(["flavor", *stated], Source.OPTION) | known
    return WantedServer(flavor=flavor, **fields, sources=sources)
