"""The backfill without a Placement: what is read, what is decided, what is reported."""

import io
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from steelyard import cli
from steelyard.consumers import ConsumerType, backfill
from steelyard.consumers.backfill import Backfill, Goal, Group, Outcome, Result
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
    """Says of every consumer what a test has put there, and keeps what is written."""

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

    def consumers_of(self, provider: str) -> Any:
        return self.get_allocations(provider)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: Any) -> list[float]:
    """What has been slept, which takes no time."""
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    return slept


def test_lists_of_consumers() -> None:
    lines = ["# of yesterday\n", "\n", f"  {C2}  # web\n", f"{C1.upper()}\r\n", C2.replace("-", "")]
    assert backfill.listed(lines, "old.txt") == [C2, C1]
    assert backfill.listed([], "old.txt") == []


@pytest.mark.parametrize(
    "line",
    [
        *("web-1", f"{C1} {C2}", C1[:-1], f"{C1},"),
        # For uuid.UUID, these are other consumers.
        *(f"+{C1[1:]}", f"{C1[:2]}_{C1[3:]}", f"{C1[:-1]}\N{ARABIC-INDIC DIGIT ONE}"),
    ],
)
def test_a_malformed_line_is_named(line: str) -> None:
    with pytest.raises(BadRequest) as caught:
        backfill.listed([C1, "", line], "old.txt")
    assert str(caught.value).startswith(f"old.txt, line 3: {line!r} is no UUID; write one a line")


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, ""),
        ({"allocations": {}}, "has no allocations; perhaps it is gone"),
        ({"project_id": "q"}, "is of another project"),
        ({"project_id": "q", "consumer_type": "INSTANCE"}, "is of another project"),
        ({"consumer_type": "INSTANCE"}, "has the type INSTANCE already"),
        ({"consumer_type": "MIGRATION"}, "has the type MIGRATION already"),
    ],
)
def test_decisions(changes: Any, reason: str) -> None:
    assert GOAL.why_not({**FOUND, **changes}) == reason


def test_what_is_not_there_says_no_more() -> None:
    assert GOAL.why_not({"allocations": {}}) == "has no allocations; perhaps it is gone"


def test_a_user_of_the_project() -> None:
    assert Goal(GOAL.type, "p", "u").why_not(FOUND) == ""
    assert Goal(GOAL.type, "p", "v").why_not(FOUND) == "is of another user"
    assert Goal(GOAL.type, "q", "u").why_not(FOUND) == "is of another project"


def test_nobody_is_given_the_type_of_those_without() -> None:
    with pytest.raises(InvalidConsumerType, match="UNKNOWN is what consumers without a type have"):
        Goal(ConsumerType("UNKNOWN"), "p")


def test_only_the_type_is_written() -> None:
    consumers: Any = Consumers(FOUND)
    assert Backfill(consumers, GOAL).change(C1) == Result(C1, Outcome.CHANGED)
    assert consumers.written == [(C1, {**FOUND, "consumer_type": "INSTANCE"})]


def test_examining_writes_nothing() -> None:
    consumers: Any = Consumers(FOUND)
    assert Backfill(consumers, GOAL).examine(C1) == Result(C1, Outcome.WOULD_CHANGE)
    assert Backfill(consumers, Goal(GOAL.type, "q")).examine(C1) == Result(
        C1, Outcome.SKIPPED, "is of another project"
    )
    assert consumers.written == []


def test_a_concurrent_update_is_decided_again(pauses: list[float]) -> None:
    typed = {**FOUND, "consumer_type": "MIGRATION"}
    consumers: Any = Consumers(FOUND, FOUND, typed, refusals=[ConcurrentUpdate("x")] * 2)
    assert Backfill(consumers, GOAL).change(C1) == Result(
        C1, Outcome.SKIPPED, "has the type MIGRATION already"
    )
    assert consumers.written == []
    assert pauses == [0, 0.1, 0.2]


