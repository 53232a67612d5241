"""The database of instance tags: its tables, its store, and the record of its backend."""
