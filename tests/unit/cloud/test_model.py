"""The cloud as an immutable value."""

import dataclasses

import pytest

from steelyard.cloud import Server
from steelyard.errors import Conflict, NotFound
from support.scheduler.three_hosts import cloud


def test_with_servers_rejects_duplicate_uuid_and_unknown_names() -> None:
    found = cloud()
    server = Server("u", "s", found.flavors["small"], "a", "apart")
    with pytest.raises(Conflict, match="server with UUID 'u' already exists"):
        found.with_servers([server, server])
    with pytest.raises(NotFound, match="no host 'z'"):
        found.with_servers([dataclasses.replace(server, host="z")])
    with pytest.raises(NotFound, match="no server group 'apar'; did you mean 'apart'"):
        found.with_servers([dataclasses.replace(server, group="apar")])
