"""The backfill of consumer types with a fake client."""

import io
import json
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from steelyard import cli
from steelyard.cli.backfill import ConsumerBackfill
from steelyard.consumers import ConsumerType, backfill, base
from steelyard.consumers.backfill import (
    Backfill,
    BackfillOutcome,
    BackfillResult,
    Goal,
    OutcomeCount,
)
from steelyard.errors import (
    BadRequest,
    ConcurrentUpdate,
    Conflict,
    InvalidAllocations,
    InvalidConsumerType,
    MicroversionTooLow,
    NoAccess,
    NotFound,
    ServiceError,
)

C1, C2, C3 = (f"00000000-0000-4000-8000-00000000000{n}" for n in (1, 2, 3))
GOAL = Goal(ConsumerType("INSTANCE"), "p")
FOUND = {
    "allocations": {"r": {"generation": 4, "resources": {"VCPU": 2}}},
    "project_id": "p",
    "user_id": "u",
    "consumer_generation": 3,
    "consumer_type": "UNKNOWN",
}


class Consumers:
    """A fake client that returns given answers and records writes."""

    update = base.Consumers.update

    def __init__(self, *answers: Any, refusals: Sequence[Exception] = ()) -> None:
        self.answers = list(answers)
        self.refusals = list(refusals)
        self.written: list[tuple[str, Any]] = []

    def get_allocations(self, consumer: str) -> Any:
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, BaseException):
            raise answer
        return answer

    def put_allocations(self, consumer: str, body: Any) -> None:
        if self.refusals:
            raise self.refusals.pop(0)
        self.written.append((consumer, body))

    def require_types(self) -> None:
        pass

    def providers(self) -> list[str]:
        return ["r"]

    def consumers_of(self, *, provider: str) -> Any:
        return self.get_allocations(provider)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: Any) -> list[float]:
    """Record the pauses instead of sleeping."""
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    return slept


def test_listed_skips_comments_and_duplicates() -> None:
    lines = ["# old servers\n", "\n", f"  {C2}  # web\n", f"{C1.upper()}\r\n", C2.replace("-", "")]
    assert backfill.listed(lines, "old.txt") == [C2, C1]
    assert backfill.listed([], "old.txt") == []


@pytest.mark.parametrize(
    "line",
    [
        *("web-1", f"{C1} {C2}", C1[:-1], f"{C1},"),
        # uuid.UUID reads these as other UUIDs.
        *(f"+{C1[1:]}", f"{C1[:2]}_{C1[3:]}", f"{C1[:-1]}\N{ARABIC-INDIC DIGIT ONE}"),
    ],
)
def test_listed_with_malformed_line_raises_error_with_its_place(line: str) -> None:
    with pytest.raises(BadRequest) as caught:
        backfill.listed([C1, "", line], "old.txt")
    message = str(caught.value)
    assert message.startswith(f"old.txt, line 3: invalid UUID {line!r}: expected one such as ")
    assert message.endswith("; list one UUID per line")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({"allocations": {}}, "has no allocations; it may have been deleted"),
        ({"project_id": "q"}, "belongs to another project"),
        ({"project_id": "q", "consumer_type": "INSTANCE"}, "belongs to another project"),
        ({"consumer_type": "INSTANCE"}, "already has type INSTANCE"),
        ({"consumer_type": "MIGRATION"}, "already has type MIGRATION"),
    ],
)
def test_reason_to_skip_names_the_first_obstacle(changes: Any, reason: str) -> None:
    assert GOAL.reason_to_skip({**FOUND, **changes}) == reason


def test_reason_to_skip_missing_consumer_needs_no_other_fields() -> None:
    assert (
        GOAL.reason_to_skip({"allocations": {}}) == "has no allocations; it may have been deleted"
    )


def test_goal_with_user_skips_other_users_and_projects() -> None:
    assert Goal(GOAL.type, "p", "u").reason_to_skip(FOUND) == ""
    assert Goal(GOAL.type, "p", "v").reason_to_skip(FOUND) == "belongs to another user"
    assert Goal(GOAL.type, "q", "u").reason_to_skip(FOUND) == "belongs to another project"


def test_goal_rejects_type_unknown() -> None:
    with pytest.raises(InvalidConsumerType, match="invalid type 'UNKNOWN' for the backfill"):
        Goal(ConsumerType("UNKNOWN"), "p")


def test_change_writes_only_the_type() -> None:
    consumers: Any = Consumers(FOUND)
    assert Backfill(consumers, GOAL).change(C1) == BackfillResult(C1, BackfillOutcome.CHANGED)
    assert consumers.written == [(C1, {**FOUND, "consumer_type": "INSTANCE"})]


