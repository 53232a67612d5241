"""The command that downgrades the tables, and its guards."""

import pathlib
from collections.abc import Callable
from typing import Any

import pytest
import sqlalchemy as sa

from steelyard.consumers import ConsumerStore
from steelyard.sql import schema_changes
from steelyard.sql.stores import Store
from steelyard.tags import TagStore
from support.consumers.store_laws import C1, C2, body

pytestmark = pytest.mark.usefixtures("closed_databases")

STORES: dict[str, type[Store]] = {"consumers": ConsumerStore, "tags": TagStore}


@pytest.fixture
def url(tmp_path: pathlib.Path) -> str:
    return f"sqlite:///{tmp_path}/both.db"


@pytest.fixture
def stores(url: str) -> dict[str, Store]:
    """Return both stores of one database, upgraded; the consumers have types."""
    made = {name: kind(url) for name, kind in STORES.items()}
    for store in made.values():
        store.upgrade()
    consumers = ConsumerStore(url)
    consumers.post_allocations({C1: body(p1={"VCPU": 1}), C2: body(p1={"VCPU": 1, "DISK_GB": 1})})
    return made


@pytest.fixture
def downgrade(steelyard: Callable[..., tuple[int, str, str]], url: str) -> Any:
    def run(schema: str, *argv: str) -> tuple[int, str, str]:
        return steelyard("db", "downgrade", *argv, "--schema", schema, "--url", url)

    return run


@pytest.mark.parametrize("schema", STORES)
def test_confirmed_downgrade_reverts_revisions_of_one_schema(
    stores: dict[str, Store], downgrade: Any, schema: str
) -> None:
    newest = {name: store.current() for name, store in stores.items()}
    status, out, err = downgrade(schema, "0001", "--from", newest[schema])
    assert (status, err) == (0, "")
    assert out == f"downgraded the tables from revision {newest[schema]} to 0001\n"
    assert stores[schema].current() == "0001"
    assert downgrade(schema, "base", "--from", "0001") == (
        0,
        "dropped the tables, which were at revision 0001\n",
        "",
    )
    assert {name: store.current() for name, store in stores.items()} == {**newest, schema: None}
    stores[schema].upgrade()
    assert stores[schema].current() == newest[schema]


def test_unconfirmed_downgrade_lists_what_would_be_lost(
    stores: dict[str, Store], downgrade: Any
) -> None:
    newest = stores["consumers"].current()
    status, out, err = downgrade("consumers", "0002")
    assert (status, out) == (2, "")
    lines = err.splitlines()
    assert lines[0] == (
        f"steelyard: nothing changed: the downgrade would revert {len(lines) - 1} revisions and "
        f"drop consumer_types (2 rows); to confirm, add --from {newest}"
    )
    assert lines[-1] == ("steelyard: would revert 0003: Consumer types, with the type UNKNOWN")
    assert f"would revert {newest}: " in lines[1]
    _, _, err = downgrade("consumers", "base")
    assert "drop consumer_types (2 rows), consumers (2 rows), allocations (3 rows);" in err
    _, _, err = downgrade("consumers", "0008")
    assert "revisions; to confirm" in err or "1 revision; to confirm" in err
    assert stores["consumers"].current() == newest
    assert ConsumerStore(stores["consumers"]._database.engine.url).count("p") == 2


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (("0001", "--from", "0002"), "the tables are at revision 0003, not '0002': check that"),
        (("0003",), "cannot downgrade to revision 0003: the tables are at revision 0003; name an"),
        (("0004",), "cannot downgrade to revision 0004: the tables are at revision 0003; name an"),
        (("head", "--from", "0003"), "no revision 'head': expected base or one of 0001, 0002, "),
    ],
)
def test_mistaken_downgrade_changes_nothing(
    downgrade: Any, url: str, argv: tuple[str, ...], message: str
) -> None:
    store = ConsumerStore(url)
    store.upgrade("0003")
    status, out, err = downgrade("consumers", *argv)
    assert (status, out) == (2, "")
    assert message in err
    assert store.current() == "0003"


def test_downgrade_compares_the_revision_when_no_other_process_can_change_it(
    stores: dict[str, Store], downgrade: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    newest, lock = str(stores["consumers"].current()), schema_changes.locked

    def lock_after_another_downgrade(*given: Any) -> Any:
        monkeypatch.setattr(schema_changes, "locked", lock)
        stores["consumers"].downgrade("0008")
        return lock(*given)

    monkeypatch.setattr(schema_changes, "locked", lock_after_another_downgrade)
    status, out, err = downgrade("consumers", "0005", "--from", newest)
    assert (status, out) == (2, "")
    assert f"the tables are at revision 0008, not '{newest}': check that" in err
    assert stores["consumers"].current() == "0008"


def test_downgrade_without_tables_is_rejected(downgrade: Any, url: str) -> None:
    TagStore(url).upgrade()
    status, _, err = downgrade("consumers", "base", "--from", "0010")
    assert (status, err) == (2, "steelyard: no tables to downgrade: check --url and --schema\n")


def test_downgrade_of_a_newer_steelyards_tables_is_rejected(downgrade: Any, url: str) -> None:
    ConsumerStore(url).upgrade()
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.exec_driver_sql("UPDATE steelyard_consumers_version SET version_num = '0999'")
    engine.dispose()
    status, _, err = downgrade("consumers", "0001", "--from", "0999")
    assert status == 2
    assert "has revision '0999', which this version of steelyard lacks; downgrade with" in err


def test_downgrade_has_no_default_database(
    steelyard: Any, url: str, tmp_path: pathlib.Path, stores: dict[str, Store]
) -> None:
    # Neither the option connection nor the default of the other commands chooses the tables.
    configured = tmp_path / "tags.conf"
    configured.write_text(f"[steelyard_tags]\nconnection = {url}\n")
    newest = stores["tags"].current()
    command = ("--config-file", str(configured), "db", "downgrade", "base", "--from", str(newest))
    status, _, err = steelyard(*command, "--schema", "tags")
    assert status == 2
    assert "the following arguments are required: --url" in err
    status, _, err = steelyard(*command, "--url", url)
    assert status == 2
    assert "the following arguments are required: --schema" in err
    assert stores["tags"].current() == newest
