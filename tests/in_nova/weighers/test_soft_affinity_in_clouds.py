"""The functional cases of soft affinity, with Nova's default weighers enabled as well."""

from typing import Any

from support.nova import clouds  # before the rest of Nova, as its functional tests require

# isort: split
from nova.scheduler import utils, weights

from steelyard import conf as options

NOVAS = "nova.scheduler.weights.all_weighers"
OURS = "steelyard.nova.all_weighers"
# Nova's other weighers by their class paths, without its own two for soft affinity.
NOVAS_OTHERS = [
    f"{weigher.__module__}.{weigher.__name__}"
    for weigher in weights.all_weighers()
    if "Soft" not in weigher.__name__
]


class Group(clouds.Cloud):
    """A cloud with a server group, configured by the subclasses."""

    group_policy = "soft-affinity"
    weight_classes: tuple[str, ...] = (NOVAS, OURS)
    novas_multiplier = 0.0

    def configure(self) -> None:
        super().configure()
        clouds.CONF.set_override("weight_classes", self.weight_classes, group="filter_scheduler")
        for name in ("soft_affinity_weight_multiplier", "soft_anti_affinity_weight_multiplier"):
            clouds.CONF.set_override(name, self.novas_multiplier, group="filter_scheduler")

    def prepare(self) -> None:
        utils.reset_globals()  # the conductor remembers which policies it supports
        made = self.api.post_server_groups({"name": "group", "policy": self.group_policy})
        self.group = made["id"]

    def place(self, count: int, **kwargs: Any) -> list[dict[str, Any]]:
        """Create servers of the group one by one, and return them."""
        return [self.boot(group=self.group, **kwargs) for _ in range(count)]

    def moved(self, server: dict[str, Any], action: dict[str, Any]) -> str | None:
        """Run the action, and return the server's host."""
        self.api.post_server_action(server["id"], action)
        return clouds.host_of(self.settled(server["id"]))

    def evacuated(self, server: dict[str, Any]) -> str | None:
        """Fail the server's host, evacuate the server, and return its new host."""
        host = clouds.host_of(server)
        assert host is not None
        self.fail_host(host)
        return clouds.host_of(self._evacuate_server(server))

    def rebuilt(self, server: dict[str, Any]) -> str | None:
        image = "a2459075-d96c-40d5-893e-577ff92e721c"
        # In the newest microversions, Nova 31 rejects its own response for a server in a group.
        newest, self.api.microversion = self.api.microversion, "2.93"
        self.api.post_server_action(server["id"], {"rebuild": {"imageRef": image}})
        self.api.microversion = newest
        return clouds.host_of(self.settled(server["id"]))


def hosts(servers: list[dict[str, Any]]) -> list[str | None]:
    return [clouds.host_of(server) for server in servers]


class TestTogether(Group, clouds.SharedCloud):
    """``soft-affinity``, with one configuration file for all of Nova."""

    def test_servers_created_one_by_one_are_stacked(self) -> None:
        assert len(set(hosts(self.place(3)))) == 1

    def test_servers_created_at_once_are_stacked(self) -> None:
        assert len(set(hosts(self.boot_at_once(3, group=self.group)))) == 1

    def test_servers_beyond_a_full_host_are_stacked_on_the_next(self) -> None:
        first, second, third, fourth = hosts(self.place(4, memory_mb=3500))
        assert first == second
        assert second != third
        assert third == fourth

    def test_rebuild_keeps_the_host(self) -> None:
        servers = self.place(2)
        assert clouds.host_of(servers[0]) == self.rebuilt(servers[0])

    def test_migration_back_rejoins_the_group(self) -> None:
        servers = self.place(3)
        home = clouds.host_of(servers[0])
        away = self.moved(servers[0], {"migrate": None})
        assert home != away
        self.api.post_server_action(servers[0]["id"], {"confirmResize": None})
        self._wait_for_state_change(servers[0], "ACTIVE")
        assert home == self.moved(servers[0], {"migrate": None})

    def test_live_migration_rejoins_the_group(self) -> None:
        stray = self.boot(host="host1", group=self.group)
        home = self.boot(host="host2", group=self.group)
        self.boot(host="host3")
        assert clouds.host_of(self._live_migrate(stray)) == "host2"
        assert clouds.host_of(home) == "host2"


class TestApart(Group, clouds.SharedCloud):
    """``soft-anti-affinity``, with one configuration file for all of Nova."""

    group_policy = "soft-anti-affinity"

    def test_servers_created_one_by_one_are_spread_evenly(self) -> None:
        found = hosts(self.place(6))
        assert {"host1", "host2", "host3"} == set(found[:3])
        assert {"host1", "host2", "host3"} == set(found[3:])

    def test_servers_created_at_once_are_spread(self) -> None:
        found = hosts(self.boot_at_once(3, group=self.group))
        assert {"host1", "host2", "host3"} == set(found)

    def test_policy_outweighs_free_ram(self) -> None:
        self.place(1, host="host1")
        self.boot(host="host2", memory_mb=6000)
        self.boot(host="host3", memory_mb=5000)
        assert hosts(self.place(2)) == ["host3", "host2"]

    def test_rebuild_keeps_the_host(self) -> None:
        servers = self.place(2)
        assert clouds.host_of(servers[0]) == self.rebuilt(servers[0])

    def test_migration_moves_away_from_the_group(self) -> None:
        moving = self.boot(host="host1", group=self.group)
        self.boot(host="host2", group=self.group)
        assert self.moved(moving, {"migrate": None}) == "host3"

    def test_live_migration_moves_away_from_the_group(self) -> None:
        moving = self.boot(host="host1", group=self.group)
        self.boot(host="host2", group=self.group)
        assert clouds.host_of(self._live_migrate(moving)) == "host3"


