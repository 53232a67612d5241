"""Helpers for text: spelling, wording, escapes, UUIDs, strict JSON and atomic file writes."""
