"""Filters: each decides, for one host, whether it may take a request."""