class TestOneHost(Group):
    group_policy = "soft-anti-affinity"
    hosts = ("host1",)

    def test_servers_are_placed_on_a_single_host(self) -> None:
        assert hosts(self.place(2)) == ["host1", "host1"]


class TwoFiles(Group):
    """A cloud whose scheduler has its own file; the conductor keeps Nova's weighers."""

    weight_classes = (*NOVAS_OTHERS, OURS)
    novas_multiplier = 1.0  # the scheduler has none of Nova's weighers

    def prepare(self) -> None:
        # The scheduler has already loaded its weighers.
        clouds.CONF.set_override("weight_classes", [NOVAS], group="filter_scheduler")
        super().prepare()
        loaded = [type(each) for each in self.scheduler_service.manager.host_manager.weighers]
        modules = [each.__module__ for each in loaded if "Soft" in each.__name__]
        assert modules == ["steelyard.nova", "steelyard.nova"]


class TestTogetherWithTwoFiles(TwoFiles):
    """Creations and one move: the conductor checks the policy for both, with its own file."""

    def test_evacuation_rejoins_the_group(self) -> None:
        lost = self.boot(host="host1", group=self.group)
        self.boot(host="host3", group=self.group)
        assert clouds.host_of(self.boot(group=self.group)) in {"host1", "host3"}
        assert self.evacuated(lost) == "host3"


class TestApartWithTwoFiles(TwoFiles):
    """The same for the other policy."""

    group_policy = TestApart.group_policy

    def test_evacuation_moves_away_from_the_group(self) -> None:
        lost = self.boot(host="host1", group=self.group)
        last = self.boot(group=self.group)
        assert clouds.host_of(last) in {"host2", "host3"}
        assert {self.evacuated(lost), clouds.host_of(last)} == {"host2", "host3"}


class TestOnlyOurPath(Group):
    """A cloud whose conductor lacks Nova's weighers, so that Nova rejects the policy."""

    weight_classes = (*NOVAS_OTHERS, OURS)

    def test_policy_without_novas_weighers_is_rejected(self) -> None:
        server = self.boot(group=self.group)
        assert server["status"] == "ERROR"
        assert "ServerGroup policy is not supported" in server["fault"]["message"]


class TestNovaAlone(Group):
    """A cloud with Nova's defaults, whose other weighers outweigh the policy."""

    weight_classes = (NOVAS,)
    novas_multiplier = 1.0

    def test_servers_created_one_by_one_are_scattered(self) -> None:
        assert len(set(hosts(self.place(3)))) == 3


class Domains(Group):
    """A cloud whose hosts are in racks and rooms."""

    domains: tuple[str, ...]
    racks: dict[str, tuple[str, ...]]
    rooms: dict[str, tuple[str, ...]] = {}

    def configure(self) -> None:
        super().configure()
        options.register(clouds.CONF)
        clouds.CONF.set_override("failure_domains", self.domains, group="steelyard")

    def prepare(self) -> None:
        super().prepare()
        for key, domains in (("rack", self.racks), ("room", self.rooms)):
            for name, members in domains.items():
                made = self.api.post_aggregate({"aggregate": {"name": f"{key} {name}"}})["id"]
                self.aggregates[f"{key} {name}"] = made
                action = {"set_metadata": {"metadata": {key: name}}}
                self.api.post_aggregate_action(made, action)
                for host in members:
                    self.api.post_aggregate_action(made, {"add_host": {"host": host}})


class TestRacks(Domains, clouds.SharedCloud):
    """A cloud with host1 and host2 in one rack, and host3 in another."""

    group_policy = "soft-anti-affinity"
    domains = ("rack",)
    racks = {"1": ("host1", "host2"), "2": ("host3",)}

    def test_racks_take_precedence_over_hosts(self) -> None:
        self.place(1, host="host1")
        self.boot(host="host3", memory_mb=6000)
        assert hosts(self.place(3, memory_mb=512)) == ["host3", "host2", "host3"]

    def test_host_that_is_not_a_candidate_counts_in_its_rack(self) -> None:
        self.place(1, host="host1", memory_mb=7000)
        self.boot(host="host3", memory_mb=5500)
        assert hosts(self.place(1, memory_mb=2000)) == ["host3"]

    def test_server_alone_in_its_rack_may_stay_there(self) -> None:
        moving = self.boot(host="host1", group=self.group)
        self.boot(host="host3", group=self.group)
        assert self.moved(moving, {"migrate": None}) == "host2"


class TestRooms(Domains):
    """A cloud with each host in its own rack; host1 and host2 share a room."""

    domains = ("rack", "room")
    racks = {"1": ("host1",), "2": ("host2",), "3": ("host3",)}
    rooms = {"a": ("host1", "host2"), "b": ("host3",)}

    def test_host_that_is_not_a_candidate_counts_in_its_room(self) -> None:
        self.place(1, host="host1", memory_mb=7000)
        self.boot(host="host2", memory_mb=5500)
        assert hosts(self.place(1, memory_mb=2000)) == ["host2"]
