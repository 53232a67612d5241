"""Clouds of any size, for benchmarks and for tests at small sizes."""

import random
import uuid

from steelyard.cloud import Aggregate, Cloud, Flavor, Host, Server
from steelyard.groups import Policy, ServerGroup

_SSD = ("nvme", "sata", "nvme, sata", "optane")
_TRAITS = ("HW_CPU_X86_AVX2", "HW_CPU_X86_AVX512F", "HW_NIC_SRIOV", "CUSTOM_FAST_NETWORK")
_POLICIES = (Policy.ANTI_AFFINITY, Policy.SOFT_ANTI_AFFINITY, Policy.SOFT_AFFINITY)
_GROUP_SIZE = 10


def big_cloud(
    hosts: int = 10_000,
    servers: int = 100_000,
    flavors: int = 60,
    aggregates: int = 200,
    *,
    kinds: int | None = None,
    groups: int | None = None,
    seed: int = 0,
) -> Cloud:
    """Return a cloud as ``steelyard cloud import`` describes it, the same for each seed.

    Each host is in 3 aggregates: its rack (metadata ``rack``), its room (``room`` and
    ``availability_zone``) and its pool (``ssd``). Half of the aggregates are racks, and there is a
    room for every 20 racks. Hosts of the same kind differ only in their names, UUIDs, racks and
    rooms, and have servers of the same flavors; without ``kinds``, all hosts differ. No host is
    overcommitted. ``groups`` is the number of server groups, by default one for every 100 servers;
    each has 10 servers on different hosts, as far as there are as many.
    """
    chance = random.Random(seed)
    host_names = [f"host-{number:06}" for number in range(hosts)]
    kind_of = [number % kinds if kinds else number for number in range(hosts)]
    group_names = [f"group-{n}" for n in range(servers // 100 if groups is None else groups)]
    sizes = {f"flavor-{number:03}": _flavor(number) for number in range(flavors)}
    cloud = Cloud(
        _hosts(host_names, kind_of, -(-servers // hosts), chance),
        _aggregates(host_names, kind_of, aggregates),
        sizes,
        {
            name: ServerGroup(name, _POLICIES[number % len(_POLICIES)], uuid=_uuid(chance))
            for number, name in enumerate(group_names)
        },
    )
    of_all = list(sizes.values())
    return cloud.with_servers(
        Server(
            _uuid(chance),
            f"server-{number:07}",
            of_all[
                (kind_of[number % hosts] + number // hosts) % flavors
                if kinds
                else chance.randrange(flavors)
            ],
            host_names[number % hosts],
            group_names[number // _GROUP_SIZE] if number < len(group_names) * _GROUP_SIZE else None,
        )
        for number in range(servers)
    )


def _uuid(chance: random.Random) -> str:
    return str(uuid.UUID(int=chance.getrandbits(128), version=4))


def _flavor(number: int) -> Flavor:
    vcpus = 1 << number % 4
    extra_specs = {"ssd": _SSD[number % 2]} if number % 3 == 0 else {}
    if number % 7 == 1:
        extra_specs[f"trait:{_TRAITS[number % len(_TRAITS)]}"] = "required"
    return Flavor(f"flavor-{number:03}", vcpus, 2048 * vcpus, 10 * vcpus, extra_specs)


def _hosts(
    names: list[str], kind_of: list[int], servers: int, chance: random.Random
) -> dict[str, Host]:
    """Return the hosts, each large enough for this number of servers."""
    vcpus = max(64, 8 * (servers + 4))
    return {
        name: Host(
            name,
            vcpus + 8 * (kind % 5),
            2048 * vcpus + 4096 + 64 * kind,
            10 * vcpus + 1000 * (1 + kind % 3),
            frozenset(trait for bit, trait in enumerate(_TRAITS) if kind >> bit & 1),
            _uuid(chance),
            reserved={"ram_mb": 4096},
            allocation_ratios={"vcpus": 4.0, "ram_mb": 1.0, "disk_gb": 1.0},
        )
        for name, kind in zip(names, kind_of, strict=True)
    }


def _aggregates(hosts: list[str], kind_of: list[int], count: int) -> dict[str, Aggregate]:
    racks = max(1, count // 2)
    rooms = max(1, racks // 20)
    pools = max(1, count - racks - rooms)
    members: dict[str, list[str]] = {}
    metadata: dict[str, dict[str, str]] = {}
    for number, (host, kind) in enumerate(zip(hosts, kind_of, strict=True)):
        rack, pool = number * racks // len(hosts), kind % pools
        room = rack % rooms
        for name, said in (
            (f"rack-{rack:04}", {"rack": f"rack-{rack:04}"}),
            (f"room-{room:02}", {"room": f"room-{room:02}", "availability_zone": f"az-{room}"}),
            (f"pool-{pool:04}", {"ssd": _SSD[pool % len(_SSD)], "generation": str(pool % 8)}),
        ):
            members.setdefault(name, []).append(host)
            metadata[name] = said
    return {name: Aggregate(name, metadata[name], tuple(members[name])) for name in sorted(members)}
