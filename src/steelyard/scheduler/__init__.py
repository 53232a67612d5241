"""The embedded filter scheduler, over a cloud described in a file or in values."""

from steelyard.scheduler.cloud import Aggregate, Cloud, Flavor, Host, Server
from steelyard.scheduler.decision import Cause, Decision, HostExplanation, Weight
from steelyard.scheduler.host_state import HostState, Request
from steelyard.scheduler.pipeline import FilterScheduler, NoValidHost, Selection

__all__ = [
    "Aggregate",
    "Cause",
    "Cloud",
    "Decision",
    "FilterScheduler",
    "Flavor",
    "Host",
    "HostExplanation",
    "HostState",
    "NoValidHost",
    "Request",
    "Selection",
    "Server",
    "Weight",
]