def test_a_consumer_that_never_rests_fails(pauses: list[float]) -> None:
    consumers: Any = Consumers(FOUND, refusals=[ConcurrentUpdate("x")] * 9)
    result = Backfill(consumers, GOAL).change(C1)
    assert result.outcome is Outcome.FAILED
    assert "others were changing it, or its provider, each of the 5 times" in result.reason
    assert len(consumers.refusals) == 9 - 5
    assert pauses == sorted(pauses)
    assert sum(pauses) < 2


@pytest.mark.parametrize(
    "error", [Conflict("full"), ServiceError("oops"), BadRequest("?"), InvalidAllocations("$")]
)
def test_what_one_consumer_meets_is_its_failure(error: Any, pauses: list[float]) -> None:
    failed = Result(C1, Outcome.FAILED, str(error))
    refusing: Any = Consumers(FOUND, refusals=[error])
    assert Backfill(refusing, GOAL).change(C1) == failed
    unreadable: Any = Consumers(error)
    assert Backfill(unreadable, GOAL).change(C1) == failed
    assert Backfill(unreadable, GOAL).examine(C1) == failed
    assert set(pauses) == {0}


@pytest.mark.parametrize("error", [NoAccess("who?"), MicroversionTooLow("1.37")])
def test_what_all_would_meet_is_raised(error: Any) -> None:
    refusing: Any = Consumers(FOUND, refusals=[error])
    unreadable: Any = Consumers(error)
    acts: list[Callable[[str], Result]] = [
        Backfill(refusing, GOAL).change,
        Backfill(unreadable, GOAL).change,
        Backfill(unreadable, GOAL).examine,
    ]
    for act in acts:
        with pytest.raises(type(error)):
            act(C1)


def test_candidates_are_there_once_and_a_provider_may_be_gone() -> None:
    consumers: Any = Consumers([C2, C1], NotFound("gone"), [C1, C3], [])
    assert backfill.candidates(consumers, "abcd") == [C2, C1, C3]


def test_results_are_counted_by_outcome_and_reason() -> None:
    results = [
        Result(C1, Outcome.FAILED, "full"),
        Result(C1, Outcome.SKIPPED, "is of another user"),
        Result(C2, Outcome.SKIPPED, "is of another project"),
        Result(C3, Outcome.SKIPPED, "is of another project"),
        Result(C1, Outcome.CHANGED),
        Result(C2, Outcome.FAILED, f"what {C2} asks for"),
        Result(C3, Outcome.FAILED, f"what {C3} asks for"),
    ]
    assert backfill.grouped(results) == [
        Group(Outcome.CHANGED, 1, ""),
        Group(Outcome.SKIPPED, 2, "is of another project"),
        Group(Outcome.SKIPPED, 1, "is of another user"),
        Group(Outcome.FAILED, 2, "what … asks for"),
        Group(Outcome.FAILED, 1, "full"),
    ]
    assert backfill.grouped([]) == []


def test_too_many_reasons_become_one() -> None:
    results = [
        Result(C1, Outcome.FAILED, f"provider {number:03}")
        for number in range(100)
        for _ in range(2 if number == 50 else 1)
    ]
    groups = backfill.grouped([*results, Result(C2, Outcome.CHANGED)])
    assert groups[:3] == [
        Group(Outcome.CHANGED, 1, ""),
        Group(Outcome.FAILED, 2, "provider 050"),
        Group(Outcome.FAILED, 1, "provider 000"),
    ]
    assert groups[-1] == Group(Outcome.FAILED, 90, "90 other reasons")
    assert sum(group.consumers for group in groups) == len(results) + 1
    assert len(groups) == 12


