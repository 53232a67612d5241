"""Lines of the audit log of tags."""

import pytest

from steelyard.tags import audit
from steelyard.tags.audit import Entry, Event
from steelyard.tags.codec import Tag
from steelyard.tags.states.values import Instance, Kind, Operation, State, StateChange, Status

ACTIVE, PENDADD = Status.ACTIVE, Status.PENDADD
USER, SYSTEM = "user:", "system:"
VM = Instance("s1", "vm-1", "p", "owner")


def operation(kind: Kind, *names: str, job: int | None = 7, id: str = "o") -> Operation:  # noqa: A002
    tags = tuple(Tag(USER, name) for name in names)
    return Operation(id, kind, USER, tags, 0.0, job, "ada")


def test_entry_is_a_line_of_keys_and_values() -> None:
    entry = Entry(Event.FAILED, VM, "add", "ada", USER, ("smtp", "a b"), 7, "no room")
    assert str(entry) == (
        'event=failed operation=add caller="ada" project="p" server="s1" instance="vm-1" '
        'prefix="user:" tags=["smtp","a b"] job=7 reason="no room"'
    )


def test_entry_has_dashes_for_unknown_values() -> None:
    assert str(Entry(Event.FORGOTTEN, VM)) == (
        'event=forgotten operation=- caller=- project="p" server="s1" instance="vm-1" prefix=- '
        "tags=[] job=- reason=-"
    )


def test_entry_escapes_and_shortens_foreign_text() -> None:
    shown = str(Entry(Event.FAILED, VM, tags=('\u202e"',), reason='x" job=9\n\x1b' + "y" * 1000))
    assert r'tags=["\u202e\""] job=- reason="x\" job=9\n\u001byyy' in shown
    assert len(shown) < 700
    assert shown.isprintable()


@pytest.mark.parametrize(
    ("state", "change", "failed", "lines"),
    [
        # A successful operation was logged when it was submitted.
        (
            State({Tag(USER, "a"): PENDADD}, (operation(Kind.ADD, "a"),)),
            StateChange({Tag(USER, "a"): ACTIVE}, ended=frozenset("o")),
            {},
            [],
        ),
        (
            State({}, (operation(Kind.DELETE, "a"),)),
            StateChange(ended=frozenset("o")),
            {},
            [],
        ),
        (
            State({Tag(USER, "a"): PENDADD}, (operation(Kind.ADD, "a"),)),
            StateChange(removed=frozenset({Tag(USER, "a")}), ended=frozenset("o")),
            {"o": "full"},
            [("failed", "add", "ada", ("a",), 7, "full")],
        ),
        (
            State({}, (operation(Kind.DELETE, "a", "b", job=None),)),
            StateChange({Tag(USER, "a"): ACTIVE, Tag(USER, "b"): ACTIVE}, ended=frozenset("o")),
            {"o": "busy"},
            [("failed", "delete", "ada", ("a", "b"), 9, "busy")],
        ),
        (
            State({}, (operation(Kind.CREATE, job=None),)),
            StateChange(ended=frozenset("o"), forgotten=True),
            {"o": "no disk"},
            [("failed", "create", "ada", (), 9, "no disk")],
        ),
        # Tags were added and deleted at the backend, not by the service.
        (
            State({Tag(USER, "b"): ACTIVE}),
            StateChange(
                {Tag(USER, "a"): ACTIVE, Tag(SYSTEM, "c"): ACTIVE}, frozenset({Tag(USER, "b")})
            ),
            {},
            [
                ("adopted", "add", None, ("c",), 9, None),
                ("adopted", "add", None, ("a",), 9, None),
                ("adopted", "delete", None, ("b",), 9, None),
            ],
        ),
        # An addition succeeded, and the tag was deleted at the backend since.
        (
            State({Tag(USER, "a"): PENDADD}, (operation(Kind.ADD, "a"),)),
            StateChange(removed=frozenset({Tag(USER, "a")}), ended=frozenset("o")),
            {},
            [("adopted", "delete", None, ("a",), 9, None)],
        ),
        # Another operation is pending for the tag: its end is logged.
        (
            State(
                {Tag(USER, "a"): PENDADD},
                (operation(Kind.DELETE, "a"), operation(Kind.ADD, "a", id="later")),
            ),
            StateChange(ended=frozenset("o")),
            {},
            [],
        ),
    ],
)
def test_of_change_returns_failures_and_changes_without_operation(
    state: State, change: StateChange, failed: dict[str, str], lines: list[tuple[object, ...]]
) -> None:
    found = audit.of_change(VM, state, change, failed, 9)
    assert [
        (each.event, each.operation, each.caller, each.tags, each.job, each.reason)
        for each in found
    ] == lines
    assert {each.instance for each in found} <= {VM}


def test_of_change_by_reconciliation_has_no_job() -> None:
    (found,) = audit.of_change(VM, State(), StateChange({Tag(USER, "a"): ACTIVE}), {})
    assert (found.event, found.job, found.reason) == ("adopted", None, "reconciliation")
