"""A small Keystone over HTTP: a token, an endpoint, and unified limits."""

import contextlib
import http.server
import json
import threading
import urllib.parse
from collections.abc import Iterator, Mapping
from typing import Any

NAME, SERVICE = "machines", "service-1"


@contextlib.contextmanager
def keystone(
    registered: Mapping[str, int], overridden: Mapping[tuple[str, str], int]
) -> Iterator[str]:
    """Yield the URL of a Keystone with limits of the service 'machines'.

    The registered limits are by name, the others by project and name.
    """
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    url = f"http://127.0.0.1:{server.server_port}/v3"
    _Handler.answers = {
        "/v3": {"version": {"id": "v3.14", "status": "stable", "links": _self(url)}},
        "/v3/auth/tokens": {"token": _token(url)},
        "/v3/limits/model": {"model": {"name": "flat", "description": ""}},
        "/v3/services": {"services": [{"id": SERVICE, "name": NAME, "type": NAME}]},
        "/v3/endpoints": {
            "endpoints": [
                {"id": "1", "service_id": SERVICE, "region_id": None, "interface": "public"}
            ]
        },
        "/v3/registered_limits": {
            "registered_limits": [
                _limit(name, default_limit=limit) for name, limit in registered.items()
            ]
        },
        "/v3/limits": {
            "limits": [
                _limit(name, project_id=project, resource_limit=limit)
                for (project, name), limit in overridden.items()
            ]
        },
    }
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield url
    finally:
        server.shutdown()
        server.server_close()


def _self(url: str) -> list[dict[str, str]]:
    return [{"rel": "self", "href": url}]


def _limit(name: str, **fields: Any) -> dict[str, Any]:
    return {"id": name, "service_id": SERVICE, "region_id": None, "resource_name": name, **fields}


def _token(url: str) -> dict[str, Any]:
    there = {"id": "1", "interface": "public", "region_id": None, "region": None, "url": url}
    return {
        "expires_at": "2999-01-01T00:00:00.000000Z",
        "issued_at": "2026-01-01T00:00:00.000000Z",
        "methods": ["password"],
        "user": {"id": "u", "name": "service", "domain": {"id": "default", "name": "Default"}},
        "system": {"all": True},
        "roles": [{"id": "r", "name": "reader"}],
        "catalog": [{"id": SERVICE, "type": "identity", "name": "keystone", "endpoints": [there]}],
    }


class _Handler(http.server.BaseHTTPRequestHandler):
    """A handler that filters lists by the parameters of the request, as Keystone does."""

    answers: dict[str, Any]

    def do_GET(self) -> None:
        self._answer(200)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self._answer(201)

    def _answer(self, status: int) -> None:
        asked = urllib.parse.urlsplit(self.path)
        body = self.answers.get(asked.path.rstrip("/"))
        query = dict(urllib.parse.parse_qsl(asked.query))
        if body is None:
            status, body = 404, {"error": {"code": 404, "title": "Not Found", "message": self.path}}
        found = {
            key: [row for row in rows if all(row.get(name) == query[name] for name in query)]
            if isinstance(rows, list)
            else rows
            for key, rows in body.items()
        }
        content = json.dumps(found).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("X-Subject-Token", "token")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        """Write nothing."""
