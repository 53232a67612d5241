"""A tag backend of another distribution that several processes share: a file of SQLite.

Each job takes a moment, and its number is recorded in the transaction that changes the tags.
"""

import contextlib
import json
import os
import pathlib
import sqlite3
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from steelyard import errors
from steelyard.tags.backends.base import BackendIdentity, JobStatus, TagBackend
from support.repository import ROOT

VARIABLE = "STEELYARD_SHARED_BACKEND"
IDENTITY = BackendIdentity("shared", "file")
# Seconds that a job runs.
_TAKES = 0.2
_TABLES = """
CREATE TABLE instances (name TEXT PRIMARY KEY, tags TEXT NOT NULL);
CREATE TABLE jobs (number INTEGER PRIMARY KEY AUTOINCREMENT, finished REAL NOT NULL,
                   succeeded INTEGER NOT NULL);
"""


class SharedBackend(TagBackend):
    """The backend in the file that the environment names."""

    def __init__(self, conf: object = None) -> None:
        self._path = os.environ[VARIABLE]

    def identity(self) -> BackendIdentity:
        return IDENTITY

    def create(self, instance: str, tags: Sequence[str]) -> int:
        raise errors.BackendRefused("no instance can be created")

    def add(self, instance: str, tags: Sequence[str]) -> int:
        with self._changing() as database:
            there = _tags(database, instance)
            return _job(database, instance, there.union(tags), succeeded=True)

    def delete(self, instance: str, tags: Sequence[str]) -> int:
        with self._changing() as database:
            there = _tags(database, instance)
            known = there.issuperset(tags)
            left = there.difference(tags) if known else there
            return _job(database, instance, left, succeeded=known)

    def jobs(self, numbers: Iterable[int]) -> Mapping[int, JobStatus]:
        now = time.time()
        with self._changing() as database:
            rows = {row[0]: row[1:] for row in database.execute("SELECT * FROM jobs")}
        return {each: _status(rows.get(each), now) for each in numbers}

    def horizon(self) -> int:
        with self._changing() as database:
            finished = "SELECT max(number) FROM jobs WHERE finished <= ?"
            return int(database.execute(finished, [time.time()]).fetchone()[0] or 0)

    def tags(self, instances: Iterable[str]) -> Mapping[str, frozenset[str]]:
        wanted = set(instances)
        with self._changing() as database:
            rows = list(database.execute("SELECT name, tags FROM instances"))
        return {name: frozenset(json.loads(text)) for name, text in rows if name in wanted}

    @contextlib.contextmanager
    def _changing(self) -> Iterator[sqlite3.Connection]:
        with contextlib.closing(_opened(self._path)) as database, database:
            database.execute("BEGIN IMMEDIATE")
            yield database


def make(path: pathlib.Path, instances: Iterable[str]) -> None:
    """Create the file with these instances, which have no tags."""
    with contextlib.closing(_opened(str(path))) as database:
        database.executescript(_TABLES)
        with database:
            rows = [(name, "[]") for name in instances]
            database.executemany("INSERT INTO instances VALUES (?, ?)", rows)


def environment(folder: pathlib.Path, path: pathlib.Path) -> dict[str, str]:
    """Make the backend a plugin in the folder, and return the environment of its users."""
    about = folder / "shared-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: shared\nVersion: 1.0\n")
    point = f"{IDENTITY.driver} = {__name__}:{SharedBackend.__name__}"
    (about / "entry_points.txt").write_text(f"[steelyard.tag_backends]\n{point}\n")
    found = [str(folder), str(ROOT / "tests"), os.environ.get("PYTHONPATH", "")]
    return {"PYTHONPATH": os.pathsep.join(filter(None, found)), VARIABLE: str(path)}


def _opened(path: str) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=60)


def _tags(database: sqlite3.Connection, instance: str) -> set[str]:
    row = database.execute("SELECT tags FROM instances WHERE name = ?", [instance]).fetchone()
    if row is None:
        raise errors.BackendRefused(f"no instance {instance!r}")
    return set(json.loads(row[0]))


def _job(
    database: sqlite3.Connection, instance: str, tags: Iterable[str], *, succeeded: bool
) -> int:
    database.execute(
        "UPDATE instances SET tags = ? WHERE name = ?", [json.dumps(sorted(tags)), instance]
    )
    job = database.execute(
        "INSERT INTO jobs (finished, succeeded) VALUES (?, ?)", [time.time() + _TAKES, succeeded]
    )
    return int(job.lastrowid or 0)


def _status(row: tuple[float, int] | None, now: float) -> JobStatus:
    if row is None:
        return JobStatus.LOST
    finished, succeeded = row
    if finished > now:
        return JobStatus.RUNNING
    return JobStatus.SUCCEEDED if succeeded else JobStatus.FAILED