def test_examine_writes_nothing() -> None:
    consumers: Any = Consumers(FOUND)
    assert Backfill(consumers, GOAL).examine(C1) == BackfillResult(C1, BackfillOutcome.WOULD_CHANGE)
    assert Backfill(consumers, Goal(GOAL.type, "q")).examine(C1) == BackfillResult(
        C1, BackfillOutcome.SKIPPED, "belongs to another project"
    )
    assert consumers.written == []


def test_change_reads_consumer_again_after_conflict(pauses: list[float]) -> None:
    typed = {**FOUND, "consumer_type": "MIGRATION"}
    consumers: Any = Consumers(FOUND, FOUND, typed, refusals=[ConcurrentUpdate("x")] * 2)
    assert Backfill(consumers, GOAL).change(C1) == BackfillResult(
        C1, BackfillOutcome.SKIPPED, "already has type MIGRATION"
    )
    assert consumers.written == []
    assert len(pauses) == 3


def test_change_after_ten_conflicts_fails(pauses: list[float]) -> None:
    consumers: Any = Consumers(FOUND, refusals=[ConcurrentUpdate("x")] * 12)
    result = Backfill(consumers, GOAL).change(C1)
    assert result.outcome is BackfillOutcome.FAILED
    assert "other clients changed it or its provider during each of 10" in result.reason
    assert len(consumers.refusals) == 12 - 10
    assert pauses[0] == 0
    assert all(0 < pause < 1 for pause in pauses[1:])


@pytest.mark.parametrize(
    "error", [Conflict("full"), ServiceError("oops"), BadRequest("?"), InvalidAllocations("$")]
)
def test_error_of_one_consumer_becomes_its_result(error: Any, pauses: list[float]) -> None:
    failed = BackfillResult(C1, BackfillOutcome.FAILED, str(error))
    refusing: Any = Consumers(FOUND, refusals=[error])
    assert Backfill(refusing, GOAL).change(C1) == failed
    unreadable: Any = Consumers(error)
    assert Backfill(unreadable, GOAL).change(C1) == failed
    assert Backfill(unreadable, GOAL).examine(C1) == failed
    assert set(pauses) == {0}


@pytest.mark.parametrize("error", [NoAccess("401"), MicroversionTooLow("1.37")])
def test_error_of_every_consumer_is_raised(error: Any) -> None:
    refusing: Any = Consumers(FOUND, refusals=[error])
    unreadable: Any = Consumers(error)
    acts: list[Callable[[str], BackfillResult]] = [
        Backfill(refusing, GOAL).change,
        Backfill(unreadable, GOAL).change,
        Backfill(unreadable, GOAL).examine,
    ]
    for act in acts:
        with pytest.raises(type(error)):
            act(C1)


def test_candidates_are_unique_and_skip_missing_providers() -> None:
    consumers: Any = Consumers([C2, C1], NotFound("gone"), [C1, C3], [])
    assert backfill.candidates_of_providers(consumers, "abcd") == [C2, C1, C3]


def test_grouped_counts_results_by_outcome_and_reason() -> None:
    results = [
        BackfillResult(C1, BackfillOutcome.FAILED, "full"),
        BackfillResult(C1, BackfillOutcome.SKIPPED, "belongs to another user"),
        BackfillResult(C2, BackfillOutcome.SKIPPED, "belongs to another project"),
        BackfillResult(C3, BackfillOutcome.SKIPPED, "belongs to another project"),
        BackfillResult(C1, BackfillOutcome.CHANGED),
        BackfillResult(C2, BackfillOutcome.FAILED, f"{C2} exceeds a limit"),
        BackfillResult(C3, BackfillOutcome.FAILED, f"{C3} exceeds a limit"),
    ]
    assert backfill.grouped(results) == [
        OutcomeCount(BackfillOutcome.CHANGED, 1, ""),
        OutcomeCount(BackfillOutcome.SKIPPED, 2, "belongs to another project"),
        OutcomeCount(BackfillOutcome.SKIPPED, 1, "belongs to another user"),
        OutcomeCount(BackfillOutcome.FAILED, 2, "… exceeds a limit"),
        OutcomeCount(BackfillOutcome.FAILED, 1, "full"),
    ]
    assert backfill.grouped([]) == []


