"""Laws of every installed filter, over generated hosts and requests."""

import collections
from collections.abc import Callable, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oslo_config import cfg

from steelyard import conf as options
from steelyard import plugins
from steelyard.cloud import Aggregate, Flavor
from steelyard.cloud.host_state import HostState, Request
from steelyard.filters.base import FILTERS, Filter
from steelyard.filters.trial import TrialMode
from steelyard.groups import Policy, ServerGroup
from support.examples import examples
from support.filters import strategies

# Coverage doubles the time of these tests, and others reach the same lines.
pytestmark = pytest.mark.usefixtures("no_cover")

CLASSES = plugins.load_classes(FILTERS, [each.name for each in plugins.installed(FILTERS)])
TRAITS = ["CUSTOM_A", "CUSTOM_B", "HW_CPU_X86_VMX"]

servers = st.sampled_from(["s1", "s2", "s3"])
host_names = st.sampled_from(["h1", "h2", "h3"])
amounts = st.integers(0, 4)

aggregates = st.builds(
    Aggregate,
    name=st.sampled_from(["a1", "a2"]),
    metadata=strategies.metadata(strategies.comma_lists(strategies.scribble)),
    hosts=st.just(()),
)
hosts = st.builds(
    HostState,
    host=host_names,
    aggregates=st.lists(aggregates, max_size=3),
    instances=st.dictionaries(servers, st.none(), max_size=3),
    traits=st.frozensets(st.sampled_from(TRAITS)),
    vcpus_total=amounts,
    ram_mb_total=amounts,
    disk_gb_total=amounts,
    vcpus_used=amounts,
    out_of_service=st.sampled_from(["", "", "disabled: new disk"]),
    resources=st.dictionaries(st.just("CUSTOM_LICENCE"), amounts),
)
extra_specs = st.builds(
    lambda plain, traits, resources: {**plain, **traits, **resources},
    strategies.mappings(strategies.scribble),
    st.dictionaries(
        st.sampled_from([f"trait:{trait}" for trait in TRAITS]),
        st.sampled_from(["required", "forbidden", "perhaps"]),
        max_size=2,
    ),
    st.dictionaries(st.just("resources:CUSTOM_LICENCE"), st.sampled_from(["1", "3"])),
)
flavors = st.builds(
    Flavor,
    name=st.just("f"),
    vcpus=amounts,
    memory_mb=amounts,
    root_gb=amounts,
    extra_specs=extra_specs,
)
groups = st.builds(
    ServerGroup,
    name=st.just("g"),
    policy=st.sampled_from(list(Policy)),
    rules=st.sampled_from([{}, {"max_server_per_host": 2}]),
    members=st.frozensets(servers),
    hosts=st.frozensets(host_names),
)
requests = st.builds(Request, flavors, st.none() | groups, servers)


def new_conf() -> cfg.ConfigOpts:
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
    return conf


def new_filter(kind: type[Filter]) -> Filter:
    return kind(new_conf())


@pytest.mark.parametrize("kind", CLASSES.values(), ids=CLASSES)
@given(candidates=st.lists(hosts, max_size=4), request_=requests)
def test_methods_of_a_filter_agree(
    kind: type[Filter], candidates: list[HostState], request_: Request
) -> None:
    plugin = new_filter(kind)
    verdicts = [plugin.examine(host, request_) for host in candidates]
    expected = [host for host, verdict in zip(candidates, verdicts, strict=True) if verdict.passed]
    assert list(plugin.filter_all(candidates, request_)) == expected
    assert list(plugin.filter_all(tuple(candidates), request_)) == expected
    assert list(plugin.filter_all(iter(candidates), request_)) == expected
    assert [host for host in candidates if plugin.host_passes(host, request_)] == expected
    assert list(plugin.passing(candidates, request_)) == [each.passed for each in verdicts]
    rejects = [verdict for verdict in verdicts if not verdict.passed]
    rejected = [host for host, verdict in zip(candidates, verdicts, strict=True) if not verdict]
    assert list(plugin.first_rejections(iter(rejected), request_)) == rejects
    assert list(map(list, plugin.rejections_all(iter(candidates), request_))) == [
        list(plugin.rejections(host, request_)) for host in candidates
    ]
    for host, verdict in zip(candidates, verdicts, strict=True):
        rejections = list(plugin.rejections(host, request_))
        assert not any(rejections)
        assert rejections[:1] == ([] if verdict.passed else [verdict])


@pytest.mark.parametrize("on_trial", [False, True])
@pytest.mark.parametrize("name", CLASSES)
@settings(max_examples=examples(20))
@given(candidates=st.lists(hosts, max_size=4), request_=requests)
def test_trial_mode_reports_rejections_and_passes_all_hosts(
    name: str, on_trial: bool, candidates: list[HostState], request_: Request
) -> None:
    conf = new_conf()
    options.register(conf)
    conf.set_override("trial_filters", [name] * on_trial, group=options.GROUP)
    plugin = CLASSES[name](conf)
    found = TrialMode(conf).apply(name, plugin, candidates, request_)
    passing = [host for host in candidates if plugin.examine(host, request_)]
    assert list(found.passed()) == (candidates if on_trial else passing)
    assert list(found.rejected()) == [
        host for host in candidates if not plugin.host_passes(host, request_)
    ]


@pytest.mark.parametrize("kind", CLASSES.values(), ids=CLASSES)
@settings(max_examples=examples(25))
@given(candidates=st.lists(hosts, min_size=2, max_size=4), request_=requests)
def test_host_local_filter_is_independent_of_other_hosts(
    kind: type[Filter], candidates: list[HostState], request_: Request
) -> None:
    plugin = new_filter(kind)
    assert plugin.host_local
    alone = [new_filter(kind).passing([host], request_)[0] for host in candidates]
    assert list(plugin.passing(candidates, request_)) == alone


class Counted:
    """A proxy of an object that counts reads of its attributes, its flavor and its group."""

    def __init__(self, thing: object, reads: collections.Counter[str]) -> None:
        self._thing = thing
        self._reads = reads

    def __getattr__(self, name: str) -> Any:
        self._reads[name] += 1
        value = getattr(self._thing, name)
        nested = name in ("flavor", "instance_group") and value is not None
        return Counted(value, self._reads) if nested else value


@pytest.mark.parametrize("kind", CLASSES.values(), ids=CLASSES)
@settings(max_examples=examples(25))
@given(candidates=st.lists(hosts, min_size=3, max_size=3), request_=requests)
def test_filter_reads_a_request_once_for_many_hosts(
    kind: type[Filter], candidates: list[HostState], request_: Request
) -> None:
    plugin = new_filter(kind)
    questions: list[Callable[[list[HostState], Any], Iterable[Any]]] = [
        plugin.filter_all,
        plugin.passing,
        plugin.rejections_all,
        plugin.first_rejections,
        lambda found, request: plugin.filter_all(iter(found), request),
    ]
    for ask in questions:
        counts = []
        for found in (candidates[:1], candidates):
            reads: collections.Counter[str] = collections.Counter()
            list(ask(found, Counted(request_, reads)))
            counts.append(reads)
        assert counts[0] == counts[1]
