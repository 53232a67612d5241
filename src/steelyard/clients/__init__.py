"""Clients of other services over HTTP: sessions, Placement and Nova."""

from steelyard.clients.placement import Placement
from steelyard.clients.queries import ask

__all__ = ["Placement", "ask"]
