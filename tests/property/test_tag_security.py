"""No call of a user's names, shows or touches tags of another owner or of another project.

What is given is text of whatever kind: it stays a value, in the database and in the log.
"""

import contextlib
import logging
import re
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from hypothesis import example, given
from hypothesis import strategies as st
from tag_databases import upgrade

from steelyard import errors
from steelyard.tags import TagService, TagStore, decode, encode
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.names import DEFAULT_PREFIXES, check_name
from steelyard.tags.service import Caller, Operator
from steelyard.tags.states import Instance, Kind, Outcome, State

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
texts = st.one_of(names, st.sampled_from(list(SERVERS)), st.sampled_from(["mine", "theirs", ""]))


class World:
    """A service with an instance of mine and one of theirs, each with tags of the user and not."""

    def __init__(self) -> None:
        self.store = TagStore("sqlite://")
        upgrade(self.store)
        self.backend = MemoryBackend()
        self.service = TagService(self.store, self.backend)
        self.asked: list[tuple[str, str]] = []
        self.statements: list[str] = []
        self._begin_anew()

    def _begin_anew(self) -> None:
        for instance in self.store.instances():
            self.store.forget(instance.id)
        self.backend = self.service.backend = _Noting(self.asked)
        for server, project in SERVERS.items():
            self.service.register(Instance(server, f"{server}.example.org", project, "u"))
        self.backend.adopt({f"{server}.example.org": () for server in SERVERS})
        for server, project in SERVERS.items():
            self.service.add(Caller(project, "u"), server, "kept by the user")
            self.service.add(Operator(), server, "kept by the system")
            self.service.add(Operator(), server, "x")
        self.service.poll()
        self.asked.clear()

    @contextlib.contextmanager
    def again(self) -> Iterator["World"]:
        """The same world, for another example."""
        self._begin_anew()
        self.statements.clear()
        with _listening(self.statements):
            yield self

    def state(self, server: str) -> State:
        return self.store.state(server)

    def of_the_system(self, server: str) -> dict[str, Any]:
        return self.state(server).of(SYSTEM)


class _Noting(MemoryBackend):
    """Notes what it is asked to change."""

    def __init__(self, asked: list[tuple[str, str]]) -> None:
        super().__init__()
        self._asked = asked

    def create(self, instance: str, tags: Any) -> int:
        self._note(instance, tags)
        return super().create(instance, tags)

    def add(self, instance: str, tags: Any) -> int:
        self._note(instance, tags)
        return super().add(instance, tags)

    def delete(self, instance: str, tags: Any) -> int:
        self._note(instance, tags)
        return super().delete(instance, tags)

    def _note(self, instance: str, tags: Any) -> None:
        self._asked.extend((instance, tag) for tag in tags)


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
    """All that a user can call."""
    return [
        lambda: service.tags(caller, server),
        lambda: service.status(caller, server, name),
        lambda: service.add(caller, server, name),
        service.poll,
        lambda: service.status(caller, server, name),
        lambda: service.delete(caller, server, name),
        lambda: service.replace(caller, server, [name, "other"]),
        service.poll,
        lambda: service.clear(caller, server),
        service.poll,
        lambda: service.create(caller, name, [name], server),
        service.poll,
    ]


def answered(call: Callable[[], Any]) -> Any:
    """The answer, or the error; another error than ours is a fault."""
    try:
        return call()
    except (errors.BadRequest, errors.NotFound, errors.Conflict, errors.BackendRefused) as error:
        return error


def shown(answer: Any) -> str:
    """What somebody gets to see of the answer."""
    return str(answer) if isinstance(answer, Exception) else repr(answer)


@example(name="x")
@example(name=SYSTEM + "x")
@example(name="kept by the system")
@given(name=names)
def test_users_do_not_reach_tags_of_the_system(world: World, name: str) -> None:
    with world.again():
        before = world.of_the_system("s-mine")
        assert set(before) == {"kept by the system", "x"}
        for call in calls(world.service, MINE, "s-mine", name):
            answer = answered(call)
            assert world.of_the_system("s-mine") == before
            if "kept by the system" not in name:
                assert "kept by the system" not in shown(answer)
        for _, tag in world.asked:
            assert tag.startswith(USER)
            assert decode(tag)[0] == USER
        there = world.backend.tags(["s-mine.example.org"])["s-mine.example.org"]
        assert {encode(each, SYSTEM) for each in before} <= there


