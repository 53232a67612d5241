"""Sums of weights for many hosts, with numpy for large clouds if it is installed.

Both implementations do the same operations on the same numbers, so their results are equal.
"""

import functools
import itertools
import math
import operator
from array import array
from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from steelyard import errors, extras

# Below this size, importing numpy costs more time than it saves.
LARGE = 1_000


class Arithmetic(Protocol):
    """Operations on columns of numbers."""

    def indices(self, flags: bytearray) -> Sequence[int]:
        """Return the indices of the flags that are set."""

    def column(self, values: Sequence[float]) -> Any:
        """Return the values as a column."""

    def zeros(self, count: int) -> Any:
        """Return a column of zeros."""

    def selected(self, values: "array[float]", indices: Any) -> Any:
        """Return the values with these indices as a column."""

    def numbers(self, values: "array[int]", indices: Any) -> Any:
        """Return the values with these indices as a column of integers."""

    def distinct(self, numbers: Any, count: int) -> tuple[list[int], Any]:
        """Return the position of one of each number, and the entry in that list for each number.

        The numbers are from 0 to ``count - 1``. The positions are in ascending order.
        """

    def taken(self, column: Any, entries: Any) -> Any:
        """Return the values of the column at these entries."""

    def ends(self, column: Any) -> tuple[float, float]:
        """Return the lowest and the highest value."""

    def normalised(self, column: Any, low: float, high: float) -> Any:
        """Return the values scaled so that ``low`` is 0 and ``high`` is 1."""

    def product(self, one: Any, other: Any) -> Any:
        """Return the products of the values."""

    def sum(self, one: Any, other: Any) -> Any:
        """Return the sums of the values."""

    def total(self, column: Any) -> float:
        """Return the sum of all values."""

    def groups(self, column: Any) -> Iterator[list[int]]:
        """Yield the positions of equal values, the highest value first."""


class Lists:
    """The operations on lists."""

    def indices(self, flags: bytearray) -> list[int]:
        return list(itertools.compress(itertools.count(), flags))

    def column(self, values: Sequence[float]) -> list[float]:
        return list(values)

    def zeros(self, count: int) -> list[float]:
        return [0.0] * count

    def selected(self, values: "array[float]", indices: Sequence[int]) -> list[float]:
        return list(map(values.__getitem__, indices))

    def numbers(self, values: "array[int]", indices: Sequence[int]) -> list[int]:
        return list(map(values.__getitem__, indices))

    def distinct(self, numbers: list[int], count: int) -> tuple[list[int], list[int]]:
        positions = list({number: position for position, number in enumerate(numbers)}.values())
        positions.sort()
        entries = {numbers[position]: entry for entry, position in enumerate(positions)}
        return positions, list(map(entries.__getitem__, numbers))

    def taken(self, column: list[float], entries: list[int]) -> list[float]:
        return list(map(column.__getitem__, entries))

    def ends(self, column: list[float]) -> tuple[float, float]:
        return min(column), max(column)

    def normalised(self, column: list[float], low: float, high: float) -> list[float]:
        span = high - low
        return [(value - low) / span for value in column]

    def product(self, one: list[float], other: list[float]) -> list[float]:
        return list(map(operator.mul, one, other))

    def sum(self, one: list[float], other: list[float]) -> list[float]:
        return list(map(operator.add, one, other))

    def total(self, column: list[float]) -> float:
        return math.fsum(column)

    def groups(self, column: list[float]) -> Iterator[list[int]]:
        best = max(column)
        yield [position for position, value in enumerate(column) if value == best]
        order = sorted(range(len(column)), key=column.__getitem__, reverse=True)
        for value, positions in itertools.groupby(order, key=column.__getitem__):
            if value != best:
                yield list(positions)


class Arrays:
    """The operations on numpy's arrays."""

    def __init__(self, numpy: Any) -> None:
        self._numpy = numpy

    def indices(self, flags: bytearray) -> Sequence[int]:
        found: Sequence[int] = self._numpy.flatnonzero(self._numpy.frombuffer(flags, dtype="?"))
        return found

    def column(self, values: Sequence[float]) -> Any:
        return self._numpy.array(values, dtype="d")

    def zeros(self, count: int) -> Any:
        return self._numpy.zeros(count)

    def selected(self, values: "array[float]", indices: Any) -> Any:
        return self._numpy.frombuffer(values, dtype="d")[indices]

    def numbers(self, values: "array[int]", indices: Any) -> Any:
        return self._numpy.frombuffer(values, dtype="q")[indices]

    def distinct(self, numbers: Any, count: int) -> tuple[list[int], Any]:
        position_of = self._numpy.zeros(count, dtype="q")
        position_of[numbers] = self._numpy.arange(len(numbers))
        positions = self._numpy.flatnonzero(
            position_of[numbers] == self._numpy.arange(len(numbers))
        )
        entries = self._numpy.zeros(count, dtype="q")
        entries[numbers[positions]] = self._numpy.arange(len(positions))
        return positions.tolist(), entries[numbers]

    def taken(self, column: Any, entries: Any) -> Any:
        return column[entries]

    def ends(self, column: Any) -> tuple[float, float]:
        return float(column.min()), float(column.max())

    def normalised(self, column: Any, low: float, high: float) -> Any:
        with self._numpy.errstate(all="ignore"):  # as with Python's numbers
            return (column - low) / (high - low)

    def product(self, one: Any, other: Any) -> Any:
        with self._numpy.errstate(all="ignore"):
            return one * other

    def sum(self, one: Any, other: Any) -> Any:
        with self._numpy.errstate(all="ignore"):
            return one + other

    def total(self, column: Any) -> float:
        return float(column.sum())

    def groups(self, column: Any) -> Iterator[list[int]]:
        best = column.max()
        yield self._numpy.flatnonzero(column == best).tolist()
        order = self._numpy.argsort(-column, kind="stable")
        for value, positions in itertools.groupby(order.tolist(), key=column.__getitem__):
            if value != best:
                yield list(positions)


def for_size(size: int) -> Arithmetic:
    """Return the arithmetic for columns of about this size."""
    return _best() if size >= LARGE else Lists()


@functools.cache
def _best() -> Arithmetic:
    try:
        with extras.required("cli", "fast placement"):
            import numpy  # noqa: PLC0415  (an extra, and slow to import)
    except errors.MissingExtra:
        return Lists()
    return Arrays(numpy)
