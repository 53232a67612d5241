"""The answers of a served cloud in several threads."""

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from steelyard.analysis.whatif.consequences import Consequences
from steelyard.cloud import Cloud, Flavor, Host, changes
from steelyard.cloud.changes import TakeOut
from steelyard.filters.capacity import CapacityFilter
from steelyard.page.served_cloud import ServedCloud
from steelyard.scheduler import FilterScheduler

CLOUD = Cloud(
    {name: Host(name, 4, 4096, 100) for name in ("a", "b")},
    {},
    {"small": Flavor("small", 1, 1024, 10), "huge": Flavor("huge", 99, 1024, 10)},
)
TIMEOUT = 60


@pytest.fixture
def served(conf: Any) -> ServedCloud:
    return ServedCloud(FilterScheduler(CLOUD, conf))


def without(served: ServedCloud, host: str) -> Consequences:
    return served.consequences(changes.applied(CLOUD, [("", TakeOut(host))]))


class SlowQuestion:
    """A thread that asks for consequences, and waits in a filter."""

    def __init__(self, served: ServedCloud, monkeypatch: Any) -> None:
        self.found: list[Consequences] = []
        self._waits = threading.Event()
        self._may_go_on = threading.Event()
        self._thread = threading.Thread(target=lambda: self.found.append(without(served, "a")))
        usual = CapacityFilter.passing

        def passing(filter_: CapacityFilter, hosts: Any, request: Any) -> Sequence[bool]:
            if threading.current_thread() is self._thread:
                self._waits.set()
                assert self._may_go_on.wait(TIMEOUT)
            return usual(filter_, hosts, request)

        monkeypatch.setattr(CapacityFilter, "passing", passing)

    def start(self) -> None:
        self._thread.start()
        assert self._waits.wait(TIMEOUT)

    def finish(self) -> None:
        self._may_go_on.set()
        self._thread.join(TIMEOUT)
        assert not self._thread.is_alive()


@pytest.fixture
def slow(served: ServedCloud, monkeypatch: Any) -> Iterator[SlowQuestion]:
    without(served, "b")  # computes the baseline
    question = SlowQuestion(served, monkeypatch)
    question.start()
    yield question
    question.finish()


def test_slow_question_delays_no_other_answer(served: ServedCloud, slow: SlowQuestion) -> None:
    assert served.fitting_nowhere == {"huge"}
    assert served.table("aggregate")["more"] == [[8, 8], [0, 0]]
    assert [each.hosts_after for each in without(served, "b").flavors] == [1]
    assert slow.found == []
    slow.finish()
    assert [each.hosts_after for each in slow.found[0].flavors] == [1]


def test_failed_answer_is_computed_again(served: ServedCloud, monkeypatch: Any) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(CapacityFilter, "passing", lambda *_: 1 / 0)
        with pytest.raises(Exception, match="the filter 'CapacityFilter' failed"):
            _ = served.fitting_nowhere
    assert served.fitting_nowhere == {"huge"}
