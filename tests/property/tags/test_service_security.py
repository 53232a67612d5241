"""Isolation of users: no call names, shows or changes tags of another owner or project.

Input of any kind stays a value, in the database and in the log.
"""

import contextlib
import logging
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import example, given, settings
from hypothesis import strategies as st

from steelyard import errors
from steelyard.tags import TagService, TagStore, decode, encode
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.codec import Tag
from steelyard.tags.names import DEFAULT_PREFIXES, check_name
from steelyard.tags.service import Caller, Operator
from steelyard.tags.states.values import Instance, Kind, Outcome, State
from support.examples import examples
from support.tags.databases import upgrade

# Coverage doubles the time of these tests, and others reach the same lines.
pytestmark = pytest.mark.usefixtures("no_cover")

MINE, THEIRS = Caller("mine", "u"), Caller("theirs", "u")
USER, SYSTEM = DEFAULT_PREFIXES
SERVERS = {"s-mine": "mine", "s-theirs": "theirs"}

SQL = [
    *(
        "' OR '1'='1",
        "'; DROP TABLE instance_tags; --",
        '" OR ""="',
        "\\' OR 1=1 #",
        "%' --",
        "%",
        "_",
    ),
    *("x') UNION SELECT name FROM tag_instances --", "%(name)s", ":name", ":name_1", "?", "{name}"),
    *("$(reboot)", "`reboot`", "__[POSTCOMPILE_x]", "%s", "%%", "NULL", "*:*"),
]
LOOKALIKES = [
    *(
        SYSTEM + "x",
        USER + "x",
        SYSTEM,
        USER,
        "cyclades:",
        "cyclades:syst",
        ":system:x",
        "system:x",
    ),
    *("CYCLADES:SYSTEM:x", " cyclades:system:x", "cyclades:system:x ", "\u0441yclades:system:x"),
    *("cyclades%3Asystem%3Ax", "cyclades*system*x", "cyclades\u200b:system:x", "..", "x+y", "x y"),
]
BREAKING = [
    *(
        "\n",
        "\r\n",
        "\x0b",
        "\x0c",
        "\x1c",
        "\x85",
        "\u2028",
        "\u2029",
        "\x1b[2J",
        "\x00",
        "\ud800",
    ),
    *("\u202e", "\u2066", "\ufeff", "\u200b", "\x7f", "\x9b"),
]
names = st.one_of(
    st.sampled_from(SQL + LOOKALIKES + BREAKING),
    st.sampled_from(BREAKING).map(lambda char: f"a{char}b"),
    st.text(max_size=61),
    st.text("cyladestmur:/,+*%'\"\\ \u2028é🎉", max_size=30),
)
# Each example makes all calls of a user, some of them for two servers.
FEW = settings(max_examples=examples(10))
texts = st.one_of(names, st.sampled_from(list(SERVERS)), st.sampled_from(["mine", "theirs", ""]))


class World:
    """A service with an instance of each of two projects, each with user and system tags."""

    def __init__(self) -> None:
        self.store = TagStore("sqlite://")
        upgrade(self.store)
        self.changes: list[tuple[str, str]] = []
        self.statements: list[str] = []
        self._reset()

    def _reset(self) -> None:
        for instance in self.store.instances():
            self.store.forget(instance.id)
        self.backend = _Recording(self.changes)
        self.service = TagService(self.store, self.backend)
        self.backend.adopt({f"{server}.example.org": () for server in SERVERS})
        for server, project in SERVERS.items():
            self.service.register(Instance(server, f"{server}.example.org", project, "u"))
        for server, project in SERVERS.items():
            self.service.add(Caller(project, "u"), server, "kept by the user")
            self.service.add(Operator(), server, "kept by the system")
            self.service.add(Operator(), server, "x")
        self.service.jobs.poll()
        self.changes.clear()

    @contextlib.contextmanager
    def fresh(self) -> Iterator["World"]:
        """Yield this world, reset for another example."""
        self._reset()
        self.statements.clear()
        with _listening(self.statements):
            yield self

    def state(self, server: str) -> State:
        return self.store.state(server)

    def system_tags(self, server: str) -> dict[str, Any]:
        return self.state(server).of(SYSTEM)


