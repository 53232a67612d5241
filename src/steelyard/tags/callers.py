"""Who calls, as what stands in front of the HTTP API says.

Only two are believed: keystonemiddleware in the same process, and proxies that the configuration
names. A client can send any header, but neither of those can it be.
"""

import dataclasses
import ipaddress
import re
from collections.abc import Iterable, Mapping
from typing import Any

from steelyard import conf as options
from steelyard import errors
from steelyard.tags.names import Owner
from steelyard.tags.service import Caller

PROJECT = "X-Project-Id"
USER = "X-User-Id"
OWNER = "X-Tag-Owner"

# What keystonemiddleware leaves in the environment. Headers of clients all begin with HTTP_ there.
_TOKEN_AUTH = "keystone.token_auth"  # noqa: S105  (the name of a key)
_STATUS = "X-Identity-Status"

_LONGEST = 255
# No comma: servers join headers that come twice with it, and one of the two may be the client's.
_ID = re.compile(r"[!-+\--~]+")

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


@dataclasses.dataclass(frozen=True, slots=True)
class Trust:
    """The proxies that say who calls, and those of them that may call as the system."""

    proxies: tuple[Network, ...] = ()
    system: tuple[Network, ...] = ()

    @classmethod
    def parse(cls, proxies: Iterable[str], system: Iterable[str] = ()) -> "Trust":
        """From the texts of the options; BadRequest if one is no address and no network."""
        trust = cls(
            tuple(_network("trusted_proxies", text) for text in proxies),
            tuple(_network("system_proxies", text) for text in system),
        )
        for each in trust.system:
            if not any(_within(each, network) for network in trust.proxies):
                raise errors.BadRequest(
                    f"system_proxies in [{options.TAGS_GROUP}] has {str(each)!r}, which is not "
                    f"within trusted_proxies: name it there too"
                )
        return trust


def caller(environ: Mapping[str, Any], trust: Trust) -> Caller:
    """Who calls; Unauthorized if nobody that is believed says so."""
    if _TOKEN_AUTH in environ:
        return _checked_by_keystone(environ)
    address = _address(environ)
    if not _listed(address, trust.proxies):
        raise errors.Unauthorized(
            f"nobody vouches for who is calling: there is no keystonemiddleware in front, and "
            f"{environ.get('REMOTE_ADDR', '')!a:.100} is no trusted proxy"
        )
    return _caller(environ, _owner(environ, may_be_system=_listed(address, trust.system)))


def _checked_by_keystone(environ: Mapping[str, Any]) -> Caller:
    if _header(environ, _STATUS) != "Confirmed":
        raise errors.Unauthorized("the token is missing or not valid")
    # Nothing that comes with a token makes anybody the system.
    return _caller(environ, _owner(environ, may_be_system=False))


def _caller(environ: Mapping[str, Any], owner: Owner) -> Caller:
    return Caller(_id(environ, PROJECT), _id(environ, USER), owner)


def _owner(environ: Mapping[str, Any], *, may_be_system: bool) -> Owner:
    said = _header(environ, OWNER)
    if said is None or said == Owner.USER:
        return Owner.USER
    if said == Owner.SYSTEM and may_be_system:
        return Owner.SYSTEM
    raise errors.Unauthorized(
        f"{OWNER} is {said!a:.100}, which is not for everybody to say: leave it out"
    )


def _id(environ: Mapping[str, Any], name: str) -> str:
    value = _header(environ, name)
    if not value:
        raise errors.Unauthorized(f"who is calling is not said: {name} is missing or empty")
    if len(value) > _LONGEST or not _ID.fullmatch(value):
        raise errors.Unauthorized(
            f"{name} is {value!a:.100}; it is given once, as 1 to {_LONGEST} characters of ASCII "
            f"without spaces and commas"
        )
    return value


def _header(environ: Mapping[str, Any], name: str) -> str | None:
    value: str | None = environ.get(f"HTTP_{name.upper().replace('-', '_')}")
    return value


def _network(option: str, text: str) -> Network:
    try:
        return ipaddress.ip_network(text)
    except ValueError as error:
        raise errors.BadRequest(
            f"{option} in [{options.TAGS_GROUP}]: {error}; write an address such as 10.1.2.3, or a "
            f"network such as 10.1.0.0/16"
        ) from error


def _within(one: Network, other: Network) -> bool:
    return (
        one.version == other.version
        and int(other.network_address) <= int(one.network_address)
        and int(one.broadcast_address) <= int(other.broadcast_address)
    )


def _address(environ: Mapping[str, Any]) -> Network | None:
    """Where the request comes from, as a network of one; None if that is no address."""
    try:
        address = ipaddress.ip_address(environ.get("REMOTE_ADDR", ""))
    except ValueError:
        return None
    # A socket for both protocols has the addresses of the older one inside those of the newer.
    mapped = getattr(address, "ipv4_mapped", None)
    return ipaddress.ip_network(address if mapped is None else mapped)


def _listed(address: Network | None, networks: Iterable[Network]) -> bool:
    return address is not None and any(_within(address, network) for network in networks)
