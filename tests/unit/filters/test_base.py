"""The contract of filters, whose answers follow from ``judge``."""

import itertools
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from oslo_config import cfg

from steelyard.cloud import Flavor
from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter
from steelyard.filters.base import Filter, Rejections
from steelyard.filters.capacity import CapacityFilter
from steelyard.filters.traits import TraitsFilter
from steelyard.filters.trial import TrialMode
from steelyard.scheduler import Request
from steelyard.verdict import PASSED, Verdict
from support.scheduler.host_states import state
from support.scheduler.plain_objects import Aggregate


class AtMost(Filter):
    """A filter that rejects numbers above the request, and for a second reason above 100."""

    def judge(self, request: Any) -> Rejections:
        def rejections(host: Any) -> Iterator[Verdict]:
            if host > request:
                yield Verdict.rejected(f"above {request}")
            if host > 100:
                yield Verdict.rejected("above 100")

        return rejections


class Chatty(AtMost):
    """A filter that also yields verdicts that passed."""

    def judge(self, request: Any) -> Rejections:
        rejections = super().judge(request)
        return lambda host: [PASSED, *rejections(host), PASSED]


@pytest.mark.parametrize("kind", [AtMost, Chatty])
@pytest.mark.parametrize("iterable", [list, tuple, iter])
def test_filter_answers_follow_from_judge(kind: type[Filter], iterable: Any) -> None:
    plugin = kind()
    assert list(plugin.filter_all(iterable([1, 200, 2, 1]), 1)) == [1, 1]
    assert plugin.host_passes(1, 1)
    assert not plugin.host_passes(2, 1)
    assert plugin.examine(1, 1) is PASSED
    assert plugin.examine(200, 1).reason == "above 1"
    assert [verdict.reason for verdict in plugin.rejections(200, 1)] == ["above 1", "above 100"]
    assert list(plugin.rejections(1, 1)) == []
    assert list(map(list, plugin.rejections_all(iterable([1, 2]), 1))) == [
        [],
        [Verdict.rejected("above 1")],
    ]
    assert [verdict.reason for verdict in plugin.first_rejections(iterable([2, 200]), 1)] == [
        "above 1",
        "above 1",
    ]


class Wordy(Filter):
    """A faulty filter that yields a text instead of a verdict."""

    def judge(self, request: Any) -> Any:
        return lambda host: ["no such host"]


@pytest.mark.parametrize("iterable", [list, iter])
def test_filter_that_yields_text_raises(iterable: Any) -> None:
    plugin = Wordy()
    expected = "'str' object has no attribute 'passed'"
    with pytest.raises(AttributeError, match=expected):
        list(plugin.filter_all(iterable([1]), 1))
    with pytest.raises(AttributeError, match=expected):
        plugin.host_passes(1, 1)
    with pytest.raises(AttributeError, match=expected):
        plugin.examine(1, 1)


def test_filter_all_reads_an_iterator_lazily() -> None:
    endless = itertools.count()
    assert next(AtMost().filter_all(endless, 5)) == 0
    assert next(endless) == 1


class Miscounting(AtMost):
    """A filter whose ``passing`` returns the answers that a test sets."""

    answers: Any = ()

    def passing(self, hosts: Sequence[object], request: object) -> Any:
        return self.answers


@pytest.mark.parametrize("found", [[], [True], [True] * 3, iter([True, True])])
def test_passing_with_a_wrong_number_of_answers_raises(conf: Any, found: Any) -> None:
    plugin = Miscounting()
    plugin.answers = found
    expected = r"Miscounting\.passing must return a sequence with an answer for each of the 2 hosts"
    with pytest.raises(ValueError, match=expected):
        plugin.filter_all([1, 2], 3)
    with pytest.raises(ValueError, match=expected):
        TrialMode(conf).apply("Miscounting", plugin, [1, 2], 3)


def test_filter_flags_default_to_false() -> None:
    assert not AtMost.run_filter_once_per_request
    assert not AtMost.RUN_ON_REBUILD
    assert not AtMost.host_local


def test_rejections_yields_one_reason_per_fault() -> None:
    conf = cfg.ConfigOpts()
    host = state(vcpus_total=0, ram_mb_total=0, aggregates=[Aggregate({"ssd": "no", "gpu": "a"})])
    demands = {"ssd": "yes", "gpu": "b", "trait:CUSTOM_A": "required", "trait:CUSTOM_B": "required"}
    request = Request(Flavor("f", 1, 1, 1, demands))
    for filter_, subjects in (
        (CapacityFilter(conf), ["vCPUs", "RAM"]),
        (TraitsFilter(conf), ["CUSTOM_A", "CUSTOM_B"]),
        (AggregateInstanceTypeFilter(conf), ["'gpu'", "'ssd'"]),
    ):
        found = [verdict.reason for verdict in filter_.rejections(host, request)]
        assert len(found) == len(subjects)
        for reason, subject in zip(found, subjects, strict=True):
            assert subject in reason
        assert filter_.examine(host, request).reason == found[0]
