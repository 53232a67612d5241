"""The embedded filter scheduler, for clouds from a file or from values."""

from steelyard.cloud.host_state import Request
from steelyard.scheduler.decision import Decision
from steelyard.scheduler.pipeline import FilterScheduler, NoValidHost, Selection

__all__ = ["Decision", "FilterScheduler", "NoValidHost", "Request", "Selection"]
