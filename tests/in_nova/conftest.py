"""The import that comes before all others in tests with Nova."""

# Import Nova's functional tests before eventlet: before Nova 34, they patch the standard library.
from support.nova import clouds  # noqa: F401
