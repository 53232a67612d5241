"""Selection of hosts for several requests, all or none."""

from typing import Any

import pytest

from steelyard.cloud import Server
from steelyard.cloud.files.request_file import WantedServers
from steelyard.scheduler import FilterScheduler, NoValidHost
from steelyard.scheduler.several import select_all
from support.scheduler.three_hosts import cloud


@pytest.fixture
def scheduler(conf: Any) -> FilterScheduler:
    found = cloud()
    old = Server("u", "small-2", found.flavors["small"], "a")
    return FilterScheduler(found.with_servers([old]), conf)


def test_select_all_places_each_request_after_the_ones_before_it(
    scheduler: FilterScheduler,
) -> None:
    requests = [WantedServers("small", 2, "apart", "x"), WantedServers("small", 1, "apart", "y")]
    before = scheduler.cloud
    selection = select_all(scheduler, requests)
    assert scheduler.cloud is before
    assert [server.name for server in selection.servers] == ["x-1", "x-2", "y"]
    assert {server.host for server in selection.servers} == {"a", "b", "c"}
    scheduler.commit(selection)
    assert {server.name for server in scheduler.cloud.servers.values()} == {
        "small-2",
        *("x-1", "x-2", "y"),
    }
    assert len(scheduler.cloud.server_group("apart").members) == 3


def test_servers_without_a_name_avoid_all_names(scheduler: FilterScheduler) -> None:
    requests = [
        WantedServers("small", 2),
        WantedServers("small", name="small-1"),
        WantedServers("small"),
    ]
    names = [server.name for server in select_all(scheduler, requests).servers]
    assert names == ["small-3", "small-4", "small-1", "small-5"]


def test_request_without_a_host_is_named_and_nothing_changes(scheduler: FilterScheduler) -> None:
    before = scheduler.cloud
    requests = [
        WantedServers("small"),
        WantedServers("small", 4, "apart", "db"),
        WantedServers("huge"),
    ]
    with pytest.raises(NoValidHost, match="no valid host for server 4 of 4: 0 of 3") as caught:
        select_all(scheduler, requests)
    assert caught.value.__notes__ == [
        "request 2 of 3, 'db', 4 servers of flavor 'small' in group 'apart', has no valid host: "
        "no server of any request was placed"
    ]
    assert scheduler.cloud is before
    with pytest.raises(NoValidHost) as caught:
        select_all(scheduler, requests[2:])
    assert caught.value.__notes__[0].startswith("request 1 of 1, 1 server of flavor 'huge', has")