class _Recording(MemoryBackend):
    """A backend that records the tags of each job."""

    def __init__(self, changes: list[tuple[str, str]]) -> None:
        super().__init__()
        self._changes = changes

    def create(self, instance: str, tags: Any) -> int:
        self._record(instance, tags)
        return super().create(instance, tags)

    def add(self, instance: str, tags: Any) -> int:
        self._record(instance, tags)
        return super().add(instance, tags)

    def delete(self, instance: str, tags: Any) -> int:
        self._record(instance, tags)
        return super().delete(instance, tags)

    def _record(self, instance: str, tags: Any) -> None:
        self._changes.extend((instance, tag) for tag in tags)


@contextlib.contextmanager
def _listening(statements: list[str]) -> Iterator[None]:
    def note(_connection: Any, _cursor: Any, statement: str, *_more: Any) -> None:
        statements.append(statement)

    sa.event.listen(sa.Engine, "before_cursor_execute", note)
    try:
        yield
    finally:
        sa.event.remove(sa.Engine, "before_cursor_execute", note)


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    made = World()
    with made.store:
        yield made


def calls(service: TagService, caller: Caller, server: str, name: str) -> list[Callable[[], Any]]:
    """Return all calls that a user can make."""
    return [
        lambda: service.tags(caller, server),
        lambda: service.status(caller, server, name),
        lambda: service.add(caller, server, name),
        service.jobs.poll,
        lambda: service.status(caller, server, name),
        lambda: service.delete(caller, server, name),
        lambda: service.replace(caller, server, [name, "other"]),
        service.jobs.poll,
        lambda: service.clear(caller, server),
        service.jobs.poll,
        lambda: service.create(caller, name, [name], server),
        service.jobs.poll,
    ]


def result_of(call: Callable[[], Any]) -> Any:
    """Return the answer of a call, or its error if users may get it."""
    try:
        return call()
    except (errors.BadRequest, errors.NotFound, errors.Conflict, errors.BackendRefused) as error:
        return error


def shown(answer: Any) -> str:
    """Return the text of an answer or an error as a user sees it."""
    return str(answer) if isinstance(answer, Exception) else repr(answer)


@settings(FEW)
@example(name="x")
@example(name=SYSTEM + "x")
@example(name="kept by the system")
@given(name=names)
def test_users_do_not_reach_tags_of_the_system(world: World, name: str) -> None:
    with world.fresh():
        before = world.system_tags("s-mine")
        assert set(before) == {"kept by the system", "x"}
        for call in calls(world.service, MINE, "s-mine", name):
            answer = result_of(call)
            assert world.system_tags("s-mine") == before
            if "kept by the system" not in name:
                assert "kept by the system" not in shown(answer)
        for _, tag in world.changes:
            assert tag.startswith(USER)
            assert decode(tag)[0] == USER
        there = world.backend.tags(["s-mine.example.org"])["s-mine.example.org"]
        assert {encode(each, SYSTEM) for each in before} <= there


@settings(FEW)
@given(name=names)
def test_tag_of_a_user_keeps_its_owner_with_any_name(world: World, name: str) -> None:
    with world.fresh():
        answer = result_of(lambda: world.service.add(MINE, "s-mine", name))
        if isinstance(answer, errors.SteelyardError):
            assert isinstance(answer, errors.InvalidTag)
            assert world.changes == []
            return
        assert answer is True
        ((_, tag),) = world.changes
        assert tag.isascii()
        assert decode(tag) == Tag(USER, name)
        assert world.service.tags(MINE, "s-mine").keys() == {"kept by the user", name}
        assert name in {"x", "kept by the system"} or name not in world.system_tags("s-mine")


@settings(FEW)
@example(project="mine", server="s-theirs", name="kept by the user")
@example(project="theirs", server="s-theirs", name="a' OR project = 'theirs")
@example(project="' OR '1'='1", server="s-theirs", name="kept by the user")
@example(project="THEIRS", server="s-theirs", name="kept by the user")
@example(project="theirs ", server="s-theirs ", name="kept by the user")
@example(project="mine", server="s-theirs' --", name="kept by the user")
@given(project=texts, server=texts, name=names)
def test_users_do_not_reach_another_project(
    world: World, project: str, server: str, name: str
) -> None:
    with world.fresh():
        before = {each: world.state(each) for each in SERVERS}
        secret = {"kept by the user", "kept by the system"} - {name}
        for call in calls(world.service, Caller(project, "u"), server, name):
            answer = result_of(call)
            for other, owner in SERVERS.items():
                if owner != project:
                    assert world.state(other) == before[other]
            if SERVERS.get(server) != project:
                assert not any(each in shown(answer) for each in secret)
        mine = {f"{each}.example.org" for each, owner in SERVERS.items() if owner == project}
        assert {instance for instance, _ in world.changes} <= mine | {name}


