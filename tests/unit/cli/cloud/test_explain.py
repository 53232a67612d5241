"""The command that explains the verdict on each host."""

import json
import pathlib

from support.cli.in_process import Run


def test_explain_shows_every_host(run: Run, cloud: pathlib.Path) -> None:
    status, out, err = run("explain", "--cloud", cloud, "--flavor", "open", "-f", "json")
    assert (status, err) == (0, "")
    chosen, rejected = json.loads(out)["hosts"]
    assert (chosen["host"], chosen["verdict"]) == ("h1", "chosen")
    assert (rejected["host"], rejected["verdict"], rejected["weight"]) == ("h2", "rejected", None)
    assert rejected["why"]["passed"] == ["InServiceFilter", "CapacityFilter", "TraitsFilter"]
    assert rejected["why"]["rejected_by"] == "AggregateInstanceTypeFilter"
