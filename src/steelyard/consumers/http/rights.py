"""The roles that requests to the HTTP API need: those of Placement's default policy."""

from steelyard.web.callers import Identity
from steelyard.web.error_answers import HttpFault, RefusedRequest

ADMINISTRATORS = frozenset({"admin", "service"})
"""Roles that may read and write the allocations and usages of all projects."""

READER = "reader"
"""The role that may read the usages of its own project. In Keystone, ``member`` implies it."""


def require_administrator(caller: Identity) -> None:
    """Refuse the request, with the status 403, unless an administrator or a service sent it."""
    if not _administers(caller):
        raise _forbidden(f"expected one of the roles {_named(ADMINISTRATORS)}")


def require_reader(caller: Identity, project: str | None) -> None:
    """Refuse the request, with the status 403, unless the caller may read the project's usages."""
    if not _administers(caller) and not (READER in caller.roles and caller.project == project):
        raise _forbidden(
            f"expected the role {READER} in the project of the query, or one of the roles "
            f"{_named(ADMINISTRATORS)}"
        )


def _administers(caller: Identity) -> bool:
    return not caller.roles.isdisjoint(ADMINISTRATORS)


def _named(roles: frozenset[str]) -> str:
    return " and ".join(sorted(roles))


def _forbidden(expected: str) -> RefusedRequest:
    return RefusedRequest(HttpFault(403, f"the roles of the caller do not suffice: {expected}"))
