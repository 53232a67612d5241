"""The short soak of the dispatcher, and its judge, which must detect planted faults."""

import pathlib
import random
import time
from typing import Any

import pytest
import sqlalchemy as sa

from steelyard.tags import TagService, TagStore
from steelyard.tags.backends.memory import MemoryBackend
from support.services import brokers
from support.soaks import outcome_soak
from support.soaks.outcome_soak import PREFIX
from support.tags.databases import upgrade


@pytest.mark.parametrize(
    ("instances", "dispatchers", "trouble", "most"),
    [(6, 1, outcome_soak.kill, 3), (4, 2, outcome_soak.close_connections, 2)],
)
def test_each_outcome_is_applied_exactly_once(
    host: str, postgresql: sa.Engine, instances: int, dispatchers: int, trouble: Any, most: int
) -> None:
    outcomes = instances * (outcome_soak.OF_EACH + outcome_soak.BY_HAND)
    figures = outcome_soak.soak(host, postgresql, outcomes, dispatchers, trouble, most)
    assert figures.faults == []
    assert figures.times == most
    assert figures.outcomes == outcomes
    assert str(figures).endswith("sound")


def test_restarted_broker_loses_no_outcomes(postgresql: sa.Engine, tmp_path: pathlib.Path) -> None:
    # The broker process is killed, not only its connections, while two dispatchers work.
    brokers.needed()
    node = brokers.Node(tmp_path)

    def restart_broker(dispatchers: outcome_soak.Dispatchers, chance: random.Random) -> None:
        time.sleep(chance.uniform(0.0, 0.5))
        node.kill()
        time.sleep(chance.uniform(0.0, 1.0))
        node.start()
        dispatchers.times += 1

    outcomes = 4 * (outcome_soak.OF_EACH + outcome_soak.BY_HAND)
    with node.running():
        figures = outcome_soak.soak(node.url, postgresql, outcomes, 2, restart_broker, 1)
    assert figures.faults == []
    assert figures.times == 1


PLANTED = {
    "UPDATE instance_tags SET status = 'PENDADD' WHERE name = 'added 0'": "status PENDADD",
    "DELETE FROM instance_tags WHERE name = 'not deleted 0'": "not deleted 0 of vm0: missing",
    "UPDATE instance_tags SET name = 'deleted 9' WHERE name = 'added 1'": (
        "tag deleted 9 of vm0: unexpected"
    ),
    "UPDATE instance_tags SET status = 'ACTIVE' WHERE name = 'added 2'": "became ACTIVE 2 times",
    "UPDATE tag_instances SET generation = generation + 1": "54 changes, expected 53",
    "UPDATE tag_marks SET job = 99 WHERE name = 'deleted 1'": "mark (99, False)",
    "DELETE FROM tag_marks WHERE name = 'by hand 0'": "mark None",
    f"INSERT INTO tag_operations (id, instance_id, kind, prefix, names, begun)"
    f" VALUES ('o', 1, 'add', '{PREFIX}', '[]', 1)": "still pending",
}


def test_judge_detects_every_planted_fault(postgresql: sa.Engine) -> None:
    store = TagStore(postgresql)
    upgrade(store)
    story = outcome_soak.begin(store, 1, random.Random(1))
    outcome_soak.witness(postgresql)
    service = TagService(store, MemoryBackend())
    for outcome in story.outcomes:
        service.jobs.apply(outcome)
    assert list(outcome_soak.faults(postgresql, story)) == []
    with postgresql.begin() as connection:
        for statement in PLANTED:
            assert connection.exec_driver_sql(statement).rowcount == 1
    found = "\n".join(outcome_soak.faults(postgresql, story))
    assert [fault for fault in PLANTED.values() if fault not in found] == []
