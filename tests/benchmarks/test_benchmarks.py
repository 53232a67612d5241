"""Runs of the benchmarks at a small size. Times are for people to read, not for tests."""

from typing import Any

import sqlalchemy as sa

from benchmarks.analysis import comparison, questions
from benchmarks.cloud import files
from benchmarks.consumers import http, upgrade, usages
from benchmarks.filters import aggregate_instance_type
from benchmarks.scheduler import placements
from benchmarks.tags import load, reconciliation, servers
from benchmarks.traits import sql
from benchmarks.weighers import soft_affinity


def test_the_filters_agree_on_the_inputs_of_the_benchmark(capsys: Any) -> None:
    rows = aggregate_instance_type.run([(200, 20)], 2, print)
    assert [row.layout for row in rows] == ["shared", "random"]
    assert all(0 < row.floor < row.nova for row in rows)
    assert "first" in capsys.readouterr().out


def test_the_rules_agree_on_the_cloud_of_the_benchmark(capsys: Any) -> None:
    (row,) = comparison.run([(40, 400, 20)], print)
    assert 0 < row.changed < 40 * 400
    assert "racks" in capsys.readouterr().out


def test_the_weighers_agree_on_the_inputs_of_the_benchmark(capsys: Any) -> None:
    rows = soft_affinity.run(200, [10, 100], 2, print)
    assert [row.members for row in rows] == [10, 100]
    assert all(0 < row.step_floor < row.step_nova for row in rows)
    assert "racks" in capsys.readouterr().out


def test_both_schedulers_place_the_servers_of_the_benchmark(capsys: Any) -> None:
    rows = placements.run([(60, 8, False), (60, None, True)], 8, 2, print)
    assert [(row.kinds, row.has_group) for row in rows] == [(8, False), (60, True)]
    assert all(row.nova > 0 < row.ours for row in rows)
    assert "ratio" in capsys.readouterr().out


def test_sql_and_placement_agree_on_the_inputs_of_the_benchmark(capsys: Any) -> None:
    rows = sql.run([sa.make_url("sqlite://")], 200, 2, print)
    assert len(rows) == len(sql.QUERIES)
    assert "SEARCH" in capsys.readouterr().out  # the plan, in which indexes are used


def test_the_store_and_placement_agree_on_usages_of_the_benchmark(capsys: Any) -> None:
    rows = usages.run([sa.make_url("sqlite://")], 3000, 1, print)
    assert [row.ours.statements for row in rows] == [1, 1, 1, 1, 1, 1]
    assert "by type, of a user" in capsys.readouterr().out


def test_the_api_and_placement_answer_the_requests_of_the_benchmark(capsys: Any) -> None:
    rows = http.run([sa.make_url("sqlite://")], 50, 20, 1, print)
    assert [row.request for row in rows] == ["GET usages", "PUT"]
    assert all(row.ours > 0 < row.placement for row in rows)
    assert "ratio" in capsys.readouterr().out


def test_both_upgrades_of_the_benchmark_give_types_to_all_consumers(capsys: Any) -> None:
    rows = upgrade.run([sa.make_url("sqlite://")], [300, 12_000], print)
    assert [row.consumers for row in rows] == [300, 12_000]
    assert "one statement" in capsys.readouterr().out


def test_reconciliation_in_the_benchmark_runs_few_statements(capsys: Any) -> None:
    rows = reconciliation.run([sa.make_url("sqlite://")], [20, 600], print)
    assert [row.actions for row in rows] == [400, 0, 400, 12_000, 0, 12_000]
    # Each 500 servers need 16 statements; two of these read the recorded backend.
    assert max(row.statements for row in rows) <= 32
    assert "ms/server" in capsys.readouterr().out


def test_servers_in_the_benchmark_are_registered_and_listed_by_few_statements(capsys: Any) -> None:
    rows = servers.run([sa.make_url("sqlite://")], [600, 2_100], print)
    assert [row.found for row in rows] == [600, 600, 6, 2_100, 2_100, 21]
    assert [row.statements for row in rows if row.phase != "register"] == [1, 1, 3, 1]
    assert "ms/server" in capsys.readouterr().out


def test_the_api_of_tags_answers_the_requests_of_the_benchmark(capsys: Any) -> None:
    rows = load.run([sa.make_url("sqlite://")], [100], [2], print, slow=20, seconds=0.3)
    assert [row.request for row in rows] == ["GET", "PUT tag"]
    assert all(row.ours.per_second > 0 < row.bare.per_second for row in rows)
    assert "ratio" in capsys.readouterr().out


def test_cloud_files_of_the_benchmark_are_loaded_and_changed(capsys: Any) -> None:
    rows = files.run([(20, 100, ("json", "yaml"))], 1, print)
    assert [row.format for row in rows] == ["json", "yaml"]
    assert all(row.floor.seconds > 0 < row.load.peak for row in rows)
    assert "ratio" in capsys.readouterr().out


def test_questions_of_the_benchmark_are_answered(capsys: Any) -> None:
    (row,) = questions.run([(40, 200, 10, 10, 5)], print)
    assert len(row.seconds) == len(questions.QUESTIONS)
    assert row.floor > 0 < row.page
    assert "capacity" in capsys.readouterr().out
