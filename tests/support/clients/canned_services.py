"""HTTP servers with canned answers, and clouds.yaml files for them."""

import contextlib
import http.server
import json
import pathlib
import threading
from collections.abc import Iterator, Mapping
from typing import Any

TOKENS = "/v3/auth/tokens"
"""The path at which a Keystone issues tokens."""

Answers = Mapping[str, tuple[int, bytes]]


class Server(http.server.ThreadingHTTPServer):
    """A server that answers each path, with or without its query, with a status and a body."""

    answers: dict[str, tuple[int, bytes]]
    asked: list[tuple[str, str]]
    agents: set[str]
    newest = "compute 2.100"
    """The value of the header in which Nova names its newest microversion."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"] or 0))
        self.server.asked.append((self.path, self.headers["OpenStack-API-Version"]))
        self.server.agents.add(self.headers["User-Agent"])
        answers = self.server.answers
        otherwise = answers.get(self.path.partition("?")[0], (404, b""))
        status, body = answers.get(self.path, otherwise)
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("OpenStack-API-Version", self.server.newest)
        if self.path == TOKENS:
            self.send_header("X-Subject-Token", "token")
        with contextlib.suppress(ConnectionError):  # the client may have disconnected
            self.end_headers()
            self.wfile.write(body)

    do_POST = do_PUT = do_GET

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (its name)
        pass


@contextlib.contextmanager
def answering(answers: Answers) -> Iterator[Server]:
    made = Server(("127.0.0.1", 0), Handler)
    made.answers, made.asked, made.agents = dict(answers), [], set()
    thread = threading.Thread(target=made.serve_forever, args=(0.05,))
    thread.start()
    try:
        yield made
    finally:
        made.shutdown()
        thread.join()
        made.server_close()


def describe(directory: pathlib.Path, endpoint: str, *services: str, **more: Any) -> pathlib.Path:
    """Write a clouds.yaml with the cloud "here", and return its path.

    The cloud has these services, or Nova and Placement, at the endpoint.
    """
    endpoints = {
        f"{service}_endpoint_override": endpoint for service in services or ("compute", "placement")
    }
    path = directory / "clouds.yaml"
    path.write_text(json.dumps({"clouds": {"here": {"auth_type": "none", **endpoints, **more}}}))
    return path


def keystone(endpoints: Mapping[tuple[str, str], str], *services: str) -> Answers:
    """Return the answers of a Keystone whose catalogue has endpoints by region and interface."""
    found = [
        {"region": region, "region_id": region, "interface": interface, "url": url, "id": url}
        for (region, interface), url in endpoints.items()
    ]
    token = {
        "methods": ["password"],
        "issued_at": "2020-01-01T00:00:00.000000Z",
        "expires_at": "2999-01-01T00:00:00.000000Z",
        "user": {"id": "u", "name": "u", "domain": {"id": "d", "name": "d"}},
        "project": {"id": "p", "name": "p", "domain": {"id": "d", "name": "d"}},
        "catalog": [
            {"type": each, "name": each, "id": each, "endpoints": found} for each in services
        ],
    }
    return {TOKENS: (201, json.dumps({"token": token}).encode())}
