"""The tiles of the map."""

from steelyard.cloud import Aggregate, Cloud, Host
from steelyard.cloud.host_state import host_states
from steelyard.page.grouping import Tiles
from steelyard.page.view import Tile


def tiles(*aggregates: Aggregate, hosts: str = "abcd", keys: tuple[str, ...] = ()) -> Tiles:
    cloud = Cloud(
        {name: Host(name, 1, 1, 1) for name in hosts}, {each.name: each for each in aggregates}
    )
    return Tiles(host_states(cloud), aggregates, keys)


def test_domains_are_tiles_within_the_domains_around_them() -> None:
    found = tiles(
        Aggregate("r2", {"rack": "2", "room": "x"}, ("a", "b")),
        Aggregate("r1", {"rack": "1", "room": "x"}, ("c",)),
        keys=("rack", "room"),
    )
    assert found.all == (
        Tile("rack: 1", "room: x"),
        Tile("rack: 2", "room: x"),
        Tile("rack: (missing)", "room: (missing)"),
    )
    assert found.of_hosts == [1, 1, 0, 2]


def test_without_domains_each_host_is_in_its_smallest_aggregate() -> None:
    found = tiles(
        Aggregate("all", {}, ("a", "b", "c")),
        Aggregate("two", {}, ("b", "c")),
        Aggregate("one", {}, ("c",)),
        Aggregate("other", {}, ("c",)),
        Aggregate("empty", {}, ()),
    )
    assert found.all == (Tile("all"), Tile("two"), Tile("one"), Tile("in no aggregate"))
    assert found.of_hosts == [0, 1, 2, 3]


def test_without_aggregates_all_hosts_are_in_one_tile() -> None:
    found = tiles()
    assert (found.all, found.of_hosts) == ((Tile("all hosts"),), [0, 0, 0, 0])
    assert tiles(hosts="").all == ()
