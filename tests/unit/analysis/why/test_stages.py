"""The stage of a failure, from Nova's fault."""

import pytest

from steelyard.analysis.why.facts import ServerEvent, ServerRecord
from steelyard.analysis.why.stages import Stage, lacked_hosts, of_record


@pytest.mark.parametrize(
    ("fault", "expected"),
    [
        ("", None),
        ("No valid host was found.", Stage.PLACEMENT),
        ("No valid host was found. ", Stage.PLACEMENT),
        ("No valid host was found. No hosts available for tenant", Stage.PLACEMENT),
        ("No valid host was found. There are not enough hosts available.", Stage.FILTERS),
        (
            "Exceeded maximum number of retries. Exhausted all hosts available for retrying "
            "build failures for instance 1.",
            Stage.BUILD,
        ),
        ("Build of instance 1 aborted: no volume", Stage.BUILD),
    ],
)
def test_fault_tells_stage(fault: str, expected: Stage | None) -> None:
    record = ServerRecord(uuid="u", name="web-1", status="ERROR", fault=fault)
    assert of_record(record) is expected
    assert lacked_hosts(fault) is (expected in (Stage.PLACEMENT, Stage.FILTERS))


@pytest.mark.parametrize(
    ("names", "host", "expected"),
    [
        (["conductor_schedule_and_build_instances"], "", Stage.FILTERS),
        (["conductor_schedule_and_build_instances"], "host1", Stage.BUILD),
        (
            ["conductor_schedule_and_build_instances", "compute__do_build_and_run_instance"],
            "",
            Stage.BUILD,
        ),
        ([], "", Stage.BUILD),
    ],
)
def test_events_tell_whether_a_host_was_chosen(
    names: list[str], host: str, expected: Stage
) -> None:
    events = [ServerEvent(action="create", event=name, at="") for name in names]
    record = ServerRecord(
        uuid="u",
        name="web-1",
        status="ERROR",
        host=host,
        fault="Timed out waiting for a reply to message ID 1",
        events=events,
    )
    assert of_record(record) is expected
