"""The backfill of consumer types in a store."""

import json
from typing import Any

import pytest

from steelyard.consumers import ConsumerStore
from support.consumers.store_laws import C1, C2, C3, body

pytestmark = pytest.mark.usefixtures("closed_databases")

OTHER = "00000000-0000-4000-8000-00000000000f"


@pytest.fixture
def store(url: str) -> ConsumerStore:
    """Return a store with two consumers without a type and two others."""
    made = ConsumerStore(url)
    made.upgrade()
    made.post_allocations(
        {
            C1: body(kind="UNKNOWN", p1={"VCPU": 2, "DISK_GB": 1}, p2={"VCPU": 1}),
            C2: body(kind="UNKNOWN", user="v", p1={"VCPU": 1}),
            C3: body(kind="MIGRATION", p1={"VCPU": 1}),
            OTHER: {**body(kind="UNKNOWN", p1={"VCPU": 1}), "project_id": "q"},
        }
    )
    return made


@pytest.fixture
def backfill(steelyard: Any, url: str) -> Any:
    def run(*argv: str) -> Any:
        asked = ("--type", "INSTANCE", "--project", "p", "--url", url, "-f", "json")
        status, out, err = steelyard("consumer", "backfill", *asked, *argv)
        assert (status, err) == (0, "")
        return json.loads(out)

    return run


def bodies(store: ConsumerStore) -> dict[str, Any]:
    return {consumer: store.get_allocations(consumer) for consumer in (C1, C2, C3, OTHER)}


def test_dry_run_lists_changes_and_makes_none(store: ConsumerStore, backfill: Any) -> None:
    before = bodies(store)
    found = backfill("--dry-run", "--long")
    assert found["consumers"] == [
        {"consumer": consumer, "outcome": "would change", "reason": None} for consumer in (C1, C2)
    ]
    assert found["summary"]["would_change"] == 2
    assert bodies(store) == before


def test_backfill_changes_only_the_type(store: ConsumerStore, backfill: Any) -> None:
    before = bodies(store)
    assert backfill()["outcomes"] == [{"outcome": "changed", "consumers": 2, "reason": None}]
    typed = {"consumer_type": "INSTANCE", "consumer_generation": 2}
    changed = {consumer: {**before[consumer], **typed} for consumer in (C1, C2)}
    assert bodies(store) == {**before, **changed}
    assert backfill()["summary"]["consumers"] == 0


def test_backfill_without_consumers_prints_nothing(
    steelyard: Any, store: ConsumerStore, url: str
) -> None:
    store.delete_allocations(C1)
    asked = ("--type", "INSTANCE", "--project", "none", "--url", url)
    assert steelyard("consumer", "backfill", *asked) == (0, "", "")


def test_backfill_of_a_user_skips_others(store: ConsumerStore, backfill: Any) -> None:
    assert backfill("--user", "v")["outcomes"] == [
        {"outcome": "changed", "consumers": 1, "reason": None},
        {"outcome": "skipped", "consumers": 1, "reason": "belongs to another user"},
    ]
    assert store.types("p") == {"INSTANCE": 1, "MIGRATION": 1, "UNKNOWN": 1}


def test_backfill_of_listed_consumers_reads_no_others(
    store: ConsumerStore, backfill: Any, tmp_path: Any
) -> None:
    path = tmp_path / "old.txt"
    path.write_text(f"{C2}\n{C3}\n{OTHER}\n")
    assert backfill("--consumers", str(path))["outcomes"] == [
        {"outcome": "changed", "consumers": 1, "reason": None},
        {"outcome": "skipped", "consumers": 1, "reason": "already has type MIGRATION"},
        {"outcome": "skipped", "consumers": 1, "reason": "belongs to another project"},
    ]
    assert store.types("p") == {"INSTANCE": 1, "MIGRATION": 1, "UNKNOWN": 1}


def test_backfill_stops_if_the_database_becomes_unreachable(
    store: ConsumerStore, steelyard: Any, url: str, tmp_path: Any, monkeypatch: Any
) -> None:
    store.close()
    update = ConsumerStore.update

    def update_and_lose_the_file(self: ConsumerStore, *given: Any) -> bool:
        done = update(self, *given)
        self.close()
        (tmp_path / "consumers.db").rename(tmp_path / "moved.db")
        (tmp_path / "consumers.db").mkdir()
        return done

    monkeypatch.setattr(ConsumerStore, "update", update_and_lose_the_file)
    asked = ("--type", "INSTANCE", "--project", "p", "--url", url, "-f", "json")
    status, out, err = steelyard("consumer", "backfill", *asked)
    assert (status, json.loads(out)["summary"]["changed"]) == (2, 1)
    assert "unable to open database file" in err
    assert "stopped after 1 of 2 consumers" in err
