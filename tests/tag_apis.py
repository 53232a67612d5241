"""The HTTP API of tags, asked without a network: as a WSGI server would ask it, byte for byte."""

import contextlib
import dataclasses
import io
import json
import urllib.parse
import wsgiref.util
import wsgiref.validate
from collections.abc import Iterable
from typing import Any

from oslo_config import cfg
from tag_databases import upgrade

from steelyard import conf as options
from steelyard.tags import TagService, TagStore
from steelyard.tags.backends.base import TagBackend
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.names import DEFAULT_PREFIXES, Clashes
from steelyard.tags.states import Instance

PROXY, SYSTEM_PROXY, STRANGER = "10.0.0.1", "10.0.1.1", "192.0.2.1"
MINE, THEIRS = "mine", "theirs"
"""The ids of two servers, of the projects p and q."""

Header = tuple[str, str]
P: tuple[Header, ...] = (("X-Project-Id", "p"), ("X-User-Id", "u"))
Q: tuple[Header, ...] = (("X-Project-Id", "q"), ("X-User-Id", "v"))
SYSTEM: Header = ("X-Tag-Owner", "system")


def configuration(**values: Any) -> cfg.ConfigOpts:
    """Options of tags, with two proxies that are trusted."""
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
    options.register_tags(conf)
    defaults = {"trusted_proxies": ["10.0.0.0/16"], "system_proxies": [SYSTEM_PROXY]}
    for name, value in {**defaults, **values}.items():
        conf.set_override(name, value, group=options.TAGS_GROUP)
    return conf


def service(url: str, backend: TagBackend | None = None, clashes: str = "") -> TagService:
    """A service with the two servers, on tables that are new."""
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


@dataclasses.dataclass(frozen=True)
class Answer:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        assert self.headers["content-type"] == "application/json"
        return json.loads(self.body)

    @property
    def fault(self) -> tuple[str, str]:
        """What OpenStack calls the error, and its message."""
        ((name, said),) = self.json.items()
        assert said["code"] == self.status
        return name, said["message"]


class Client:
    """Asks an application, in the name of a project, by way of a proxy.

    That both sides keep to WSGI is validated, unless what is asked does not.
    """

    def __init__(
        self,
        application: Any,
        headers: Iterable[Header] = P,
        address: str = PROXY,
        *,
        validated: bool = True,
    ) -> None:
        self._application = wsgiref.validate.validator(application) if validated else application
        self._headers = tuple(headers)
        self._address = address

    def __call__(
        self,
        method: str,
        target: str,
        said: object = None,
        *,
        headers: Iterable[Header] = (),
        body: bytes | None = None,
        chunked: bool = False,
        **environ: Any,
    ) -> Answer:
        """``said`` goes as JSON. Of ``target`` the percent signs are decoded, as servers do it."""
        data = b"" if body is None else body
        sent = [*self._headers, *headers]
        if said is not None:
            data = json.dumps(said).encode()
            sent.append(("Content-Type", "application/json"))
        path, _, query = target.partition("?")
        env: dict[str, Any] = {
            "REQUEST_METHOD": method,
            "SCRIPT_NAME": "",
            "PATH_INFO": urllib.parse.unquote_to_bytes(path).decode("latin-1"),
            "QUERY_STRING": query,
            "REMOTE_ADDR": self._address,
            "wsgi.input": io.BytesIO(data),
            **_environ(sent),
        }
        if chunked:
            env |= {"HTTP_TRANSFER_ENCODING": "chunked", "wsgi.input_terminated": True}
        elif said is not None or body is not None:
            env["CONTENT_LENGTH"] = str(len(data))
        return self._ask(env | environ)

    def _ask(self, env: dict[str, Any]) -> Answer:
        wsgiref.util.setup_testing_defaults(env)
        started: list[tuple[str, list[Header]]] = []

        def start_response(status: str, headers: list[Header], exc_info: Any = None) -> Any:
            started.append((status, headers))
            return io.BytesIO().write

        answer: Any = self._application(env, start_response)
        with contextlib.closing(answer) if hasattr(answer, "close") else contextlib.nullcontext():
            body = b"".join(answer)
        ((status, headers),) = started
        return Answer(int(status[:3]), {name.lower(): value for name, value in headers}, body)


def _environ(headers: Iterable[Header]) -> dict[str, str]:
    """As servers do it: what comes twice is joined with commas."""
    env: dict[str, str] = {}
    for name, value in headers:
        key = name.upper().replace("-", "_")
        key = key if key == "CONTENT_TYPE" else f"HTTP_{key}"
        env[key] = f"{env[key]}, {value}" if key in env else value
    return env