@given(name=names)
def test_whatever_a_users_tag_is_called_it_is_a_users(world: World, name: str) -> None:
    with world.again():
        answer = answered(lambda: world.service.add(MINE, "s-mine", name))
        if isinstance(answer, errors.SteelyardError):
            assert isinstance(answer, errors.InvalidTag)
            assert world.asked == []
            return
        assert answer is True
        ((_, tag),) = world.asked
        assert tag.isascii()
        assert decode(tag) == (USER, name)
        assert world.service.tags(MINE, "s-mine").keys() == {"kept by the user", name}
        assert name in {"x", "kept by the system"} or name not in world.of_the_system("s-mine")


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
    with world.again():
        before = {each: world.state(each) for each in SERVERS}
        secret = {"kept by the user", "kept by the system"} - {name}
        for call in calls(world.service, Caller(project, "u"), server, name):
            answer = answered(call)
            for other, owner in SERVERS.items():
                if owner != project:
                    assert world.state(other) == before[other]
            if SERVERS.get(server) != project:
                assert not any(each in shown(answer) for each in secret)
        mine = {f"{each}.example.org" for each, owner in SERVERS.items() if owner == project}
        assert {instance for instance, _ in world.asked} <= mine | {name}


@given(names)
def test_nothing_tells_another_projects_server_from_none(world: World, name: str) -> None:
    """What is asked about the one and about the other is answered in the same words."""
    nobody = Caller("nobody's", "u")
    with world.again():
        for there, nowhere in zip(
            calls(world.service, nobody, "s-theirs", name)[:-2],
            calls(world.service, nobody, "s-nobody", name)[:-2],
            strict=True,
        ):
            one, other = answered(there), answered(nowhere)
            assert type(one) is type(other)
            assert shown(one).replace("s-theirs", "s-nobody") == shown(other)
        assert world.asked == []


@given(project=texts, server=texts, name=names)
def test_what_is_given_never_stands_in_a_statement(
    world: World, project: str, server: str, name: str
) -> None:
    """The statements are the same whatever is given; in them, it is a parameter."""
    # Of what is like a name of ours nobody can tell whether it stands there for itself.
    given = {
        each
        for each in (project, server, name)
        if len(each) > 3 and not each.strip().isidentifier()
    }
    with world.again():
        for call in calls(world.service, Caller(project, "u"), server, name):
            answered(call)
        keys = frozenset([(USER, name)])
        for kind in (Kind.ADD, Kind.DELETE):
            for succeeded in (True, False):
                with contextlib.suppress(errors.SteelyardError):
                    check_name(name)
                    world.service.settle(Outcome(10**6, server, kind, keys, succeeded))
        assert len(world.statements) > 5
        for statement in world.statements:
            assert _SHAPE.fullmatch(statement), statement
            assert not any(each in statement for each in given - _WORDS), statement


# Names of ours, parameters, and nothing between quotes but names of columns.
_SHAPE = re.compile(r"[A-Za-z_0-9 .,()=?*+<\n\"]+")
_WORDS = {"NULL", "name", "cyclades"}


@example("s-mine\u2028INFO forged", "a\u2028INFO forged")
@given(texts, names)
def test_a_log_has_one_line_for_each_thing_said(world: World, server: str, name: str) -> None:
    with world.again(), _logged() as lines:
        for call in calls(world.service, MINE, "s-mine", name):
            answered(call)
        for call in calls(world.service, MINE, server, name):
            answered(call)
        outcome = Outcome(1, server + "?", Kind.ADD, frozenset([(USER, name)]), succeeded=True)
        world.service.settle(outcome)
        assert any("which is not known here" in line for line in lines)
        for line in lines:
            assert line.isprintable(), ascii(line)


@contextlib.contextmanager
def _logged() -> Iterator[list[str]]:
    """What steelyard logs, at whatever level."""
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


@given(texts, names)
def test_an_error_has_one_line_of_what_can_be_printed(world: World, server: str, name: str) -> None:
    with world.again():
        for call in calls(world.service, MINE, server, name):
            answer = answered(call)
            if isinstance(answer, Exception):
                assert str(answer).isprintable(), ascii(str(answer))


@pytest.mark.parametrize("char", sorted(BREAKING))
def test_which_characters_a_tag_may_have(char: str) -> None:
    """Controls it may not; separators of lines are text, and escaped wherever they are shown."""
    forbidden = unicodedata.category(char[0]) in {"Cc", "Cs"}
    name = f"a{char}b"
    if not forbidden:
        assert check_name(name) == name
        return
    with pytest.raises(errors.InvalidTag) as refused:
        check_name(name)
    assert str(refused.value).isprintable()
