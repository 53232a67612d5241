"""Plugins for filter schedulers: which hosts may take a workload, which is best, and why."""

__version__ = "0.1.0"