@settings(FEW)
@given(names)
def test_server_of_another_project_looks_like_a_missing_one(world: World, name: str) -> None:
    outsider = Caller("outsiders", "u")
    with world.fresh():
        for there, nowhere in zip(
            calls(world.service, outsider, "s-theirs", name)[:-2],
            calls(world.service, outsider, "s-absent", name)[:-2],
            strict=True,
        ):
            one, other = result_of(there), result_of(nowhere)
            assert type(one) is type(other)
            assert shown(one).replace("s-theirs", "s-absent") == shown(other)
        assert world.changes == []


@settings(FEW)
@given(project=texts, server=texts, name=names)
def test_input_never_appears_in_a_statement(
    world: World, project: str, server: str, name: str
) -> None:
    # Identifiers are left out because they may equal names of columns and tables.
    given = {
        each
        for each in (project, server, name)
        if len(each) > 3 and not each.strip().isidentifier()
    }
    with world.fresh():
        for call in calls(world.service, Caller(project, "u"), server, name):
            result_of(call)
        keys = frozenset([Tag(USER, name)])
        for kind in (Kind.ADD, Kind.DELETE):
            for succeeded in (True, False):
                with contextlib.suppress(errors.SteelyardError):
                    check_name(name)
                    world.service.jobs.apply(Outcome(10**6, server, kind, keys, succeeded))
        assert len(world.statements) > 5
        for statement in world.statements:
            assert _SHAPE.fullmatch(statement), statement
            assert not any(each in statement for each in given - _WORDS), statement


# Keywords, identifiers and parameters; quotes only around names of columns.
_SHAPE = re.compile(r"[A-Za-z_0-9 .,()=?*+<\n\"]+")
_WORDS = {"NULL", "name", "cyclades"}


@settings(FEW)
@example("s-mine\u2028INFO forged", "a\u2028INFO forged")
@example("", "?")
@given(texts, names)
def test_log_messages_are_single_printable_lines(world: World, server: str, name: str) -> None:
    with world.fresh(), _logged() as lines:
        for call in calls(world.service, MINE, "s-mine", name):
            result_of(call)
        for call in calls(world.service, MINE, server, name):
            result_of(call)
        unknown = f"{server}{name}?"  # no instance of the calls above has this name
        outcome = Outcome(1, unknown, Kind.ADD, frozenset([Tag(USER, name)]), succeeded=True)
        world.service.jobs.apply(outcome)
        assert any("Ignored job" in line for line in lines)
        for line in lines:
            assert line.isprintable(), ascii(line)


@contextlib.contextmanager
def _logged() -> Iterator[list[str]]:
    """Yield a list that collects the log messages of all levels."""
    lines: list[str] = []

    class Lines(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            lines.append(record.getMessage())

    logger, handler = logging.getLogger("steelyard"), Lines()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    try:
        yield lines
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


@settings(FEW)
@given(texts, names)
def test_error_messages_are_single_printable_lines(world: World, server: str, name: str) -> None:
    with world.fresh():
        for call in calls(world.service, MINE, server, name):
            answer = result_of(call)
            if isinstance(answer, Exception):
                assert str(answer).isprintable(), ascii(str(answer))


@pytest.mark.parametrize("char", sorted(BREAKING))
def test_tag_name_with_a_special_character_is_kept_or_rejected(char: str) -> None:
    # Controls are rejected. Line separators are valid text, escaped wherever they are shown.
    forbidden = unicodedata.category(char[0]) in {"Cc", "Cs"}
    name = f"a{char}b"
    if not forbidden:
        assert check_name(name) == name
        return
    with pytest.raises(errors.InvalidTag) as refused:
        check_name(name)
    assert str(refused.value).isprintable()
