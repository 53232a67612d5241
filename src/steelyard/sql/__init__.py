"""Databases: engines, transactions and retries, schema changes, errors."""
