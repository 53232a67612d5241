"""Weighers, which rank the hosts that fit a request."""
