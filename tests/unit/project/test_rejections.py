"""The page about rejections, compared with the reasons and causes in the code."""

import ast
import dataclasses
import functools
import importlib.metadata
import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from steelyard.analysis.capacity import HostRooms
from steelyard.analysis.why.facts import Facts, KnownHost
from steelyard.analysis.why.novas_filters import NovasFilters
from steelyard.cli.outputs.columns import Causes, Why
from steelyard.cloud import Aggregate, Cloud, Flavor, Host
from steelyard.cloud.host_state import HostState
from steelyard.cloud.wanted import WantedServer
from steelyard.filters.affinity import ServerGroupAffinityFilter, ServerGroupAntiAffinityFilter
from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter
from steelyard.filters.base import FILTERS, Filter, Rejections
from steelyard.filters.capacity import CapacityFilter
from steelyard.filters.in_service import InServiceFilter
from steelyard.filters.traits import TraitsFilter
from steelyard.groups import Policy, ServerGroup
from steelyard.scheduler import FilterScheduler, Request
from support.project.parsed_sources import FOUND, dotted
from support.repository import DOCS
from support.scheduler.host_states import state

TEXT = (DOCS / "reference" / "rejections.rst").read_text()
# The first cell of each row of a table.
PHRASES = [
    " ".join(phrase.split())
    for phrase in re.findall(r"^   \* - ``(.+?)``$", TEXT, re.MULTILINE | re.DOTALL)
]

# Functions and classes whose texts are part of rejections, although their modules make none.
# None stands for all of a module.
QUOTED = {
    "expressions": None,
    "traits.query": {"_unmet", "check_name", "_invalid"},
    "traits.flavors": {"_traits"},
    "filters.trial": {"_log", "_listed"},
    "cli.outputs.columns": {"Causes", "Why"},
}
# Texts of these modules that are in no rejection, and why.
OTHERS = {
    "Aggregate …": "warnings in the log",
    "An aggregate": "warnings in the log",
    "additional …": "the UUID of a server that is tried",
    "one of the traits … is required, but all are missing": "flavors have no any-of groups",
}


def flavor(**extra_specs: str) -> Flavor:
    return Flavor("web", vcpus=1, memory_mb=1024, root_gb=10, extra_specs=extra_specs)


def host(*metadata: Mapping[str, str]) -> HostState:
    """Return a host in aggregates with this metadata."""
    return state(aggregates=[Aggregate(f"a{i}", each, ("h",)) for i, each in enumerate(metadata)])


def group(policy: Policy) -> ServerGroup:
    return ServerGroup("db", policy, {}, frozenset({"u1"}), frozenset({"h"}))


def forced(**metadata: str) -> dict[str, str]:
    return {"force_metadata_check": "true", **metadata}


NOVAS = [
    "AggregateInstanceExtraSpecsFilter",
    "AggregateMultiTenancyIsolation",
    "DifferentHostFilter",
    "ImagePropertiesFilter",
    "SameHostFilter",
]


class Silent(Filter):
    """A filter that rejects every host without a reason."""

    def judge(self, request: object) -> Rejections:
        return lambda host: ()

    def passing(self, hosts: Sequence[object], request: object) -> list[bool]:
        return [False for _ in hosts]


