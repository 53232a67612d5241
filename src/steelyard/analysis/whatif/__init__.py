"""The consequences of changes to a cloud."""
