"""What a check has found."""

import dataclasses
import enum

from steelyard.severity import Severity


class Check(enum.StrEnum):
    """What is looked for."""

    MALFORMED_VALUE = "malformed-value"
    DOUBTFUL_VALUE = "doubtful-value"
    UNRECOGNISED_FLAG = "unrecognised-flag"
    MISPLACED_FLAG = "misplaced-flag"
    EXPRESSION_NOT_FORCED = "expression-not-forced"
    SCOPE_NOT_FORCED = "scope-not-forced"
    KEY = "near-miss-key"
    VALUE = "near-miss-value"
    TRAIT = "near-miss-trait"
    NOBODY_OFFERS = "nobody-offers"
    FITS_NO_HOST = "fits-no-host"
    NO_ROOM = "no-room"
    UNREACHABLE_HOST = "unreachable-host"
    CONTRADICTORY_AGGREGATES = "contradictory-aggregates"
    CONTRADICTORY_TRAITS = "contradictory-traits"
    MALFORMED_REQUEST = "malformed-request"
    KEY_NOVA_READS = "key-nova-reads"
    REFUSED_BY_NOVA = "refused-by-nova"
    ACCEPTED_IN_VAIN = "accepted-in-vain"


@dataclasses.dataclass(frozen=True, slots=True)
class Finding:
    """One thing that will bite, where it is, why it will, and what to do about it.

    ``check`` and ``where`` together say which finding this is, from one day to the next.
    """

    severity: Severity
    check: Check
    where: str
    why: str
    remedy: str


def of_aggregate(name: str, key: str | None = None) -> str:
    """The place in an aggregate: the whole of it, or one key of its metadata."""
    return f"aggregate {name!r}" + ("" if key is None else f", key {key!r}")


def of_flavor(name: str, key: str | None = None) -> str:
    """The place in a flavor: the whole of it, or one of its extra specs."""
    return f"flavor {name!r}" + ("" if key is None else f", extra spec {key!r}")