NVME, SATA = {"ssd": "nvme"}, {"ssd": "sata"}
MALFORMED = ["<or>", "<or> a <or> !", ">=", "<in>", ">= eight"]
DOUBTFUL = [">=8", "=< 8", "!sata", "nvme <or> sata", ">= 8 GiB", "<or> nvme <or>"]
REJECTED: list[tuple[type[Filter], HostState, Request]] = [
    (AggregateInstanceTypeFilter, each, Request(flavor(ssd=text)))
    for text in ["nvme", "s>= nvme", *MALFORMED, *DOUBTFUL]
    for each in [
        host(),
        host(SATA),
        host(*[SATA] * 4),
        host(forced(ssd="!")),
        host(forced(ssd="<in> x")),
        host(forced(ssd="<in> x"), forced(ssd="<in> y")),
        host(forced(ssd=">=")),
    ]
]
REJECTED += [
    (AggregateInstanceTypeFilter, host(forced(ssd=text)), Request(flavor()))
    for text in ["nvme", ">=", ">=8"]
]
REJECTED += [
    (CapacityFilter, state(ram_mb_total=512), Request(flavor())),
    (InServiceFilter, state(out_of_service="down"), Request(flavor())),
    (TraitsFilter, state(), Request(flavor(**{"trait:GPU": "required"}))),
    (TraitsFilter, state(), Request(flavor(**{"trait:GPU": "wanted"}))),
    (TraitsFilter, state(), Request(flavor(**{"trait:gpu": "required"}))),
    (
        TraitsFilter,
        state(traits=frozenset({"GPU"})),
        Request(flavor(**{"trait:GPU": "forbidden"})),
    ),
    (ServerGroupAffinityFilter, state(host="i"), Request(flavor(), group(Policy.AFFINITY))),
    (
        ServerGroupAntiAffinityFilter,
        state(instances={"u1": None}),
        Request(flavor(), group(Policy.ANTI_AFFINITY)),
    ),
    (Silent, state(), Request(flavor())),
]


def texts_of_rejections() -> Iterator[str]:
    """Yield the reasons and the causes of all these rejections."""
    for kind, rejected, request in REJECTED:
        filter_ = kind()
        if not next(iter(filter_.passing([rejected], request))):
            for verdict in [
                *filter_.rejections(rejected, request),
                *filter_.first_rejections([rejected], request),
            ]:
                yield from (verdict.reason, verdict.cause)


def texts_of_novas_filters() -> Iterator[str]:
    """Yield the reasons and the causes of Nova's filters in ``steelyard why``."""
    project = {"filter_tenant_id": "p1"}
    hints = {"same_host": ("a",), "different_host": ("b",)}
    for specs, metadata in [
        (NVME, {}),
        (NVME, SATA),
        ({"ssd": ">= many"}, {"ssd": "3"}),
        ({}, project),
    ]:
        wanted = WantedServer(
            flavor=flavor(**specs),
            project="p2",
            scheduler_hints=hints,
            image_properties={"hw_architecture": "aarch64"},
        )
        facts = Facts(
            wanted=wanted,
            hosts=[KnownHost(name="h", uuid="1", architecture="x86_64")],
            aggregates=[],
        )
        for server_hosts in ({"a": "i", "b": "h"}, {"a": "", "b": ""}):
            about = dataclasses.replace(facts, server_hosts=server_hosts)
            for filter_ in NovasFilters(NOVAS, about).applied.values():
                for verdict in filter_.rejections(host(metadata), Request(wanted.flavor)):
                    yield from (verdict.reason, verdict.cause)


def texts_on_trial(configured: Any, caplog: pytest.LogCaptureFixture) -> Iterator[str]:
    """Yield the cells of commands and the lines of the log about a filter on trial."""
    name = "AggregateInstanceTypeFilter"
    conf = configured(
        f"enabled_filters = {name}", f"trial_filters = {name}", "enabled_weighers = RAMWeigher"
    )
    hosts = {name: Host(name, 8, 8192, 100) for name in ("a", "b")}
    cloud = Cloud(hosts, {}, {"web": flavor(ssd="nvme")})
    scheduler = FilterScheduler(cloud, conf)
    caplog.clear()
    with caplog.at_level(logging.DEBUG, "steelyard"):
        (decision,) = scheduler.select(scheduler.request("web")).decisions
    yield from caplog.messages
    weight, *on_trial = Why(decision.hosts[0]).human_readable().splitlines()
    assert weight.startswith("RAMWeigher")
    yield from on_trial
    yield Causes(decision.trial_causes, {}).human_readable()


def texts_of_capacity(configured: Any) -> Iterator[str]:
    """Yield the causes that limit the servers on a host that is never full."""
    cloud = Cloud({"a": Host("a", 1, 1, 1)}, {}, {"web": flavor()})
    scheduler = FilterScheduler(cloud, configured("enabled_filters = InServiceFilter"))
    for room in HostRooms(scheduler).of("web").rooms:
        yield room.verdict.reason


