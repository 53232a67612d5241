"""The commands on a store of consumers."""

import json
import pathlib
from typing import Any

import pytest

from steelyard import cli
from steelyard.consumers import ConsumerStore
from steelyard.tags import TagStore
from support.consumers.store_laws import C1, C2, C3, body

pytestmark = pytest.mark.usefixtures("closed_databases")


@pytest.fixture
def steelyard(url: str, capsys: Any) -> Any:
    def run(*argv: str) -> tuple[int, str, str]:
        status = cli.main([*argv, "--url", url])
        out, err = capsys.readouterr()
        return status, out, err

    return run


@pytest.fixture
def empty(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return the path of a database without tables."""
    made = tmp_path / "consumers.db"
    made.touch()
    return made


def test_upgrade_creates_the_tables_and_current_shows_the_revision(
    steelyard: Any, empty: pathlib.Path
) -> None:
    assert steelyard("db", "current")[:2] == (0, "no tables\n")
    newest = ConsumerStore("sqlite://").history()[-1][0]
    assert steelyard("db", "upgrade")[:2] == (0, f"created the tables at revision {newest}\n")
    assert steelyard("db", "upgrade")[:2] == (
        0,
        f"the tables are up to date, at revision {newest}\n",
    )
    assert steelyard("db", "current")[:2] == (0, f"{newest}\n")


def test_history_shows_which_revisions_are_applied(steelyard: Any, url: str) -> None:
    ConsumerStore(url).upgrade("0003")
    rows = json.loads(steelyard("db", "history", "-f", "json")[1])["revisions"]
    there = {row["revision"]: row["there"] for row in rows}
    assert there.pop("0003") is True
    assert set(there.items()) >= {("0001", True), ("0002", True), ("0004", False)}
    assert True not in [said for revision, said in there.items() if revision > "0003"]
    assert rows[2]["what_it_does"].startswith("Consumer types")


def test_schema_tags_has_its_own_revisions(steelyard: Any, url: str) -> None:
    steelyard("db", "upgrade")
    consumers = steelyard("db", "current")[1]
    tags = ("--schema", "tags")
    assert steelyard("db", "current", *tags)[:2] == (0, "no tables\n")
    newest = TagStore("sqlite://").history()[-1][0]
    status, out, _ = steelyard("db", "upgrade", *tags)
    assert (status, out.splitlines()[0]) == (0, f"created the tables at revision {newest}")
    assert steelyard("db", "current", *tags)[:2] == (0, f"{newest}\n")
    assert steelyard("db", "current", "--schema", "consumers")[1] == consumers
    rows = json.loads(steelyard("db", "history", *tags, "-f", "json")[1])["revisions"]
    assert [row["revision"] for row in rows] == [each for each, _ in TagStore(url).history()]
    assert {row["there"] for row in rows} == {True}
    assert "| yes     |" in steelyard("db", "history", *tags)[1]
    values = steelyard("db", "history", *tags, "-f", "value", "-c", "Applied")[1]
    assert set(values.split()) == {"yes"}
    assert TagStore(url).instances() == []


def test_upgrade_alone_creates_a_file(
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
            assert (
                f"no file '{tmp_path}/typo.db': correct the path in the database URL, or create "
                f"the file with 'steelyard db upgrade"
            ) in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []
    for name, url in {"a": "sqlite:///a", "b": f"sqlite:///file:{tmp_path}/b?uri=true"}.items():
        assert cli.main(["db", "upgrade", "--url", url]) == 0
        assert cli.main(["usage", "--project", "p", "--url", url]) == 0
        assert (tmp_path / name).exists()


def test_usage_counts_consumers_and_resources(steelyard: Any, url: str) -> None:
    store = ConsumerStore(url)
    store.upgrade()
    store.put_allocations(C1, body(p1={"VCPU": 2, "MEMORY_MB": 5}))
    store.put_allocations(C2, body(kind="MIGRATION", user="other", p1={"VCPU": 1}))
    assert json.loads(steelyard("usage", "--project", "p", "-f", "json")[1])["usages"] == [
        {"type": "INSTANCE", "consumers": 1, "resources": {"MEMORY_MB": 5, "VCPU": 2}},
        {"type": "MIGRATION", "consumers": 1, "resources": {"VCPU": 1}},
    ]
    _, out, _ = steelyard("usage", "--project", "p", "--type", "all")
    assert "| all  |         2 | 5 MiB of RAM, 3 vCPUs |" in out
    _, out, err = steelyard("usage", "--project", "p", "--user", "other", "-f", "csv")
    assert "INSTANCE" not in out
    assert err == ""


def test_usage_says_that_a_project_has_no_consumers(steelyard: Any, url: str) -> None:
    ConsumerStore(url).upgrade()
    status, _, err = steelyard("usage", "--project", "pp")
    assert (status, err) == (0, "steelyard: no consumers found in project 'pp'\n")


def test_consumer_types_are_counted_with_possible_typos(steelyard: Any, url: str) -> None:
    store = ConsumerStore(url)
    store.upgrade()
    for consumer, kind in ((C1, "INSTANCE"), (C2, "INSTANCE"), (C3, "INTANCE")):
        store.put_allocations(consumer, body(kind=kind, p1={"VCPU": 1}))
    said = {
        "INSTANCE": {"type": "INSTANCE", "consumers": 2, "perhaps_meant": []},
        "INTANCE": {"type": "INTANCE", "consumers": 1, "perhaps_meant": ["INSTANCE"]},
        "UNKNOWN": {"type": "UNKNOWN", "consumers": 0, "perhaps_meant": []},
    }
    status, out, _ = steelyard("consumer", "types", "-f", "json")
    assert (status, json.loads(out)["types"]) == (0, list(said.values()))
    assert "| INTANCE  |         1 | INSTANCE         |" in steelyard("consumer", "types")[1]
    # With --project, types without consumers are not listed.
    asked = ("consumer", "types", "--project", "p", "-f", "json")
    assert json.loads(steelyard(*asked)[1])["types"] == [said["INSTANCE"], said["INTANCE"]]
    assert json.loads(steelyard(*asked, "--user", "nobody")[1])["types"] == []


def test_prune_types_removes_unused_types(steelyard: Any, url: str) -> None:
    store = ConsumerStore(url)
    store.upgrade()
    for consumer, kind in ((C1, "INSTANCE"), (C2, "INTANCE"), (C3, "MIGRATION")):
        store.put_allocations(consumer, body(kind=kind, p1={"VCPU": 1}))
    store.delete_allocations(C2)
    assert steelyard("consumer", "prune-types") == (0, "1 type removed: INTANCE\n", "")
    assert store.types() == {"INSTANCE": 1, "MIGRATION": 1, "UNKNOWN": 0}
    store.delete_allocations(C1)
    store.delete_allocations(C3)
    assert steelyard("consumer", "prune-types") == (0, "2 types removed: INSTANCE, MIGRATION\n", "")
    assert steelyard("consumer", "prune-types") == (0, "0 types removed\n", "")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (
            ("usage", "--project", "p"),
            "no such table: consumers; run 'steelyard db upgrade'",
        ),
        (("consumer", "types"), "no such table: consumer_types; run 'steelyard db upgrade'"),
        (("consumer", "types", "--user", "u"), "--user needs --project: add the project"),
    ],
)
def test_mistake_is_explained(steelyard: Any, empty: pathlib.Path, argv: Any, said: str) -> None:
    status, _, err = steelyard(*argv)
    assert status == 2
    assert said in err


def test_usage_rejects_an_invalid_type(steelyard: Any, url: str) -> None:
    ConsumerStore(url).upgrade()
    status, _, err = steelyard("usage", "--project", "p", "--type", "instance")
    assert (status, "invalid consumer type 'instance'" in err) == (2, True)


@pytest.mark.parametrize("odd", ["", "nonsense", "what://is/this"])
def test_invalid_database_url_is_reported(capsys: Any, odd: str) -> None:
    assert cli.main(["db", "current", "--url", odd]) == 2
    err = capsys.readouterr().err
    assert "invalid database URL" in err
    assert "expected one such as sqlite:///" in err


def test_unreadable_database_is_reported(capsys: Any, tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/nowhere/consumers.db"
    assert cli.main(["db", "upgrade", "--url", url]) == 2
    assert (
        f"cannot create the database file '{tmp_path}/nowhere/consumers.db': No such file or "
        f"directory; check the path in the database URL"
    ) in capsys.readouterr().err


def test_schema_tags_uses_the_configured_database(tmp_path: Any, capsys: Any) -> None:
    configured = tmp_path / "tags.conf"
    configured.write_text(f"[steelyard_tags]\nconnection = sqlite:///{tmp_path}/tags.db\n")
    argv = ["--config-file", str(configured), "db"]
    newest = TagStore("sqlite://").history()[-1][0]
    assert cli.main([*argv, "upgrade", "--schema", "tags"]) == 0
    assert cli.main([*argv, "current", "--schema", "tags"]) == 0
    upgraded, _, current = capsys.readouterr().out.splitlines()
    assert (upgraded, current) == (f"created the tables at revision {newest}", newest)
    assert cli.main([*argv, "current"]) == 2
    assert "missing --url: name the consumer database" in capsys.readouterr().err
