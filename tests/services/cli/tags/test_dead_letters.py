"""``steelyard tags dead-letters`` with RabbitMQ."""

import json
import os
import pathlib
import pty
import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from steelyard import cli
from steelyard.tags.jobs.broker import Broker
from support.soaks.outcome_soak import COMMAND
from support.tags import queues

BODIES = [b"one", b"two\x1b[2J", b"three"]


@pytest.fixture
def broker(host: str) -> Iterator[Broker]:
    """Yield a broker with three dead letters."""
    with queues.own_queue(host) as broker:
        with broker.connected() as connection:
            for body in BODIES:
                broker.dead_letter(connection.default_channel, body, f"malformed: {body!r}")
        yield broker


@pytest.fixture
def command(host: str, broker: Broker, tmp_path: pathlib.Path) -> list[str]:
    """Return the arguments in front of ``list``, ``replay`` and ``drop``."""
    path = tmp_path / "tags.conf"
    path.touch(mode=0o600)
    path.write_text(f"[steelyard_tags]\ntransport_url = {host}\nqueue = {broker.queue.name}\n")
    return ["--config-file", str(path), "tags", "dead-letters"]


@pytest.fixture
def run(command: list[str], capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    """Return a function that runs a command and returns its status, output and errors."""

    def run(*words: str) -> tuple[int, str, str]:
        return cli.main([*command, *words]), *capsys.readouterr()

    return run


def listed(run: Callable[..., Any]) -> Any:
    status, out, _ = run("list", "--long", "-f", "json")
    assert status == 0
    return json.loads(out)


def test_list_shows_reasons_and_ages(run: Callable[..., Any], broker: Broker) -> None:
    document = listed(run)
    assert document["summary"] == {"queue": broker.dead.name, "dead_letters": 3, "listed": 3}
    assert [row["message"] for row in document["dead_letters"]] == ["one", "two\x1b[2J", "three"]
    assert all(0 <= row["age_seconds"] < 60 for row in document["dead_letters"])
    status, out, err = run("list", "--limit", "2")
    assert status == 0
    assert out.count("malformed: ") == 2
    assert err == f"steelyard: 2 dead letters of 3 in the queue {broker.dead.name}\n"
    assert listed(run)["dead_letters"][0]["id"] == document["dead_letters"][0]["id"]


def test_text_of_messages_is_escaped_in_tables(run: Callable[..., Any]) -> None:
    _, out, _ = run("list", "--long")
    assert "two\\u001b[2J" in out


def test_replay_and_drop_report_missing_ids(run: Callable[..., Any], broker: Broker) -> None:
    first, second, third = (row["id"] for row in listed(run)["dead_letters"])
    assert run("replay", second) == (0, "replayed 1 dead letter\n", "")
    status, out, err = run("drop", "--yes", first, second)
    assert (status, out) == (2, "dropped 1 dead letter\n")
    assert err == (
        f"steelyard: no dead letter '{second}' in the queue {broker.dead.name}; list them with "
        f"'steelyard tags dead-letters list'\n"
    )
    assert [row["id"] for row in listed(run)["dead_letters"]] == [third]
    assert queues.count(broker, broker.queue) == 1


def test_all_messages_are_replayed_and_dropped(run: Callable[..., Any], broker: Broker) -> None:
    assert run("replay", "--all") == (0, "replayed 3 dead letters\n", "")
    assert run("drop", "--all", "--yes") == (0, "dropped 0 dead letters\n", "")
    assert queues.count(broker, broker.queue) == 3
    with broker.connected() as connection:
        broker.dead_letter(connection.default_channel, b"four", "malformed")
    assert run("drop", "--all", "--yes") == (0, "dropped 1 dead letter\n", "")
    assert queues.count(broker, broker.dead) == 0


def test_drop_without_a_terminal_needs_yes(command: list[str], broker: Broker) -> None:
    done = subprocess.run(
        [*COMMAND, *command, "drop", "--all"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "steelyard: cannot ask for a confirmation: standard input is not a terminal; add --yes\n"
    )
    assert queues.count(broker, broker.dead) == 3


@pytest.mark.parametrize(
    ("answer", "status", "left"), [(b"y\n", 0, 0), (b"\n", 1, 3), (b"no\n", 1, 3), (b"\x04", 1, 3)]
)
def test_drop_asks_for_a_confirmation(
    command: list[str], broker: Broker, answer: bytes, status: int, left: int
) -> None:
    terminal, inside = pty.openpty()
    try:
        os.write(terminal, answer)
        done = subprocess.run(
            [*COMMAND, *command, "drop", "--all"],
            stdin=inside,
            capture_output=True,
            text=True,
            check=False,
        )
    finally:
        os.close(terminal)
        os.close(inside)
    assert done.returncode == status
    assert done.stderr == f"drop 3 dead letters from the queue {broker.dead.name}? [y/N] "
    assert queues.count(broker, broker.dead) == left
