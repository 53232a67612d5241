"""The HTTP API of tags, its OpenAPI description, and its client."""
