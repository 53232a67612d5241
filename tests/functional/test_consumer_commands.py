"""The commands on a store of consumers."""

import json
from typing import Any

import pytest
from consumer_stores import C1, C2, body

from steelyard import cli
from steelyard.consumers import ConsumerStore


@pytest.fixture
def url(tmp_path: Any) -> str:
    return f"sqlite:///{tmp_path}/consumers.db"


@pytest.fixture
def steelyard(url: str, capsys: Any) -> Any:
    def run(*argv: str) -> tuple[int, str, str]:
        status = cli.main([*argv, "--url", url])
        out, err = capsys.readouterr()
        return status, out, err

    return run


def test_a_store_is_made_and_says_what_it_is(steelyard: Any) -> None:
    assert steelyard("db", "current")[:2] == (0, "nothing\n")
    newest = ConsumerStore("sqlite://").history()[-1][0]
    assert steelyard("db", "upgrade")[:2] == (0, f"nothing -> {newest}\n")
    assert steelyard("db", "upgrade")[:2] == (0, f"{newest} -> {newest}\n")
    assert steelyard("db", "current")[:2] == (0, f"{newest}\n")


def test_the_history_says_what_is_there(steelyard: Any, url: str) -> None:
    ConsumerStore(url).upgrade("0003")
    rows = json.loads(steelyard("db", "history", "-f", "json")[1])
    there = {row["Revision"]: row["There"] for row in rows}
    assert there == {"0001": "yes", "0002": "yes", "0003": "yes", "0004": "no", "0005": "no"}
    assert rows[2]["What it does"].startswith("Types of consumers")


def test_usages_are_shown(steelyard: Any, url: str) -> None:
    store = ConsumerStore(url)
    store.upgrade()
    store.put_allocations(C1, body(p1={"VCPU": 2, "MEMORY_MB": 5}))
    store.put_allocations(C2, body(kind="MIGRATION", user="other", p1={"VCPU": 1}))
    assert json.loads(steelyard("usage", "--project", "p", "-f", "json")[1]) == [
        {"Type": "INSTANCE", "Consumers": 1, "Resources": {"MEMORY_MB": 5, "VCPU": 2}},
        {"Type": "MIGRATION", "Consumers": 1, "Resources": {"VCPU": 1}},
    ]
    _, out, _ = steelyard("usage", "--project", "p", "--type", "all")
    assert "| all  |         2 | 5 MEMORY_MB, 3 VCPU |" in out
    _, out, _ = steelyard("usage", "--project", "p", "--user", "other", "-f", "csv")
    assert "INSTANCE" not in out


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (
            ("usage", "--project", "p"),
            "there is no store of consumers; create one with steelyard db",
        ),
        (("usage", "--project", "p", "--type", "instance"), "create one with steelyard db upgrade"),
    ],
)
def test_mistakes(steelyard: Any, argv: Any, said: str) -> None:
    status, _, err = steelyard(*argv)
    assert status == 2
    assert said in err


def test_a_type_that_is_none(steelyard: Any, url: str) -> None:
    ConsumerStore(url).upgrade()
    status, _, err = steelyard("usage", "--project", "p", "--type", "instance")
    assert (status, "'instance' is no consumer type" in err) == (2, True)


@pytest.mark.parametrize("odd", ["", "nonsense", "what://is/this"])
def test_what_is_no_url(capsys: Any, odd: str) -> None:
    assert cli.main(["db", "current", "--url", odd]) == 2
    assert "is no URL of a database; write one such as sqlite:///" in capsys.readouterr().err


def test_a_database_that_cannot_be_opened_is_a_clear_line(capsys: Any, tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/nowhere/consumers.db"
    for argv in (["db", "upgrade"], ["db", "current"], ["usage", "--project", "p"]):
        assert cli.main([*argv, "--url", url]) == 2
        assert "the database cannot do it: unable to open database file" in capsys.readouterr().err
