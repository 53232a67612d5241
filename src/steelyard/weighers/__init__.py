"""Weighers: each says how good a host is for a request, compared with the others."""
