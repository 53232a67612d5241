"""Laws of kinds of hosts: the answers are those of filters that are asked about every host."""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any
from unittest import mock

from hypothesis import given, settings
from hypothesis import strategies as st
from oslo_config import cfg

from steelyard.analysis import fitting
from steelyard.analysis.capacity import HostRooms, Room
from steelyard.analysis.checks import check
from steelyard.analysis.kinds import HostKinds
from steelyard.attributes import read
from steelyard.cloud import Aggregate, Cloud, Flavor, Host, Server
from steelyard.cloud.host_state import host_states
from steelyard.filters.base import Filter, Rejections
from steelyard.findings import Finding
from steelyard.page.matrix import judged
from steelyard.scheduler import FilterScheduler, NoValidHost
from steelyard.verdict import Verdict
from support.examples import examples


class FullFilter(Filter):
    """A filter of kinds that leaves one vCPU of each host unused."""

    def by_kind(self, request: object) -> bool:
        return True

    def judge(self, request: object) -> Rejections:
        wanted = read(read(request, "flavor"), "vcpus")

        def rejections(host: object) -> Iterator[Verdict]:
            if read(host, "vcpus_used") + wanted >= read(host, "vcpus_total"):
                yield Verdict.rejected("one vCPU stays unused")

        return rejections


class OddFilter(Filter):
    """A filter of hosts by name that accepts at most three servers on a host."""

    def judge(self, request: object) -> Rejections:
        def rejections(host: object) -> Iterator[Verdict]:
            name = str(read(host, "host"))
            if int(name[1:]) % 3 == 2:
                yield Verdict.rejected(f"{name} is odd", "the host is odd")
            if len(read(host, "instances")) >= 3:
                yield Verdict.rejected(f"{name} has three servers", "three servers")

        return rejections


class OnceFilter(Filter):
    """A filter of kinds whose answer is the same for all servers of a request."""

    run_filter_once_per_request = True

    def by_kind(self, request: object) -> bool:
        return bool(read(read(request, "flavor"), "vcpus"))

    def judge(self, request: object) -> Rejections:
        def rejections(host: object) -> Iterator[Verdict]:
            for aggregate in read(host, "aggregates"):
                if "closed" in aggregate.metadata:
                    yield Verdict.rejected(f"{aggregate.name} is closed", "closed")

        return rejections


@st.composite
def clouds(draw: st.DrawFn) -> Cloud:
    """Return a cloud of few kinds of hosts."""
    kinds = draw(st.lists(st.tuples(*[st.integers(2, 6)] * 2), min_size=1, max_size=3))
    of_hosts = draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=8))
    hosts = {
        f"h{number}": Host(f"h{number}", vcpus, ram, 100, allocation_ratios={"vcpus": 1.5})
        for number, (vcpus, ram) in enumerate(of_hosts)
    }
    members = st.lists(st.sampled_from(sorted(hosts)), unique=True)
    metadata = st.sampled_from([{}, {"closed": "yes"}, {"ssd": "nvme"}, {"ssd": "sata"}])
    aggregates = {
        name: Aggregate(name, draw(metadata), tuple(draw(members))) for name in ("a", "b")
    }
    flavors = {
        f"f{number}": Flavor(f"f{number}", vcpus, ram, 1, specs)
        for number, (vcpus, ram, specs) in enumerate(
            draw(
                st.lists(
                    st.tuples(
                        st.integers(0, 3),
                        st.integers(0, 4),
                        st.sampled_from([{}, {"ssd": "nvme"}, {"resources:PCPU": "1"}]),
                    ),
                    min_size=1,
                    max_size=3,
                )
            )
        )
    }
    places = st.lists(st.sampled_from(sorted(hosts)), max_size=4)
    return Cloud(hosts, aggregates, flavors).with_servers(
        Server(f"s{number}", "s", flavors["f0"], host) for number, host in enumerate(draw(places))
    )


@st.composite
def chains(draw: st.DrawFn) -> list[type[Filter]]:
    """Return filters of third parties, each before steelyard's own or behind them."""
    return draw(st.permutations([FullFilter, OddFilter, OnceFilter]))


def scheduler(cloud: Cloud, chain: Sequence[type[Filter]]) -> FilterScheduler:
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
    found = FilterScheduler(cloud, conf)
    before, *behind = [(each.__name__, each(conf)) for each in chain]
    found.filters = dict([before, *found.filters.items(), *behind])
    return found


@contextlib.contextmanager
def every_host_asked() -> Iterator[None]:
    """Ask every filter about every host in the block."""

    def ask(_: object, name: str, filter_: Filter, hosts: Any, request: Any, question: Any) -> Any:
        return list(question(hosts))

    with mock.patch.object(HostKinds, "ask", ask):
        yield


@settings(max_examples=examples(30))
@given(clouds(), chains())
def test_rooms_are_those_of_filters_asked_about_every_host(
    cloud: Cloud, chain: list[type[Filter]]
) -> None:
    def rooms() -> list[Sequence[Room]]:
        counted = HostRooms(scheduler(cloud, chain))
        return [counted.of(flavor).rooms for flavor in cloud.flavors]

    found = rooms()
    with every_host_asked():
        assert rooms() == found


@settings(max_examples=examples(30))
@given(clouds(), chains())
def test_rooms_count_servers_that_all_filters_accept(
    cloud: Cloud, chain: list[type[Filter]]
) -> None:
    for flavor in cloud.flavors:
        for room in HostRooms(scheduler(cloud, chain)).of(flavor).rooms:
            # Place servers on this host alone, one after the other.
            alone = scheduler(cloud, chain)
            request = alone.request(flavor)
            placed = 0
            (state,) = (each for each in host_states(cloud) if each.host == room.host)
            reason = ""
            while not reason:
                verdicts = (each.examine(state, request) for each in alone.filters.values())
                reason = next((each.reason for each in verdicts if not each.passed), "")
                if not reason:
                    state = state.with_servers(Server(f"n{placed}", "n", request.flavor, ""))
                    placed += 1
            assert (room.more, room.verdict.reason) == (placed, reason)


@settings(max_examples=examples(30))
@given(clouds(), chains())
def test_findings_are_those_of_filters_asked_about_every_host(
    cloud: Cloud, chain: list[type[Filter]]
) -> None:
    def findings() -> list[Finding]:
        with mock.patch.object(
            fitting, "FilterScheduler", lambda found, _: scheduler(found, chain)
        ):
            return check(cloud, cfg.ConfigOpts())

    found = findings()
    with every_host_asked():
        assert findings() == found


@settings(max_examples=examples(30))
@given(clouds(), chains())
def test_page_has_reasons_of_filters_asked_about_every_host(
    cloud: Cloud, chain: list[type[Filter]]
) -> None:
    used = scheduler(cloud, chain)
    try:
        (decision,) = used.select(used.request("f0")).decisions
    except NoValidHost as error:
        decision = error.decision
    found = judged(decision, used.filters)
    with every_host_asked():
        assert judged(decision, used.filters) == found
