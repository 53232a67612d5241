"""Queries for resource providers by traits, as values: built, parsed, printed and answered."""

from steelyard.traits.query import TraitQuery
from steelyard.traits.requests import CandidatesRequest, ProvidersRequest, RequestGroup

__all__ = ["CandidatesRequest", "ProvidersRequest", "RequestGroup", "TraitQuery"]
