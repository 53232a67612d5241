"""Trait queries and requests to Placement, as immutable values."""

from steelyard.traits.candidates import Candidate
from steelyard.traits.providers import Inventory, ResourceProvider
from steelyard.traits.query import TraitQuery
from steelyard.traits.request_group import RequestGroup
from steelyard.traits.requests import CandidatesRequest, ProvidersRequest
from steelyard.traits.trees import ProviderTrees

__all__ = [
    "Candidate",
    "CandidatesRequest",
    "Inventory",
    "ProviderTrees",
    "ProvidersRequest",
    "RequestGroup",
    "ResourceProvider",
    "TraitQuery",
]
