"""Selection of hosts for several requests, all or none."""

import itertools
import types
from collections.abc import Iterator
from typing import Any

import pytest

from steelyard.cloud import Server
from steelyard.cloud.files.request_file import WantedServers
from steelyard.scheduler import FilterScheduler, NoValidHost, several
from steelyard.scheduler.several import NoValidHostForRequest, select_all
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


def test_names_of_many_requests_are_each_compared_once(
    scheduler: FilterScheduler, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []

    def count(first: int) -> Iterator[int]:
        for number in itertools.count(first):
            compared.append(number)
            yield number

    counting = types.SimpleNamespace(count=count, islice=itertools.islice)
    monkeypatch.setattr(several, "itertools", counting)
    requests = [WantedServers("small", number) for number in (1, 2, 1)]
    names = [server.name for server in select_all(scheduler, requests).servers]
    assert names == ["small-1", "small-3", "small-4", "small-5"]
    assert compared == [1, 2, 3, 4, 5]


def test_request_without_a_host_is_named_and_nothing_changes(scheduler: FilterScheduler) -> None:
    before = scheduler.cloud
    requests = [
        WantedServers("small"),
        WantedServers("small", 4, "apart", "db"),
        WantedServers("huge"),
    ]
    message = "no valid host for server 4 of 4: 0 of 3"
    with pytest.raises(NoValidHostForRequest, match=message) as caught:
        select_all(scheduler, requests)
    assert (caught.value.number, caught.value.wanted) == (2, requests[1])
    assert (len(caught.value.decisions), caught.value.count) == (4, 4)
    assert caught.value.__notes__ == [
        "request 2 of 3, 'db', 4 servers of flavor 'small' in group 'apart', has no valid host: "
        "no server of any request was placed"
    ]
    assert scheduler.cloud is before
    with pytest.raises(NoValidHost) as alone:
        select_all(scheduler, requests[2:])
    assert alone.value.__notes__[0].startswith("request 1 of 1, 1 server of flavor 'huge', has")
