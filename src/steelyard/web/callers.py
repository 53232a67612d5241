"""The identity of callers of HTTP services.

Only two sources are trusted: keystonemiddleware in the same process, and the proxies that the
configuration names. A client can send any header, but it cannot pass for one of these.
"""

import dataclasses
import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Any

from steelyard import errors
from steelyard.web.error_answers import HttpFault, RefusedRequest

PROJECT = "X-Project-Id"
USER = "X-User-Id"
ROLES = "X-Roles"

# keystonemiddleware sets this key of the WSGI environment. Clients cannot: keys of their headers
# begin with HTTP_.
_TOKEN_AUTH = "keystone.token_auth"  # noqa: S105  (the name of a key)
_STATUS = "X-Identity-Status"

_LONGEST = 255
# No comma: servers join repeated headers with commas, so a client could add to the proxy's value.
_ID = re.compile(r"[!-+\--~]+")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclasses.dataclass(frozen=True, slots=True)
class Trust:
    """The proxies that may name the caller, and those of them that may act as the system."""

    proxies: tuple[Network, ...] = ()
    system: tuple[Network, ...] = ()

    @classmethod
    def parse(
        cls,
        proxies: Iterable[str],
        system: Iterable[str] = (),
        *,
        names: tuple[str, str] = ("proxies", "system"),
    ) -> "Trust":
        """Return the trust in these addresses and networks; raise BadRequest if one is invalid.

        Each of ``system`` must be within one of ``proxies``. ``names`` are the names of the two
        lists in errors, for example those of their options.
        """
        trust = cls(
            tuple(_network(names[0], text) for text in proxies),
            tuple(_network(names[1], text) for text in system),
        )
        for each in trust.system:
            if not any(_within(each, network) for network in trust.proxies):
                raise errors.BadRequest(
                    f"{names[1]}: {str(each)!r} is not within {names[0]}; add it there too",
                    str(each),
                )
        return trust


@dataclasses.dataclass(frozen=True, slots=True)
class Identity:
    """The project, the user and the roles of a request, and whether it may act as the system.

    Roles are in lower case, since their case does not matter.
    """

    project: str
    user: str
    roles: frozenset[str]
    may_be_system: bool


def identity(environ: Mapping[str, Any], trust: Trust) -> Identity:
    """Return the identity of the caller.

    Raises Unauthorized if neither keystonemiddleware nor a trusted proxy gives a valid one, and
    RefusedRequest with the status 403 for a valid token without a project.
    """
    if _TOKEN_AUTH in environ:
        if header(environ, _STATUS) != "Confirmed":
            raise errors.Unauthorized("the token is missing or invalid")
        if not header(environ, PROJECT):
            raise RefusedRequest(
                HttpFault(403, "the token has no project: send a token with a project as its scope")
            )
        # A caller with a token never acts as the system.
        may_be_system = False
    else:
        address = _address(environ)
        if not _listed(address, trust.proxies):
            raise errors.Unauthorized(
                f"unidentified caller: no keystonemiddleware in front, and "
                f"{environ.get('REMOTE_ADDR', '')!a:.100} is not a trusted proxy"
            )
        may_be_system = _listed(address, trust.system)
    project, user = _id(environ, PROJECT), _id(environ, USER)
    return Identity(project, user, _roles(environ), may_be_system)


def _roles(environ: Mapping[str, Any]) -> frozenset[str]:
    names = (header(environ, ROLES) or "").split(",")
    return frozenset(name.strip().lower() for name in names)


def _id(environ: Mapping[str, Any], name: str) -> str:
    value = header(environ, name)
    if not value:
        raise errors.Unauthorized(f"unidentified caller: {name} is missing or empty")
    if len(value) > _LONGEST or not _ID.fullmatch(value):
        raise errors.Unauthorized(
            f"invalid {name} {value!a:.100}: expected one value of 1 to {_LONGEST} ASCII "
            f"characters without spaces and commas"
        )
    return value


def header(environ: Mapping[str, Any], name: str) -> str | None:
    """Return the value of a header, or None if it is missing."""
    value: str | None = environ.get(f"HTTP_{name.upper().replace('-', '_')}")
    return value


def _network(name: str, text: str) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise errors.BadRequest(
            f"{name}: {error}; write an address such as 10.1.2.3, or a network such as 10.1.0.0/16"
        ) from error


def _within(one: Network, other: Network) -> bool:
    return (
        one.version == other.version
        and int(other.network_address) <= int(one.network_address)
        and int(one.broadcast_address) <= int(other.broadcast_address)
    )


def _address(environ: Mapping[str, Any]) -> Network | None:
    """Return the client's address as a network of one address, or None if it is invalid."""
    try:
        address = ipaddress.ip_address(environ.get("REMOTE_ADDR", ""))
    except ValueError:
        return None
    # A socket for both protocols shows IPv4 clients with IPv4-mapped IPv6 addresses.
    mapped = getattr(address, "ipv4_mapped", None)
    return ipaddress.ip_network(address if mapped is None else mapped)


def _listed(address: Network | None, networks: Iterable[Network]) -> bool:
    return address is not None and any(_within(address, network) for network in networks)
