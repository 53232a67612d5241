"""Callers of the HTTP API of tags, and the owners of the tags that they access."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from steelyard import errors
from steelyard.tags.names import Owner
from steelyard.tags.service import Caller
from steelyard.web.callers import Trust, header, identity

OWNER = "X-Tag-Owner"


@dataclasses.dataclass(frozen=True, slots=True)
class RequestCaller(Caller):
    """The caller of a request, with its roles in lower case."""

    roles: frozenset[str] = frozenset()


def caller(environ: Mapping[str, Any], trust: Trust) -> RequestCaller:
    """Return the caller.

    Raises Unauthorized if no trusted source names one, and RefusedRequest for a token without a
    project.
    """
    found = identity(environ, trust)
    owner = _owner(environ, may_be_system=found.may_be_system)
    return RequestCaller(found.project, found.user, owner, found.roles)


def _owner(environ: Mapping[str, Any], *, may_be_system: bool) -> Owner:
    owner = header(environ, OWNER)
    if owner is None or owner == Owner.USER:
        return Owner.USER
    if owner == Owner.SYSTEM and may_be_system:
        return Owner.SYSTEM
    raise errors.Unauthorized(
        f"invalid {OWNER} {owner!a:.100}: expected 'user', or 'system' from a system proxy"
    )
