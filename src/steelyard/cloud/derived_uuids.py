"""UUIDs that are derived from names, for records of cloud files without a UUID."""

import uuid

_NAMESPACE = uuid.UUID("5d9e5d2f-93b5-4c1b-9c4f-0b8a7c3c1a51")

_VERSION = "5"


def uuid_of(name: str) -> str:
    """Return the UUID of a host, group, server or provider that has none in the file.

    It depends only on the name, so it does not change between loads of the file.
    """
    return str(uuid.uuid5(_NAMESPACE, name))


def is_derived(text: str, name: str) -> bool:
    """Return whether this is the UUID derived from the name."""
    # The version of random UUIDs, such as Nova's, is 4; comparing it first saves most hashing.
    return text[14:15] == _VERSION and text == uuid_of(name)
