"""The same weights as Nova's own weighers for RAM, vCPUs and disk, over generated hosts."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from nova import objects
from nova.scheduler import host_manager, weights
from nova.scheduler.weights import cpu, disk, ram
from oslo_config import cfg

from steelyard import conf as options
from steelyard.cloud import Aggregate, Cloud, Flavor, Host, Server
from steelyard.cloud.host_state import HostState, host_states
from steelyard.weighers.cpu import CPUWeigher
from steelyard.weighers.disk import DiskWeigher
from steelyard.weighers.ram import RAMWeigher
from support.examples import examples

objects.register_all()

OPTIONS = ["cpu_weight_multiplier", "disk_weight_multiplier", "ram_weight_multiplier"]
THEIRS = {
    "CPUWeigher": cpu.CPUWeigher(),
    "DiskWeigher": disk.DiskWeigher(),
    "RAMWeigher": ram.RAMWeigher(),
}


@pytest.fixture(scope="module")
def ours() -> dict[str, Any]:
    return {cls.__name__: cls() for cls in (CPUWeigher, DiskWeigher, RAMWeigher)}


small = st.integers(0, 40)
ratios = st.sampled_from([0.0, 0.9, 1.0, 1.5, 4.0, 16.0])
metadata = st.dictionaries(
    st.sampled_from([*OPTIONS, "rack"]), st.sampled_from(["0", "1.5", "-3", "1e3"]), max_size=3
)


@st.composite
def clouds(draw: st.DrawFn) -> Cloud:
    hosts = {
        name: Host(
            name,
            draw(st.integers(0, 64)),
            draw(st.integers(0, 4096)),
            draw(st.integers(0, 200)),
            reserved={"vcpus": draw(small), "ram_mb": draw(small), "disk_gb": draw(small)},
            used={"vcpus": draw(small), "ram_mb": draw(small), "disk_gb": draw(small)},
            allocation_ratios={name: draw(ratios) for name in ("vcpus", "ram_mb", "disk_gb")},
        )
        for name in ("h1", "h2", "h3")[: draw(st.integers(2, 3))]
    }
    aggregates = {
        name: Aggregate(name, draw(metadata), tuple(draw(st.sets(st.sampled_from(sorted(hosts))))))
        for name in ("a1", "a2")
    }
    return Cloud(hosts, aggregates)


@st.composite
def placed(draw: st.DrawFn, cloud: Cloud) -> list[Server]:
    flavor = Flavor("web", draw(small), draw(small), draw(small))
    on = draw(st.lists(st.sampled_from(sorted(cloud.hosts)), max_size=4))
    return [Server(str(index), str(index), flavor, host) for index, host in enumerate(on)]


def in_nova(host: Host, state: HostState, least: int | None = None) -> Any:
    """Return Nova's own state of the host, from a compute node as nova-compute reports it.

    ``least`` is the disk in GiB that is really left on the host, if nova-compute reports it.
    """
    used = {
        kind: host.reserved.get(kind, 0) + host.used.get(kind, 0)
        for kind in ("vcpus", "ram_mb", "disk_gb")
    }
    node = objects.ComputeNode(
        uuid="00000000-0000-4000-8000-000000000000",
        hypervisor_hostname=host.name,
        vcpus=host.vcpus,
        memory_mb=host.ram_mb,
        local_gb=host.disk_gb,
        vcpus_used=used["vcpus"],
        memory_mb_used=used["ram_mb"],
        local_gb_used=used["disk_gb"],
        free_ram_mb=host.ram_mb - used["ram_mb"],
        free_disk_gb=host.disk_gb - used["disk_gb"],
        disk_available_least=least,
        cpu_allocation_ratio=host.allocation_ratios["vcpus"],
        ram_allocation_ratio=host.allocation_ratios["ram_mb"],
        disk_allocation_ratio=host.allocation_ratios["disk_gb"],
        updated_at=None,
        numa_topology=None,
        pci_device_pools=None,
        host_ip=None,
        hypervisor_type="QEMU",
        hypervisor_version=8002002,
        cpu_info="",
        supported_hv_specs=[],
        stats={},
        metrics=None,
    )
    found = host_manager.HostState(host.name, host.name, "")
    aggregates = [objects.Aggregate(metadata=dict(each.metadata)) for each in state.aggregates]
    found.update(compute=node, aggregates=aggregates, inst_dict={})
    return found


def weighed(weigher: Any, states: Sequence[Any]) -> list[tuple[str, float]]:
    found = weights.HostWeightHandler().get_weighed_objects([weigher], states, None)
    return [(each.obj.host, each.weight) for each in found]


@settings(max_examples=examples(100))
@given(st.data())
def test_hosts_have_the_same_order_and_weights_as_in_nova(
    ours: dict[str, Any], data: st.DataObject
) -> None:
    cloud = data.draw(clouds())
    states = {state.host: state for state in host_states(cloud)}
    novas = {name: in_nova(cloud.hosts[name], state) for name, state in states.items()}
    for server in data.draw(placed(cloud)):
        states[server.host] = states[server.host].with_servers(server)
        flavor = server.flavor
        novas[server.host].consume_from_request(
            objects.RequestSpec(
                flavor=objects.Flavor(
                    vcpus=flavor.vcpus,
                    memory_mb=flavor.memory_mb,
                    root_gb=flavor.root_gb,
                    ephemeral_gb=0,
                    swap=0,
                ),
                is_bfv=False,
                numa_topology=None,
                pci_requests=None,
            )
        )
    for name, theirs in THEIRS.items():
        expected = weighed(theirs, list(novas.values()))
        assert weighed(ours[name], list(states.values())) == expected
        assert weighed(ours[name], list(novas.values())) == expected


def test_multipliers_have_the_names_and_the_defaults_of_nova() -> None:
    group = options.register(cfg.ConfigOpts())
    for name in OPTIONS:
        assert getattr(group, name) == getattr(cfg.CONF.filter_scheduler, name) == 1.0


def test_difference_nova_knows_the_disk_that_is_really_left(ours: dict[str, Any]) -> None:
    ratios = dict.fromkeys(("vcpus", "ram_mb", "disk_gb"), 1.0)
    hosts = {name: Host(name, 1, 1, 100, allocation_ratios=ratios) for name in "ab"}
    states = host_states(Cloud(hosts))
    least = {"a": 50, "b": 70}
    novas = [in_nova(hosts[state.host], state, least[state.host]) for state in states]
    assert weighed(THEIRS["DiskWeigher"], novas) == [("b", 1.0), ("a", 50 / 70)]
    assert weighed(ours["DiskWeigher"], states) == [("a", 1.0), ("b", 1.0)]
