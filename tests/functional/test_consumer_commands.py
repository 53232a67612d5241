"""The commands on a store of consumers."""

import json
import pathlib
from typing import Any

import pytest
from consumer_stores import C1, C2, C3, body

from steelyard import cli
from steelyard.consumers import ConsumerStore
from steelyard.tags import TagStore

pytestmark = pytest.mark.usefixtures("closed_databases")


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


@pytest.fixture
def empty(tmp_path: pathlib.Path) -> pathlib.Path:
    """A database without tables."""
    made = tmp_path / "consumers.db"
    made.touch()
    return made


def test_a_store_is_made_and_says_what_it_is(steelyard: Any, empty: pathlib.Path) -> None:
    assert steelyard("db", "current")[:2] == (0, "nothing\n")
    newest = ConsumerStore("sqlite://").history()[-1][0]
    assert steelyard("db", "upgrade")[:2] == (0, f"nothing -> {newest}\n")
    assert steelyard("db", "upgrade")[:2] == (0, f"{newest} -> {newest}\n")
    assert steelyard("db", "current")[:2] == (0, f"{newest}\n")


def test_the_history_says_what_is_there(steelyard: Any, url: str) -> None:
    ConsumerStore(url).upgrade("0003")
    rows = json.loads(steelyard("db", "history", "-f", "json")[1])
    there = {row["Revision"]: row["There"] for row in rows}
    assert there.pop("0003") == "yes"
    assert set(there.items()) >= {("0001", "yes"), ("0002", "yes"), ("0004", "no")}
    assert "yes" not in [said for revision, said in there.items() if revision > "0003"]
    assert rows[2]["What it does"].startswith("Types of consumers")


def test_tags_are_another_schema_in_the_same_database(steelyard: Any, url: str) -> None:
    steelyard("db", "upgrade")
    consumers = steelyard("db", "current")[1]
    tags = ("--schema", "tags")
    assert steelyard("db", "current", *tags)[:2] == (0, "nothing\n")
    newest = TagStore("sqlite://").history()[-1][0]
    status, out, _ = steelyard("db", "upgrade", *tags)
    assert (status, out.splitlines()[0]) == (0, f"nothing -> {newest}")
    assert steelyard("db", "current", *tags)[:2] == (0, f"{newest}\n")
    assert steelyard("db", "current", "--schema", "consumers")[1] == consumers
    rows = json.loads(steelyard("db", "history", *tags, "-f", "json")[1])
    assert [row["Revision"] for row in rows] == [each for each, _ in TagStore(url).history()]
    assert {row["There"] for row in rows} == {"yes"}
    assert TagStore(url).instances() == []


def test_only_an_upgrade_creates_a_file(
    capsys: Any, tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = [
        ["usage", "--project", "p"],
        ["consumer", "types"],
        ["consumer", "types", "--project", "p"],
        ["db", "current"],
        ["db", "history", "--schema", "tags"],
    ]
    for url in ("sqlite:///typo.db", "sqlite+pysqlite:///typo.db?timeout=1"):
        for argv in commands:
            assert cli.main([*argv, "--url", url]) == 2
            said = capsys.readouterr().err
            assert "there is no file 'typo.db'; correct --url, or let steelyard db upgrade" in said
    assert list(tmp_path.iterdir()) == []
    for name, url in {"a": "sqlite:///a", "b": f"sqlite:///file:{tmp_path}/b?uri=true"}.items():
        assert cli.main(["db", "upgrade", "--url", url]) == 0
        assert cli.main(["usage", "--project", "p", "--url", url]) == 0
        assert (tmp_path / name).exists()


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


def test_types_are_counted_and_slips_pointed_out(steelyard: Any, url: str) -> None:
    store = ConsumerStore(url)
    store.upgrade()
    for consumer, kind in ((C1, "INSTANCE"), (C2, "INSTANCE"), (C3, "INTANCE")):
        store.put_allocations(consumer, body(kind=kind, p1={"VCPU": 1}))
    said = {
        "INSTANCE": {"Type": "INSTANCE", "Consumers": 2, "Perhaps meant": []},
        "INTANCE": {"Type": "INTANCE", "Consumers": 1, "Perhaps meant": ["INSTANCE"]},
        "UNKNOWN": {"Type": "UNKNOWN", "Consumers": 0, "Perhaps meant": []},
    }
    status, out, _ = steelyard("consumer", "types", "-f", "json")
    assert (status, json.loads(out)) == (0, list(said.values()))
    assert "| INTANCE  |         1 | INSTANCE      |" in steelyard("consumer", "types")[1]
    # Nobody of the project is of a type that is not listed.
    asked = ("consumer", "types", "--project", "p", "-f", "json")
    assert json.loads(steelyard(*asked)[1]) == [said["INSTANCE"], said["INTANCE"]]
    assert json.loads(steelyard(*asked, "--user", "nobody")[1]) == []


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (
            ("usage", "--project", "p"),
            "no such table: consumer_types; steelyard db upgrade brings the tables",
        ),
        (("consumer", "types"), "no such table: consumer_types; steelyard db upgrade brings the"),
        (("consumer", "types", "--user", "u"), "name that too, with --project"),
    ],
)
def test_mistakes(steelyard: Any, empty: pathlib.Path, argv: Any, said: str) -> None:
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
    assert cli.main(["db", "upgrade", "--url", url]) == 2
    assert "the database cannot do it: unable to open database file" in capsys.readouterr().err


def test_tags_are_where_the_configuration_says(tmp_path: Any, capsys: Any) -> None:
    configured = tmp_path / "tags.conf"
    configured.write_text(f"[steelyard_tags]\nconnection = sqlite:///{tmp_path}/tags.db\n")
    argv = ["--config-file", str(configured), "db"]
    newest = TagStore("sqlite://").history()[-1][0]
    assert cli.main([*argv, "upgrade", "--schema", "tags"]) == 0
    assert cli.main([*argv, "current", "--schema", "tags"]) == 0
    upgraded, _, current = capsys.readouterr().out.splitlines()
    assert (upgraded, current) == (f"nothing -> {newest}", newest)
    assert cli.main([*argv, "current"]) == 2
    assert "the database of consumers is missing: name it with --url" in capsys.readouterr().err
