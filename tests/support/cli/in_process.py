"""The result of a command that ran in the process of the test."""

from collections.abc import Callable
from typing import NamedTuple


class Ran(NamedTuple):
    """The exit status of a command, its output, and its errors and messages."""

    status: int
    out: str
    err: str


Run = Callable[..., Ran]
