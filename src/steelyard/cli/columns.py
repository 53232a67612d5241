"""Cells that read well in a table, and are structures in JSON and YAML."""

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cliff import columns

from steelyard.scheduler import Weight

# Generic for type checkers; when it runs, only in newer cliffs than the oldest that is supported.
if TYPE_CHECKING:
    _Column = columns.FormattableColumn[Any]
else:
    _Column = columns.FormattableColumn


class Number(_Column):
    """A weight, short for people and exact for programs."""

    def human_readable(self) -> str:
        return "" if self._value is None else f"{self._value:.4g}"


class Place(_Column):
    """The place of a plugin in the order of those that are enabled."""

    def human_readable(self) -> str:
        return "no" if self._value is None else str(self._value)


class Names(_Column):
    def human_readable(self) -> str:
        return ", ".join(self._value)


class Many(_Column):
    """Names that may be very many: their number, and the first of them."""

    _SHOWN = 3

    def human_readable(self) -> str:
        more = ", …" if len(self._value) > self._SHOWN else ""
        return f"{len(self._value)}: {', '.join(self._value[: self._SHOWN])}{more}"


class Reasons(_Column):
    """Why each of some hosts was rejected."""

    def human_readable(self) -> str:
        return "\n".join(f"{host}: {'; '.join(why)}" for host, why in self._value.items())

    def machine_readable(self) -> Any:
        return dict(self._value)


class Rules(_Column):
    """The rules of a server group."""

    def human_readable(self) -> str:
        return ", ".join(f"{name}={value}" for name, value in self._value.items())

    def machine_readable(self) -> Any:
        return dict(self._value)


class Amounts(_Column):
    """How much of each resource class."""

    def human_readable(self) -> str:
        return ", ".join(f"{amount} {name}" for name, amount in self._value.items())

    def machine_readable(self) -> Any:
        return dict(self._value)


class Weights(_Column):
    def human_readable(self) -> str:
        return _weights(self._value)

    def machine_readable(self) -> Any:
        return [_weight_fields(weight) for weight in self._value]


class Causes(_Column):
    def human_readable(self) -> str:
        return "\n".join(f"{cause.count} by {cause.filter}: {cause.cause}" for cause in self._value)

    def machine_readable(self) -> Any:
        return [dataclasses.asdict(cause) for cause in self._value]


class Why(_Column):
    """Why a host was rejected, or what it weighs."""

    def human_readable(self) -> str:
        if self._value.fits:
            return _weights(self._value.weights)
        return f"{self._value.rejected_by}: {self._value.reason}"

    def machine_readable(self) -> Any:
        return {
            "passed": list(self._value.passed),
            "rejected_by": self._value.rejected_by or None,
            "reason": self._value.reason or None,
            "weights": [_weight_fields(weight) for weight in self._value.weights],
        }


def _weights(weights: Sequence[Weight]) -> str:
    """A line for each weigher that has something to say about the host."""
    return "\n".join(_weight(weight) for weight in weights if weight.raw or weight.multiplied)


def _weight(weight: Weight) -> str:
    return (
        f"{weight.weigher}: {weight.raw:.6g}, normalised {weight.normalised:.4g}, "
        f"times {weight.multiplier:.4g} is {weight.multiplied:.4g}"
    )


def _weight_fields(weight: Weight) -> dict[str, Any]:
    return {**dataclasses.asdict(weight), "multiplied": weight.multiplied}
