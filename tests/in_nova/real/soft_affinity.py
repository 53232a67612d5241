"""The functional cases of soft affinity, with Nova's default weighers beside ours."""

from typing import Any

from real import clouds  # before the rest of Nova, as its functional tests want

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
    """A cloud with a server group; how it is configured is up to the classes below."""

    wish = "soft-affinity"
    weight_classes: tuple[str, ...] = (NOVAS, OURS)
    novas_multiplier = 0.0

    def setUp(self) -> None:
        clouds.CONF.set_override("weight_classes", self.weight_classes, group="filter_scheduler")
        for name in ("soft_affinity_weight_multiplier", "soft_anti_affinity_weight_multiplier"):
            clouds.CONF.set_override(name, self.novas_multiplier, group="filter_scheduler")
        utils.reset_globals()  # the conductor remembers which policies it supports
        super().setUp()
        made = self.api.post_server_groups({"name": "group", "policy": self.wish})
        self.group = made["id"]

    def place(self, count: int, **kwargs: Any) -> list[dict[str, Any]]:
        """So many servers of the group, one after the other."""
        return [self.boot(group=self.group, **kwargs) for _ in range(count)]

    def moved(self, server: dict[str, Any], action: dict[str, Any]) -> str | None:
        """Where the server is after the action."""
        self.api.post_server_action(server["id"], action)
        return clouds.host_of(self.settled(server["id"]))

    def evacuated(self, server: dict[str, Any]) -> str | None:
        """Where the server is after its host has failed."""
        host = clouds.host_of(server)
        self.computes[host].stop()
        service = self.api.get_services(binary="nova-compute", host=host)[0]["id"]
        self.api.put_service_force_down(service, True)
        return clouds.host_of(self._evacuate_server(server))

    def rebuilt(self, server: dict[str, Any]) -> str | None:
        image = "a2459075-d96c-40d5-893e-577ff92e721c"
        # In the newest microversions, Nova 31 refuses its own answer about a server in a group.
        newest, self.api.microversion = self.api.microversion, "2.93"
        self.api.post_server_action(server["id"], {"rebuild": {"imageRef": image}})
        self.api.microversion = newest
        return clouds.host_of(self.settled(server["id"]))


def hosts(servers: list[dict[str, Any]]) -> list[str | None]:
    return [clouds.host_of(server) for server in servers]


class Together(Group):
    """``soft-affinity``, with one configuration file for all of Nova."""

    def test_servers_created_one_by_one_are_stacked(self) -> None:
        self.assertEqual(1, len(set(hosts(self.place(3)))))

    def test_servers_created_at_once_are_stacked(self) -> None:
        self.assertEqual(1, len(set(hosts(self.boot_at_once(3, group=self.group)))))

    def test_a_full_host_is_followed_by_another(self) -> None:
        first, second, third, fourth = hosts(self.place(4, memory_mb=3500))
        self.assertEqual(first, second)
        self.assertNotEqual(second, third)
        self.assertEqual(third, fourth)

    def test_a_rebuild_stays(self) -> None:
        servers = self.place(2)
        self.assertEqual(clouds.host_of(servers[0]), self.rebuilt(servers[0]))

    def test_a_migration_goes_to_another_host_and_back_to_the_others(self) -> None:
        servers = self.place(3)
        home = clouds.host_of(servers[0])
        away = self.moved(servers[0], {"migrate": None})
        self.assertNotEqual(home, away)
        self.api.post_server_action(servers[0]["id"], {"confirmResize": None})
        self._wait_for_state_change(servers[0], "ACTIVE")
        self.assertEqual(home, self.moved(servers[0], {"migrate": None}))

    def test_a_live_migration_goes_back_to_the_others(self) -> None:
        stray = self.boot(host="host1", group=self.group)
        home = self.boot(host="host2", group=self.group)
        self.boot(host="host3")
        self.assertEqual("host2", clouds.host_of(self._live_migrate(stray)))
        self.assertEqual("host2", clouds.host_of(home))

    def test_an_evacuation_goes_to_the_others(self) -> None:
        lost = self.boot(host="host1", group=self.group)
        self.boot(host="host3", group=self.group)
        self.assertEqual("host3", self.evacuated(lost))


class Apart(Group):
    """``soft-anti-affinity``, with one configuration file for all of Nova."""

    wish = "soft-anti-affinity"

    def test_servers_are_spread_and_then_evenly(self) -> None:
        found = hosts(self.place(6))
        self.assertEqual({"host1", "host2", "host3"}, set(found[:3]))
        self.assertEqual({"host1", "host2", "host3"}, set(found[3:]))

    def test_servers_created_at_once_are_spread(self) -> None:
        found = hosts(self.boot_at_once(3, group=self.group))
        self.assertEqual({"host1", "host2", "host3"}, set(found))

    def test_the_wish_outranks_free_ram(self) -> None:
        self.place(1, host="host1")
        self.boot(host="host2", memory_mb=6000)
        self.boot(host="host3", memory_mb=5000)
        self.assertEqual(["host3", "host2"], hosts(self.place(2)))

    def test_a_rebuild_stays(self) -> None:
        servers = self.place(4)
        self.assertEqual(clouds.host_of(servers[0]), self.rebuilt(servers[0]))

    def test_a_migration_keeps_away_from_the_others(self) -> None:
        moving = self.boot(host="host1", group=self.group)
        self.boot(host="host2", group=self.group)
        self.assertEqual("host3", self.moved(moving, {"migrate": None}))

    def test_a_live_migration_keeps_away_from_the_others(self) -> None:
        moving = self.boot(host="host1", group=self.group)
        self.boot(host="host2", group=self.group)
        self.assertEqual("host3", clouds.host_of(self._live_migrate(moving)))

    def test_an_evacuation_keeps_away_from_the_others(self) -> None:
        lost = self.boot(host="host1", group=self.group)
        self.boot(host="host3", group=self.group)
        self.assertEqual("host2", self.evacuated(lost))


