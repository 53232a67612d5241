"""The HTTP API of tags without a network."""

import urllib.parse
from collections.abc import Iterable, Sequence
from typing import Any

from oslo_config import cfg

from steelyard import conf as options
from steelyard.tags import TagService, TagStore
from steelyard.tags.backends.base import TagBackend
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.names import DEFAULT_PREFIXES, Clashes
from steelyard.tags.states.values import Instance
from support.tags.databases import upgrade
from support.web.wsgi_client import Header, WsgiClient

PROXY, SYSTEM_PROXY, STRANGER = "10.0.0.1", "10.0.1.1", "192.0.2.1"
MINE, THEIRS = "mine", "theirs"
"""The ids of two servers, of the projects p and q."""
ALL = f"/servers/{MINE}/tags"
ROUTES = [
    ("GET", ""),
    ("PUT", ""),
    ("DELETE", ""),
    ("GET", "/a"),
    ("PUT", "/a"),
    ("DELETE", "/a"),
    ("HEAD", ""),
    ("HEAD", "/a"),
]
"""Each method with the end of its path, after that of all tags of a server."""

P: tuple[Header, ...] = (("X-Project-Id", "p"), ("X-User-Id", "u"))
Q: tuple[Header, ...] = (("X-Project-Id", "q"), ("X-User-Id", "v"))
SYSTEM: Header = ("X-Tag-Owner", "system")


def configuration(**values: Any) -> cfg.ConfigOpts:
    """Return options of tags with a trusted network and a system proxy."""
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
    options.register_tags(conf)
    defaults = {"trusted_proxies": ["10.0.0.0/16"], "system_proxies": [SYSTEM_PROXY]}
    for name, value in {**defaults, **values}.items():
        conf.set_override(name, value, group=options.TAGS_GROUP)
    return conf


def service(url: str, backend: TagBackend | None = None, clashes: str = "") -> TagService:
    """Return a service with the two servers, in an upgraded database."""
    if backend is None:
        backend = MemoryBackend()
    store = TagStore(url)
    upgrade(store, backend.identity())
    if isinstance(backend, MemoryBackend):
        backend.adopt({"vm-mine": (), "vm-theirs": ()})
    made = TagService(store, backend, DEFAULT_PREFIXES, Clashes.parse([clashes] if clashes else []))
    made.register(Instance(MINE, "vm-mine", "p", "u"))
    made.register(Instance(THEIRS, "vm-theirs", "q", "v"))
    return made


class Client(WsgiClient):
    """A client as the project p, through a proxy, unless other headers and address are given."""

    def __init__(
        self,
        application: Any,
        headers: Iterable[Header] = P,
        address: str = PROXY,
        *,
        validated: bool = True,
    ) -> None:
        super().__init__(application, headers, address, validated=validated)


def there(ask: Client) -> list[str]:
    """Return the names of the tags of the server MINE, sorted."""
    found = ask("GET", ALL).json
    assert list(found["statuses"]) == found["tags"]
    return sorted(found["tags"])


def quoted(name: str) -> str:
    """Return the path of a tag of the server MINE."""
    return f"{ALL}/{urllib.parse.quote(name, safe='')}"


def active(service: TagService, ask: Client, *names: str) -> None:
    """Replace the tags of the server MINE, and let the backend finish that."""
    assert ask("PUT", ALL, {"tags": names}).status == 200
    service.jobs.poll()


class Troubled(MemoryBackend):
    """A backend that fails with a given error."""

    trouble: Exception | None = None

    def _submit(self, *job: Any) -> int:
        if self.trouble is not None:
            raise self.trouble
        return super()._submit(*job)

    def batches(self, instance: str, tags: Sequence[str]) -> list[Sequence[str]]:
        if isinstance(self.trouble, AssertionError):
            raise self.trouble
        return super().batches(instance, tags)
