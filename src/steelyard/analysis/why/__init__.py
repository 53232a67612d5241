"""Reasons why a server was not placed: a repair of Nova's request, and Nova's filters."""
