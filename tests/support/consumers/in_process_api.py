"""The HTTP API of consumers without a network."""

from typing import Any

from oslo_config import cfg

from steelyard import conf as options
from steelyard.consumers import ConsumerStore
from steelyard.consumers.http.api import make_application
from support.web.wsgi_client import Header, WsgiClient

PROXY, STRANGER = "10.0.0.1", "192.0.2.1"
CONSUMER = "71921e4e-1629-4c5b-bf8d-338d915d2ef3"
PROVIDER = "e10927c4-8bc9-465d-ac60-d2f79f7e4a00"
MOST = 4096
"""The size limit of a body."""


def configuration(**values: Any) -> cfg.ConfigOpts:
    """Return options of consumers with a trusted proxy and a small limit of bodies."""
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
    options.register_consumers(conf)
    for name, value in {"trusted_proxies": [PROXY], "max_body": MOST, **values}.items():
        conf.set_override(name, value, group=options.CONSUMERS_GROUP)
    return conf


def headers(project: str = "p", roles: str = "admin") -> tuple[Header, ...]:
    return (("X-Project-Id", project), ("X-User-Id", "u"), ("X-Roles", roles))


class Client(WsgiClient):
    """A client as an administrator of the project p, through a proxy."""

    def __init__(self, store: ConsumerStore, *, address: str = PROXY) -> None:
        super().__init__(make_application(store, configuration()), headers(), address)
