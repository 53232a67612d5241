"""Errors of databases, translated into errors of steelyard."""

import sqlite3
from typing import Any

import pytest
import sqlalchemy as sa

from steelyard import errors
from steelyard.sql import database_errors

KEY = "fk_consumers_type"


class Diagnosis:
    def __init__(self, constraint_name: str) -> None:
        self.constraint_name = constraint_name


class PostgresError(Exception):
    """An error as psycopg raises it."""

    sqlstate = "23503"

    def __init__(self, text: str, constraint_name: str) -> None:
        super().__init__(text)
        self.diag = Diagnosis(constraint_name)


def integrity_error(original: BaseException) -> sa.exc.IntegrityError:
    return sa.exc.IntegrityError("INSERT", None, original)


@pytest.mark.parametrize(
    ("original", "violated"),
    [
        (PostgresError("a translated text", KEY), True),
        (PostgresError(f"Key (name)=({KEY}) is not present in table", "fk_other"), False),
        (Exception(1452, f"a foreign key constraint fails (`d`.`t`, CONSTRAINT `{KEY}`"), True),
        (Exception(1452, f"a foreign key constraint fails (`d`.`t`, CONSTRAINT `{KEY}_2`"), False),
        (Exception(1062, f"Duplicate entry '`{KEY}`' for key"), False),
    ],
)
def test_violates_compares_the_name_of_the_foreign_key(original: Any, violated: bool) -> None:
    assert database_errors.violates(integrity_error(original), KEY) is violated


def test_missing_table_in_sqlite_error_names_the_upgrade_command() -> None:
    engine = sa.create_engine("sqlite://")
    with (
        pytest.raises(errors.ServiceError, match="no such table: t; run 'steelyard db upgrade'"),
        database_errors.translated(),
        engine.connect() as connection,
    ):
        connection.exec_driver_sql("SELECT * FROM t")
    engine.dispose()


def test_other_sqlite_error_with_similar_text_has_no_advice() -> None:
    class Busy(sqlite3.OperationalError):
        sqlite_errorname = "SQLITE_IOERR"

    with pytest.raises(errors.ServiceError) as caught, database_errors.translated():
        raise sa.exc.OperationalError("SELECT", None, Busy("no such device"))
    assert str(caught.value) == "database error: no such device"
