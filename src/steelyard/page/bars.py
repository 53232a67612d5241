"""Weights as bars with one segment per weigher, on the same scale for all hosts."""

import math
from collections.abc import Sequence

from steelyard.page.matrix import Judged
from steelyard.page.view import BAR_WIDTH, Contribution, ShownWeigher
from steelyard.scheduler.decision import Weight

STYLES = 8
"""The number of colours and patterns. With more weighers, some share one."""

# The least width of a segment, so that a small contribution stays visible.
_LEAST_WIDTH = 1.0


class Bars:
    """The scale of all hosts' bars. Positive segments lie right of the axis, negative ones left."""

    def __init__(self, hosts: Sequence[Judged], weighers: Sequence[str]) -> None:
        weighed = [host.weights for host in hosts if host.fits]
        most = max((_sum(weights, 1) for weights in weighed), default=0.0)
        least = max((_sum(weights, -1) for weights in weighed), default=0.0)
        self._unit = BAR_WIDTH / (most + least) if most + least else 0.0
        self.axis = least * self._unit
        used = {each.weigher for weights in weighed for each in weights if each.multiplied}
        self.weighers = tuple(
            ShownWeigher(name, number % STYLES, name in used)
            for number, name in enumerate(weighers)
        )

    def widths(self, host: Judged) -> tuple[float, ...]:
        """Return the widths of the segments, in the order of the weighers."""
        widths = [
            math.copysign(max(abs(width), _LEAST_WIDTH), width) if width else 0.0
            for width in (each.multiplied * self._unit for each in host.weights)
        ]
        while widths and not widths[-1]:
            widths.pop()
        return tuple(widths)


def _sum(weights: Sequence[Weight], sign: int) -> float:
    """Return the absolute sum of the weights with this sign."""
    return sum(max(sign * each.multiplied, 0.0) for each in weights)


def contributions(host: Judged) -> tuple[Contribution, ...]:
    return tuple(
        Contribution(each.weigher, each.raw, each.normalised, each.multiplier, each.multiplied)
        for each in host.weights
        if each.raw or each.multiplied
    )
