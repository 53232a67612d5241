"""Filters and weighers for OpenStack schedulers, with a reason for every decision."""

__version__ = "0.1.0"