@pytest.fixture
def produced(configured: Any, caplog: pytest.LogCaptureFixture) -> set[str]:
    """Return the texts that users see of rejections of every kind."""
    return {
        *texts_of_rejections(),
        *texts_of_novas_filters(),
        *texts_on_trial(configured, caplog),
        *texts_of_capacity(configured),
    }


def makers() -> set[str]:
    """Return the modules that make rejections."""
    return {
        name
        for name, tree in FOUND.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and dotted(node) == ["Verdict", "rejected"]
    }


def templates(node: ast.AST) -> Iterator[str]:
    """Yield the texts with a space, with ``…`` for each interpolated value.

    Docstrings, patterns, texts for the log, and errors that no rejection quotes are left out.
    """
    match node:
        case ast.Expr(value=ast.Constant()):
            return
        case ast.Call(func=func) if re.search(
            r"\b(LOG\.\w+|_?warn|re\.compile)$", ast.unparse(func)
        ):
            return
        case ast.Raise(exc=ast.Call(func=func)) if not ast.unparse(func).endswith("InvalidTrait"):
            return
        case ast.Constant(value=str(text)):
            found = text
        case ast.JoinedStr(values=values):
            found = "".join(
                str(part.value) if isinstance(part, ast.Constant) else "…" for part in values
            )
            for part in values:
                if isinstance(part, ast.FormattedValue):
                    yield from templates(part)
        case _:
            for child in ast.iter_child_nodes(node):
                yield from templates(child)
            return
    if re.search(r"\w", found) and " " in found.strip():
        yield found


def constants_of(tree: ast.Module) -> dict[str, ast.expr]:
    """Return the values of the module's constants."""
    return {
        target.id: node.value
        for node in tree.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def parts_of_modules() -> Iterator[ast.AST]:
    """Yield the parts of the code whose texts are part of rejections."""
    for name in makers() | QUOTED.keys():
        tree, names = FOUND[name], QUOTED.get(name)
        if names is None:
            yield tree
            continue
        constants = constants_of(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name in names:
                yield node
                used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
                yield from (constants[name] for name in used & constants.keys())


@functools.cache
def texts_in_code() -> list[str]:
    return sorted({text for part in parts_of_modules() for text in templates(part)})


def fixed_words(template: str) -> str:
    """Return a pattern for the fixed parts of a text, in their order."""
    parts = (re.sub(r"^\W+|\W+$", "", part) for part in template.split("…"))
    return ".*".join(re.escape(" ".join(part.split())) for part in parts if part)


def is_in(pattern: str, texts: Iterable[str]) -> bool:
    return any(re.search(pattern, text) for text in texts)


def phrase_pattern(phrase: str) -> str:
    """Return the pattern of a phrase of the page; a quoted value may have a remark behind it."""
    return re.escape(phrase).replace("'…'", r"'.+'(?: \(.+\))?").replace("…", ".+")


def test_text_of_a_rejection_is_on_the_page() -> None:
    texts = [text for text in texts_in_code() if text not in OTHERS]
    assert [text for text in texts if not is_in(fixed_words(text), PHRASES)] == []


def test_text_of_a_rejection_is_produced(produced: set[str]) -> None:
    texts = [text for text in texts_in_code() if text not in OTHERS]
    assert [text for text in texts if not is_in(fixed_words(text), produced)] == []


def test_text_that_is_no_part_of_a_rejection_is_in_the_code() -> None:
    assert OTHERS.keys() <= set(texts_in_code())


def test_produced_rejection_is_a_phrase_of_the_page(produced: set[str]) -> None:
    more = r"(?:; and \d+ more)?(?: \(.+\))?"
    phrases = "|".join(map(phrase_pattern, PHRASES))
    assert [text for text in produced if not re.fullmatch(f"(?:{phrases}){more}", text)] == []


def test_phrase_of_the_page_is_produced(produced: set[str]) -> None:
    assert len(PHRASES) > 30
    assert [each for each in PHRASES if not is_in(phrase_pattern(each), produced)] == []


def test_page_has_a_section_for_every_filter() -> None:
    points = importlib.metadata.distribution("steelyard").entry_points.select(group=FILTERS.name)
    assert len(points) > 5
    for point in points:
        assert f"\n{point.name}\n{'=' * len(point.name)}\n" in TEXT