def test_grouped_merges_the_rarest_reasons() -> None:
    results = [
        BackfillResult(C1, BackfillOutcome.FAILED, f"provider {number:03}")
        for number in range(100)
        for _ in range(2 if number == 50 else 1)
    ]
    groups = backfill.grouped([*results, BackfillResult(C2, BackfillOutcome.CHANGED)])
    assert groups[:3] == [
        OutcomeCount(BackfillOutcome.CHANGED, 1, ""),
        OutcomeCount(BackfillOutcome.FAILED, 2, "provider 050"),
        OutcomeCount(BackfillOutcome.FAILED, 1, "provider 000"),
    ]
    assert groups[-1] == OutcomeCount(BackfillOutcome.FAILED, 90, "90 other reasons")
    assert sum(group.consumers for group in groups) == len(results) + 1
    assert len(groups) == 12


ARGV = ["consumer", "backfill", "--project", "p", "--os-cloud", "nowhere"]


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        ("UNKNOWN", "invalid type 'UNKNOWN' for the backfill"),
        ("all", "invalid consumer type 'all'"),
        ("instance", "invalid consumer type 'instance'"),
        ("", "invalid consumer type ''"),
    ],
)
def test_command_with_invalid_type_sends_no_request(kind: str, message: str, capsys: Any) -> None:
    assert cli.main([*ARGV, "--type", kind]) == 2
    assert f"steelyard: {message}" in capsys.readouterr().err


def test_command_with_invalid_list_sends_no_request(
    tmp_path: Any, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{C1}\nx y\n"))
    assert cli.main([*ARGV, "--type", "A", "--consumers", "-"]) == 2
    assert "steelyard: standard input, line 2: invalid UUID 'x y'" in capsys.readouterr().err
    path = tmp_path / "list"
    path.write_bytes(f"{C1}\n# caf\xe9\n".encode("latin-1"))
    assert cli.main([*ARGV, "--type", "A", "--consumers", str(path)]) == 2
    assert f"steelyard: {path}: not UTF-8 text" in capsys.readouterr().err
    assert cli.main([*ARGV, "--type", "A", "--consumers", f"{path}s"]) == 2
    assert f"steelyard: {path}s: No such file or directory" in capsys.readouterr().err


def test_command_with_unknown_column_sends_no_request(capsys: Any) -> None:
    assert cli.main([*ARGV, "--type", "A", "-c", "Consumer"]) == 2
    assert "no column 'Consumer'; did you mean 'Consumers'?" in capsys.readouterr().err


@pytest.fixture
def run(monkeypatch: Any, capsys: Any) -> Any:
    """Return a function that runs the command with a fake client."""

    def run(consumers: Consumers, *argv: str) -> tuple[int, str, str]:
        monkeypatch.setattr(ConsumerBackfill, "model", lambda *_: consumers)
        status = cli.main([*ARGV, "--type", "INSTANCE", *argv])
        return status, *capsys.readouterr()

    return run


def test_report_counts_outcomes(run: Any) -> None:
    consumers = Consumers([C1, C2, C3], FOUND, {**FOUND, "project_id": "q"}, FOUND)
    status, out, err = run(consumers)
    assert (status, err) == (0, "")
    assert out.splitlines()[3:5] == [
        "| changed |         2 |                            |",
        "| skipped |         1 | belongs to another project |",
    ]
    assert [consumer for consumer, _ in consumers.written] == [C1, C3]


def test_long_report_lists_consumers(run: Any) -> None:
    consumers = Consumers([C1, C2], FOUND, ServiceError("oops"))
    status, out, err = run(consumers, "--long", "--dry-run", "-f", "csv", "--quote", "none")
    assert (status, err) == (1, "")
    assert out.splitlines()[1:] == [f"{C1},would change,", f"{C2},failed,oops"]
    assert consumers.written == []


@pytest.mark.parametrize(
    ("error", "expected_status", "message"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (NoAccess("cannot reach Placement: no route"), 2, "cannot reach Placement: no route"),
        (MicroversionTooLow("1.37"), 2, "1.37"),
    ],
)
def test_interrupted_command_reports_finished_changes(
    run: Any, error: Any, expected_status: int, message: str
) -> None:
    status, out, err = run(Consumers([C1, C2, C3], FOUND, error), "-f", "value")
    assert (status, out) == (expected_status, "changed 1 \n")
    assert err == (
        f"steelyard: {message}\nsteelyard: stopped after 1 of 3 consumers; the listed ones are done, and the next one may be; run the command again for the rest\n"
    )


def test_command_with_empty_list_reports_no_outcomes(run: Any, tmp_path: Any) -> None:
    path = tmp_path / "none.txt"
    path.write_text("# empty\n")
    status, out, err = run(Consumers(FOUND), "--consumers", str(path), "-f", "json")
    assert (status, json.loads(out)["outcomes"], err) == (0, [], "")
