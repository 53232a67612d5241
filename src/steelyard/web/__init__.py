"""The common parts of HTTP services: callers, bodies of errors, listening and the server."""
