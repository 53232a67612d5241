"""The stage at which a request failed, from the record of the server."""

import enum
import re

from steelyard.analysis.why.facts import ServerRecord

_NO_VALID_HOST = re.compile(r"No valid host was found\.?\s*(?P<why>.*)", re.DOTALL)
_NOT_ENOUGH = "There are not enough hosts available."
_SCHEDULING = "conductor_schedule_and_build_instances"
_BUILDING = "compute_"


class Stage(enum.StrEnum):
    """The stages of a request for a server, in their order."""

    PLACEMENT = "placement"
    """Placement, or a request filter of Nova before it, left no candidate."""
    FILTERS = "filters"
    """The filters left no host, or not enough of them, or the scheduler failed."""
    BUILD = "build"
    """A host was chosen, and the server could not be built there, or failed later."""
    FITS_NOW = "fits-now"
    """The request succeeded, or would succeed now."""


def lacked_hosts(fault: str) -> bool:
    """Return whether Nova recorded that it found no host."""
    return _NO_VALID_HOST.match(fault) is not None


def of_record(record: ServerRecord) -> Stage | None:
    """Return the stage at which Nova recorded a fault; None without a fault."""
    if not record.fault:
        return None
    found = _NO_VALID_HOST.match(record.fault)
    if found is not None:
        return Stage.FILTERS if found["why"].startswith(_NOT_ENOUGH) else Stage.PLACEMENT
    names = [each.event for each in record.events]
    was_built = bool(record.host) or any(name.startswith(_BUILDING) for name in names)
    # Nova records any error of the scheduler as the fault of a server on no host.
    return Stage.FILTERS if _SCHEDULING in names and not was_built else Stage.BUILD
