"""A real Ganeti that pauses, rejects or forgets jobs, and daemons that hang or are down."""

import os
import pathlib
import signal
import time
from collections.abc import Mapping
from typing import Any

import pytest

from steelyard.errors import BackendRefused, OutcomeUnknown
from steelyard.tags import TagService
from steelyard.tags.backends.ganeti import GanetiBackend
from steelyard.tags.service import Caller, Operator
from steelyard.tags.states.values import Status
from support import examples
from support.services import ganeti_cluster
from support.services.ganeti_cluster import (
    Cluster,
    filtered,
    last_job,
    service_of,
    settle,
    tags_of,
    wait,
)

CALLER, OPERATOR = Caller("p", "u"), Operator()
ACTIVE, PENDADD = Status.ACTIVE, Status.PENDADD
USER, SYSTEM = "cyclades:user:", "cyclades:system:"


def test_paused_job_is_applied_after_it_resumes(service: TagService, cluster: Cluster) -> None:
    with filtered(cluster, "PAUSE"):
        horizon = service.backend.horizon()
        service.add(CALLER, "s1", "a")
        time.sleep(0.3)  # a job that is not paused would start meanwhile
        assert service.jobs.poll() == 0
        assert service.backend.horizon() == horizon
        list(service.jobs.reconciliation().applied())
        assert service.tags(CALLER, "s1") == {"a": PENDADD}
    settle(service)
    assert service.tags(CALLER, "s1") == {"a": ACTIVE}
    assert service.backend.horizon() > horizon


def test_rejected_or_canceled_job_changes_nothing(service: TagService, cluster: Cluster) -> None:
    service.add(CALLER, "s1", "a")
    settle(service)
    with filtered(cluster, "REJECT"):
        service.add(CALLER, "s1", "b")
        service.delete(CALLER, "s1", "a")
        settle(service)
    with filtered(cluster, "PAUSE"):
        service.add(CALLER, "s1", "c")
        cluster.inside("gnt-job", "cancel", "--force", "--yes-do-it", str(last_job(cluster)))
        settle(service)
    service.add(CALLER, "s1", "d")  # Ganeti runs this job after all earlier ones
    settle(service)
    assert service.tags(CALLER, "s1") == {"a": ACTIVE, "d": ACTIVE}
    assert tags_of(service.backend) == {USER + "a", USER + "d"}


def test_drained_queue_is_a_refusal(service: TagService, cluster: Cluster) -> None:
    service.add(CALLER, "s1", "a")
    settle(service)
    cluster.inside("gnt-cluster", "queue", "drain")
    with pytest.raises(BackendRefused, match=r"Queue drained.*gnt-cluster queue undrain"):
        service.replace(CALLER, "s1", ["b"])
    assert service.tags(CALLER, "s1") == {"a": ACTIVE}
    assert service.store.pending() == []
    cluster.inside("gnt-cluster", "queue", "undrain")
    service.replace(CALLER, "s1", ["b"])
    settle(service)
    assert service.tags(CALLER, "s1") == {"b": ACTIVE}


class Stopping(GanetiBackend):
    """A backend whose Ganeti hangs between the query for tags and the job."""

    stops = False

    def tags(self, instances: Any) -> Mapping[str, frozenset[str]]:
        found = super().tags(instances)
        if self.stops:
            self.stops = False
            signal_luxid(signal.SIGSTOP)
        return found


def signal_luxid(number: int) -> None:
    os.kill(int(pathlib.Path("/run/ganeti/ganeti-luxid.pid").read_text()), number)


def test_job_sent_to_a_hanging_daemon_is_applied_later(
    cluster: Cluster, tmp_path: pathlib.Path
) -> None:
    backend = Stopping(cluster.conf(ganeti_timeout=2.0))
    service = service_of(backend, tmp_path)
    backend.stops = True  # only now, because registering queries tags, too
    try:
        with pytest.raises(OutcomeUnknown, match="did not answer"):
            service.add(CALLER, "s1", "a")
        assert service.tags(CALLER, "s1") == {"a": PENDADD}
        with pytest.raises(BackendRefused, match="cannot reach Ganeti"):
            service.add(CALLER, "s1", "b")
        assert service.jobs.poll() == 0
        assert service.tags(CALLER, "s1") == {"a": PENDADD}
    finally:
        signal_luxid(signal.SIGCONT)
    wait(lambda: tags_of(service.backend) == {USER + "a"})
    list(service.jobs.reconciliation().applied())
    assert service.tags(CALLER, "s1") == {"a": ACTIVE}


@pytest.mark.parametrize(
    ("daemon", "message"),
    [
        ("ganeti-rapi", "ganeti-rapi is running there"),
        pytest.param(
            "ganeti-luxid",
            "refused the request: 504",
            marks=pytest.mark.skipif(
                examples.PROFILE != "nightly",
                reason="Ganeti's remote API tries to reach luxid for half a minute; tox -e "
                "nightly-services runs this test, and a fake Ganeti answers 504 in the others",
            ),
        ),
    ],
)
def test_stopped_daemon_is_reported(
    service: TagService, cluster: Cluster, daemon: str, message: str
) -> None:
    service.add(CALLER, "s1", "a")
    settle(service)
    try:
        cluster.inside("/usr/lib/ganeti/daemon-util", "stop", daemon)
        with pytest.raises(BackendRefused, match=message):
            service.delete(CALLER, "s1", "a")
        assert service.jobs.poll() == 0
    finally:
        ganeti_cluster.bring_up()
    assert service.tags(CALLER, "s1") == {"a": ACTIVE}
    service.delete(CALLER, "s1", "a")
    settle(service)
    assert tags_of(service.backend) == set()