ARGV = ["consumer", "backfill", "--project", "p", "--os-cloud", "nowhere"]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("UNKNOWN", "UNKNOWN is what consumers without a type have already"),
        ("all", "'all' is no consumer type"),
        ("instance", "'instance' is no consumer type"),
        ("", "'' is no consumer type"),
    ],
)
def test_types_are_refused_before_anything_is_asked(kind: str, said: str, capsys: Any) -> None:
    assert cli.main([*ARGV, "--type", kind]) == 2
    assert f"steelyard: {said}" in capsys.readouterr().err


def test_lists_are_read_before_anything_is_asked(
    tmp_path: Any, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(f"{C1}\nx y\n"))
    assert cli.main([*ARGV, "--type", "A", "--consumers", "-"]) == 2
    assert "steelyard: standard input, line 2: 'x y' is no UUID" in capsys.readouterr().err
    path = tmp_path / "list"
    path.write_bytes(f"{C1}\n# caf\xe9\n".encode("latin-1"))
    assert cli.main([*ARGV, "--type", "A", "--consumers", str(path)]) == 2
    assert f"steelyard: {path}: is not UTF-8 text" in capsys.readouterr().err
    assert cli.main([*ARGV, "--type", "A", "--consumers", f"{path}s"]) == 2
    assert f"steelyard: {path}s: No such file or directory" in capsys.readouterr().err


def test_columns_are_looked_at_before_anything_is_asked(capsys: Any) -> None:
    assert cli.main([*ARGV, "--type", "A", "-c", "Consumer"]) == 2
    assert "there is no column 'Consumer'; did you mean 'Consumers'?" in capsys.readouterr().err


@pytest.fixture
def run(monkeypatch: Any, capsys: Any) -> Any:
    """Runs the command on consumers of the test's own making."""

    def run(consumers: Consumers, *argv: str) -> tuple[int, str, str]:
        monkeypatch.setattr("steelyard.cli.os_clouds.placement", lambda name: name)
        monkeypatch.setattr("steelyard.consumers.PlacementConsumers", lambda session: consumers)
        status = cli.main([*ARGV, "--type", "INSTANCE", *argv])
        return status, *capsys.readouterr()

    return run


def test_the_report_counts(run: Any) -> None:
    consumers = Consumers([C1, C2, C3], FOUND, {**FOUND, "project_id": "q"}, FOUND)
    status, out, err = run(consumers)
    assert (status, err) == (0, "")
    assert out.splitlines()[3:5] == [
        "| changed |         2 |                       |",
        "| skipped |         1 | is of another project |",
    ]
    assert [consumer for consumer, _ in consumers.written] == [C1, C3]


def test_the_report_lists(run: Any) -> None:
    consumers = Consumers([C1, C2], FOUND, ServiceError("oops"))
    status, out, err = run(consumers, "--long", "--dry-run", "-f", "csv", "--quote", "none")
    assert (status, err) == (1, "")
    assert out.splitlines()[1:] == [f"{C1},would change,", f"{C2},failed,oops"]
    assert consumers.written == []


@pytest.mark.parametrize(
    ("error", "ended", "why"),
    [
        (KeyboardInterrupt(), 130, "interrupted"),
        (NoAccess("Placement cannot be asked: no route"), 2, "Placement cannot be asked: no route"),
        (MicroversionTooLow("1.37"), 2, "1.37"),
    ],
)
def test_what_is_done_is_told_when_it_cannot_go_on(
    run: Any, error: Any, ended: int, why: str
) -> None:
    status, out, err = run(Consumers([C1, C2, C3], FOUND, error), "-f", "value")
    assert (status, out) == (ended, "changed 1 \n")
    assert err == (
        f"steelyard: {why}\nsteelyard: stopped after 1 of 3 consumers; what is listed is done, "
        f"and the next one perhaps; run the same again for the rest\n"
    )


def test_nobody_to_look_at(run: Any, tmp_path: Any) -> None:
    path = tmp_path / "none.txt"
    path.write_text("# nobody\n")
    status, out, err = run(Consumers(FOUND), "--consumers", str(path), "-f", "json")
    assert (status, out.strip(), err) == (0, "[]", "")
