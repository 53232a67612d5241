"""Filters, which accept or reject hosts for a request."""
