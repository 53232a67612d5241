"""The HTTP API of consumers and its OpenAPI description."""
