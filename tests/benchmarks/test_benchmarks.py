"""That the benchmarks run, at a small size. Times are for people to read, not for tests."""

import importlib.util
import pathlib
from typing import Any

HERE = pathlib.Path(__file__).parent


def test_the_filters_agree_on_the_inputs_of_the_benchmark(capsys: Any) -> None:
    spec = importlib.util.spec_from_file_location(
        "aggregate_instance_type", HERE / "aggregate_instance_type.py"
    )
    assert spec
    assert spec.loader
    benchmark = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = benchmark
    spec.loader.exec_module(benchmark)
    rows = benchmark.run([(200, 20)], 2, print)
    assert [row.layout for row in rows] == ["shared", "random"]
    assert all(0 < row.floor < row.nova for row in rows)
    assert "first" in capsys.readouterr().out