class OneHost(Group):
    wish = "soft-anti-affinity"
    hosts = ("host1",)

    def test_servers_are_placed_although_there_is_only_one_host(self) -> None:
        self.assertEqual(["host1", "host1"], hosts(self.place(2)))


class TwoFiles(Group):
    """The scheduler has a file of its own, and the conductor keeps Nova's names."""

    weight_classes = (*NOVAS_OTHERS, OURS)
    novas_multiplier = 1.0  # its weighers are not there

    def setUp(self) -> None:
        super().setUp()  # here the scheduler has started, and has loaded its weighers
        clouds.CONF.set_override("weight_classes", [NOVAS], group="filter_scheduler")
        loaded = [type(each) for each in self.scheduler_service.manager.host_manager.weighers]
        modules = [each.__module__ for each in loaded if "Soft" in each.__name__]
        self.assertEqual(["steelyard.nova", "steelyard.nova"], modules)


class TogetherWithTwoFiles(TwoFiles, Together):
    pass


class ApartWithTwoFiles(TwoFiles, Apart):
    pass


class OnlyOurPath(Group):
    """Without Nova's names, the conductor refuses the policy, as Nova's own check wants it."""

    weight_classes = (*NOVAS_OTHERS, OURS)

    def test_the_policy_is_refused(self) -> None:
        server = self.boot(group=self.group)
        self.assertEqual("ERROR", server["status"])
        self.assertIn("ServerGroup policy is not supported", server["fault"]["message"])


class NovaAlone(Group):
    """What Nova does by default: its other weighers outvote the policy."""

    weight_classes = (NOVAS,)
    novas_multiplier = 1.0

    def test_servers_created_one_by_one_are_scattered(self) -> None:
        self.assertEqual(3, len(set(hosts(self.place(3)))))


class Racks(Group):
    """host1 and host2 share a rack, host3 is in another."""

    wish = "soft-anti-affinity"
    domains: tuple[str, ...] = ("rack",)
    racks = {"1": ("host1", "host2"), "2": ("host3",)}
    rooms: dict[str, tuple[str, ...]] = {}

    def setUp(self) -> None:
        options.register(clouds.CONF)
        clouds.CONF.set_override("failure_domains", self.domains, group="steelyard")
        super().setUp()
        for key, domains in (("rack", self.racks), ("room", self.rooms)):
            for name, members in domains.items():
                made = self.api.post_aggregate({"aggregate": {"name": f"{key} {name}"}})["id"]
                said = {"set_metadata": {"metadata": {key: name}}}
                self.api.post_aggregate_action(made, said)
                for host in members:
                    self.api.post_aggregate_action(made, {"add_host": {"host": host}})

    def test_racks_come_before_hosts(self) -> None:
        self.place(1, host="host1")
        self.boot(host="host3", memory_mb=6000)
        self.assertEqual(["host3", "host2", "host3"], hosts(self.place(3, memory_mb=512)))

    def test_a_host_that_is_no_candidate_counts_for_its_rack(self) -> None:
        self.place(1, host="host1", memory_mb=7000)
        self.boot(host="host3", memory_mb=5500)
        self.assertEqual(["host3"], hosts(self.place(1, memory_mb=2000)))

    def test_a_server_does_not_keep_away_from_the_rack_that_it_is_alone_in(self) -> None:
        moving = self.boot(host="host1", group=self.group)
        self.boot(host="host3", group=self.group)
        self.assertEqual("host2", self.moved(moving, {"migrate": None}))


class Rooms(Racks):
    """Each host is in a rack of its own; host1 and host2 share a room."""

    wish = "soft-affinity"
    domains = ("rack", "room")
    racks = {"1": ("host1",), "2": ("host2",), "3": ("host3",)}
    rooms = {"a": ("host1", "host2"), "b": ("host3",)}

    def test_racks_come_before_hosts(self) -> None:
        self.boot(host="host1", memory_mb=2000)
        self.place(1, host="host1")
        self.assertEqual(["host1"], hosts(self.place(1)))

    def test_a_host_that_is_no_candidate_counts_for_its_rack(self) -> None:
        """And for its room: the next server goes to the other host there."""
        self.place(1, host="host1", memory_mb=7000)
        self.boot(host="host2", memory_mb=5500)
        self.assertEqual(["host2"], hosts(self.place(1, memory_mb=2000)))

    def test_a_server_does_not_keep_away_from_the_rack_that_it_is_alone_in(self) -> None:
        """Nor does it stay in its room for its own sake."""
        moving = self.boot(host="host1", group=self.group)
        self.boot(host="host2", memory_mb=5500)
        self.assertEqual("host3", self.moved(moving, {"migrate": None}))
