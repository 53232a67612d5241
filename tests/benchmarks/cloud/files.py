"""Time and peak memory to load and to change cloud files, compared with the parsers' floor.

Each figure is the best of several processes. The time is the CPU time of the action alone, so that
other processes matter little; the memory is that of the process from its start. "Load" is what a command does to read a cloud, and its floor is
``json.load`` or PyYAML's ``CBaseLoader``. "Change" loads the file, moves a server and saves the
file; its ratio is to loading.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from benchmarks.cloud import measured
from steelyard.cloud.files import saving
from support.scheduler.big_clouds import big_cloud

FLOORS = {"json": "json_load", "yaml": "yaml_load"}
# Hosts, servers, formats.
SIZES = [
    (1_000, 10_000, ("json", "yaml")),
    (10_000, 100_000, ("json", "yaml")),
    (100_000, 100_000, ("json",)),
]
HEADER = (
    f"{'format':7}{'hosts':>8}{'servers':>9}{'floor, s':>10}{'MiB':>6}{'load, s':>10}{'ratio':>7}"
    f"{'MiB':>6}{'change, s':>11}{'ratio':>7}{'MiB':>6}"
)


class Cost(NamedTuple):
    """The seconds of CPU time and the peak memory in MiB of one action."""

    seconds: float
    peak: float


@dataclasses.dataclass(frozen=True)
class Row:
    format: str
    hosts: int
    servers: int
    floor: Cost
    load: Cost
    change: Cost

    def __str__(self) -> str:
        return (
            f"{self.format:7}{self.hosts:8}{self.servers:9}"
            f"{self.floor.seconds:10.3f}{self.floor.peak:6.0f}"
            f"{self.load.seconds:10.3f}{self.load.seconds / self.floor.seconds:6.1f}x"
            f"{self.load.peak:6.0f}"
            f"{self.change.seconds:11.3f}{self.change.seconds / self.load.seconds:6.1f}x"
            f"{self.change.peak:6.0f}"
        )


def cost(action: str, path: pathlib.Path, repeats: int) -> Cost:
    """Return the lowest time and the lowest peak of several processes."""
    found = []
    for _ in range(repeats):
        done = subprocess.run(
            [sys.executable, measured.__file__, action, path],
            env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=subprocess.PIPE,
            check=True,
        )
        found.append(json.loads(done.stdout))
    return Cost(*map(min, zip(*found, strict=True)))


@contextlib.contextmanager
def cloud_files(hosts: int, servers: int, formats: Sequence[str]) -> Iterator[list[pathlib.Path]]:
    """Write the same cloud in each format; delete the files after the block."""
    cloud = big_cloud(hosts, servers)
    with tempfile.TemporaryDirectory() as directory:
        paths = [pathlib.Path(directory, f"cloud.{each}") for each in formats]
        for path in paths:
            saving.create(str(path), cloud)
        yield paths


def run(
    sizes: list[tuple[int, int, tuple[str, ...]]], repeats: int, show: Callable[[str], None]
) -> list[Row]:
    show(HEADER)
    rows = []
    for hosts, servers, formats in sizes:
        with cloud_files(hosts, servers, formats) as paths:
            for format_, path in zip(formats, paths, strict=True):
                actions = (FLOORS[format_], "load", "change")
                costs = [cost(action, path, repeats) for action in actions]
                rows.append(Row(format_, hosts, servers, *costs))
                show(str(rows[-1]))
    return rows


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3, help="processes for each figure")
    run(SIZES, parser.parse_args().repeats, lambda line: print(line, flush=True))  # noqa: T201
