"""That the benchmarks run, at a small size. Times are for people to read, not for tests."""

import importlib.util
import pathlib
import sys
from typing import Any

import sqlalchemy as sa

HERE = pathlib.Path(__file__).parent


def benchmark(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, HERE / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def test_the_filters_agree_on_the_inputs_of_the_benchmark(capsys: Any) -> None:
    rows = benchmark("aggregate_instance_type").run([(200, 20)], 2, print)
    assert [row.layout for row in rows] == ["shared", "random"]
    assert all(0 < row.floor < row.nova for row in rows)
    assert "first" in capsys.readouterr().out


def test_the_rules_agree_on_the_cloud_of_the_benchmark(capsys: Any) -> None:
    (row,) = benchmark("comparison").run([(40, 400, 20)], print)
    assert 0 < row.changed < 40 * 400
    assert "racks" in capsys.readouterr().out


def test_the_weighers_agree_on_the_inputs_of_the_benchmark(capsys: Any) -> None:
    rows = benchmark("soft_affinity").run(200, [10, 100], 2, print)
    assert [row.members for row in rows] == [10, 100]
    assert all(0 < row.step_floor < row.step_nova for row in rows)
    assert "racks" in capsys.readouterr().out


def test_sql_and_placement_agree_on_the_inputs_of_the_benchmark(capsys: Any) -> None:
    rows = benchmark("trait_queries").run([sa.make_url("sqlite://")], 200, 2, print)
    assert len(rows) == 6
    assert "SEARCH" in capsys.readouterr().out  # the plan, in which indexes are used


def test_the_store_and_placement_agree_on_usages_of_the_benchmark(capsys: Any) -> None:
    rows = benchmark("consumer_usages").run([sa.make_url("sqlite://")], 3000, 1, print)
    assert [row.ours.statements for row in rows] == [1, 1, 1, 1]
    assert "by type, of a user" in capsys.readouterr().out


def test_both_upgrades_of_the_benchmark_give_types_to_all_consumers(capsys: Any) -> None:
    rows = benchmark("consumer_upgrade").run([sa.make_url("sqlite://")], [300, 12_000], print)
    assert [row.consumers for row in rows] == [300, 12_000]
    assert "one statement" in capsys.readouterr().out


def test_what_is_reconciled_in_the_benchmark(capsys: Any) -> None:
    rows = benchmark("tag_reconciliation").run([sa.make_url("sqlite://")], [20, 600], print)
    assert [row.actions for row in rows] == [400, 0, 400, 12_000, 0, 12_000]
    # Of the 16 for each 500 servers, two look at the backend that is recorded.
    assert max(row.statements for row in rows) <= 32
    assert "ms a server" in capsys.readouterr().out
