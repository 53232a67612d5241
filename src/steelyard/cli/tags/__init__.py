"""Commands on instance tags."""
